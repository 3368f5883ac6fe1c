#include "cache/policy/model/trace.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace nezha::cache::model {
namespace {

uint64_t mixed(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

// Draws from Zipf's law in constant time (Vose's alias method).
class ZipfDraw {
 public:
  ZipfDraw(uint32_t objects, double exponent) : share_(objects), alias_(objects) {
    std::vector<double> weight(objects);
    for (uint32_t i = 0; i < objects; ++i) weight[i] = std::pow(i + 1.0, -exponent);
    const double mean = std::accumulate(weight.begin(), weight.end(), 0.0) / objects;
    std::vector<uint32_t> small, large;
    for (uint32_t i = 0; i < objects; ++i) {
      weight[i] /= mean;
      (weight[i] < 1 ? small : large).push_back(i);
    }
    while (!small.empty() && !large.empty()) {
      const uint32_t poor = small.back(), rich = large.back();
      small.pop_back();
      share_[poor] = weight[poor];
      alias_[poor] = rich;
      weight[rich] -= 1 - weight[poor];
      if (weight[rich] >= 1) continue;
      large.pop_back();
      small.push_back(rich);
    }
    for (const auto* rest : {&small, &large}) {
      for (const uint32_t i : *rest) share_[i] = 1;
    }
  }

  uint32_t draw(Random& random) const {
    const auto column = static_cast<uint32_t>(random.below(share_.size()));
    return random.unit() < share_[column] ? column : alias_[column];
  }

 private:
  std::vector<double> share_;
  std::vector<uint32_t> alias_;
};

// Endless epochs over [first, first + count).
class Epochs {
 public:
  Epochs(uint32_t first, uint32_t count, uint64_t seed) : order_(count), random_(seed) {
    std::iota(order_.begin(), order_.end(), first);
    next_ = count;
  }
  uint32_t draw() {
    if (next_ == order_.size()) {
      for (size_t i = order_.size() - 1; i > 0; --i) std::swap(order_[i], order_[random_.below(i + 1)]);
      next_ = 0;
    }
    return order_[next_++];
  }

 private:
  std::vector<uint32_t> order_;
  size_t next_;
  Random random_;
};

// Endless sequential runs over [first, first + count).
class Scans {
 public:
  Scans(uint32_t first, uint32_t count, uint64_t seed) : first_(first), count_(count), random_(seed) {}
  uint32_t draw() {
    if (left_ == 0) {
      left_ = 1'000 + static_cast<uint32_t>(random_.below(19'001));
      position_ = static_cast<uint32_t>(random_.below(count_));
    }
    --left_;
    position_ = (position_ + 1) % count_;
    return first_ + position_;
  }

 private:
  uint32_t first_, count_, left_ = 0, position_ = 0;
  Random random_;
};

Trace of_objects(std::string name, size_t objects, double cached_objects) {
  Trace trace;
  trace.name = std::move(name);
  trace.size_bytes.assign(objects, kObjectBytes);
  trace.cache_bytes = static_cast<uint64_t>(cached_objects * kObjectBytes);
  return trace;
}

std::string percent(double part) { return std::to_string(std::lround(part * 100)) + " %"; }

}  // namespace

uint64_t Random::next() { return mixed(state_ += 0x9e3779b97f4a7c15); }

uint64_t key_of(uint32_t object) { return mixed((object + 1) * 0x9e3779b97f4a7c15); }

uint64_t Trace::total_bytes() const { return std::accumulate(size_bytes.begin(), size_bytes.end(), uint64_t{0}); }

Trace zipf(uint32_t objects, double exponent, double cache_part, size_t requests, uint64_t seed) {
  Trace trace = of_objects("Zipf, " + percent(cache_part), objects, objects * cache_part);
  const ZipfDraw draw(objects, exponent);
  Random random(seed);
  trace.requests.resize(requests);
  for (uint32_t& request : trace.requests) request = draw.draw(random);
  trace.warmup_requests = requests / 3;
  return trace;
}

Trace shuffled_epochs(uint32_t objects, double cache_part, size_t epochs, uint64_t seed) {
  Trace trace = of_objects("epochs, " + percent(cache_part), objects, objects * cache_part);
  Epochs draw(0, objects, seed);
  trace.requests.resize(objects * epochs);
  for (uint32_t& request : trace.requests) request = draw.draw();
  trace.warmup_requests = objects;
  return trace;
}

Trace zipf_with_scans(uint32_t objects, double cache_part, size_t requests, uint64_t seed) {
  Trace trace = of_objects("Zipf and scans, " + percent(cache_part), size_t{2} * objects, objects * cache_part);
  const ZipfDraw draw(objects, 0.9);
  Scans scans(objects, objects, seed + 1);
  Random random(seed);
  trace.requests.resize(requests);
  for (uint32_t& request : trace.requests) request = random.below(2) == 0 ? draw.draw(random) : scans.draw();
  trace.warmup_requests = requests / 3;
  return trace;
}

Trace mix(uint32_t objects, double cache_part, size_t requests, uint64_t seed) {
  const uint32_t data_set = objects / 10;
  Trace trace = of_objects("mix, " + percent(cache_part), size_t{2} * objects + data_set, objects * cache_part);
  const ZipfDraw draw(objects, 0.9);
  Scans scans(objects, objects, seed + 1);
  Epochs epochs(2 * objects, data_set, seed + 2);
  Random random(seed);
  trace.requests.resize(requests);
  for (uint32_t& request : trace.requests) {
    const uint64_t which = random.below(4);
    request = which < 2 ? draw.draw(random) : which == 2 ? epochs.draw() : scans.draw();
  }
  trace.warmup_requests = requests / 3;
  return trace;
}

Trace drifting(uint32_t objects, double cache_part, size_t requests, uint64_t seed) {
  const size_t appearing = requests / 10 + 1;
  Trace trace = of_objects("drifting, " + percent(cache_part), objects + appearing, objects * cache_part);
  const ZipfDraw draw(objects, 0.9);
  Random random(seed);
  trace.requests.resize(requests);
  for (size_t i = 0; i < requests; ++i) {
    trace.requests[i] = static_cast<uint32_t>(objects + i / 10 - draw.draw(random));
  }
  trace.warmup_requests = requests / 3;
  return trace;
}

void vary_sizes(Trace& trace, uint64_t seed) {
  const double part = static_cast<double>(trace.cache_bytes) / static_cast<double>(trace.total_bytes());
  Random random(seed);
  for (uint32_t& size : trace.size_bytes) {
    size = static_cast<uint32_t>(kObjectBytes * std::exp2(random.unit() * 8 - 4));
  }
  trace.cache_bytes = static_cast<uint64_t>(part * static_cast<double>(trace.total_bytes()));
  trace.name += ", sizes vary";
}

Trace then(const Trace& first, const Trace& second) {
  Trace trace = first;
  trace.name = first.name + ", then " + second.name;
  const auto offset = static_cast<uint32_t>(first.size_bytes.size());
  trace.size_bytes.insert(trace.size_bytes.end(), second.size_bytes.begin(), second.size_bytes.end());
  for (const uint32_t request : second.requests) trace.requests.push_back(request + offset);
  trace.warmup_requests = 0;
  return trace;
}

}  // namespace nezha::cache::model
