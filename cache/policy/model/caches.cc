#include "cache/policy/model/caches.h"

#include <algorithm>
#include <list>
#include <unordered_map>
#include <unordered_set>

namespace nezha::cache::model {
namespace {

constexpr uint8_t kReadsMax = 7;  // three bits

class ExactLru final : public Cache {
 public:
  explicit ExactLru(const Trace& trace) : trace_(trace), where_(trace.size_bytes.size(), order_.end()) {}

  bool request(uint32_t object) override {
    if (where_[object] != order_.end()) {
      order_.splice(order_.begin(), order_, where_[object]);
      return true;
    }
    used_bytes_ += trace_.size_bytes[object];
    where_[object] = order_.insert(order_.begin(), object);
    while (used_bytes_ > trace_.cache_bytes) {
      const uint32_t victim = order_.back();
      order_.pop_back();
      where_[victim] = order_.end();
      used_bytes_ -= trace_.size_bytes[victim];
    }
    return false;
  }

 private:
  const Trace& trace_;
  std::list<uint32_t> order_;
  std::vector<std::list<uint32_t>::iterator> where_;
  uint64_t used_bytes_ = 0;
};

class ExactS3Fifo final : public Cache {
 public:
  explicit ExactS3Fifo(const Trace& trace)
      : trace_(trace), state_(trace.size_bytes.size()), ghost_time_(trace.size_bytes.size()) {}

  bool request(uint32_t object) override {
    State& state = state_[object];
    if (state.resident) {
      state.reads = std::min<uint8_t>(state.reads + 1, 3);
      return true;
    }
    const uint64_t size = trace_.size_bytes[object];
    while (small_.bytes + main_.bytes + size > trace_.cache_bytes) evict();
    // Before the cache is full, what does not fit into the small queue goes to main.
    const bool fills = !evicted_ && small_.bytes * 10 >= trace_.cache_bytes;
    push(is_ghost(object) || fills ? main_ : small_, object);
    ghost_time_[object] = 0;
    state = {true, 0};
    return false;
  }

 private:
  struct State {
    bool resident = false;
    uint8_t reads = 0;
  };
  struct Fifo {
    std::list<uint32_t> objects;  // oldest at the front
    uint64_t bytes = 0;
  };

  void push(Fifo& fifo, uint32_t object) {
    fifo.objects.push_back(object);
    fifo.bytes += trace_.size_bytes[object];
  }
  uint32_t pop(Fifo& fifo) {
    const uint32_t object = fifo.objects.front();
    fifo.objects.pop_front();
    fifo.bytes -= trace_.size_bytes[object];
    return object;
  }
  bool is_ghost(uint32_t object) const {
    return ghost_time_[object] != 0 && ghost_clock_ - ghost_time_[object] < main_.objects.size();
  }

  void evict() {
    evicted_ = true;
    if (small_.bytes * 10 > trace_.cache_bytes || main_.objects.empty()) {
      evict_small();
    } else {
      evict_main();
    }
  }

  void evict_small() {
    while (!small_.objects.empty()) {
      const uint32_t object = pop(small_);
      if (state_[object].reads > 1) {
        state_[object].reads = 0;
        push(main_, object);
        continue;
      }
      state_[object].resident = false;
      ghost_time_[object] = ++ghost_clock_;
      return;
    }
  }

  void evict_main() {
    while (!main_.objects.empty()) {
      const uint32_t object = pop(main_);
      if (state_[object].reads > 0) {
        --state_[object].reads;
        push(main_, object);
        continue;
      }
      state_[object].resident = false;
      return;
    }
  }

  const Trace& trace_;
  std::vector<State> state_;
  std::vector<uint64_t> ghost_time_;  // 0: not a ghost
  uint64_t ghost_clock_ = 0;
  Fifo small_, main_;
  bool evicted_ = false;
};

}  // namespace

SegmentedTier::SegmentedTier(const Trace& trace, Policy& policy, unsigned segments)
    : trace_(trace),
      policy_(policy),
      segment_bytes_(trace.cache_bytes / segments),
      segments_(segments),
      objects_(trace.size_bytes.size()) {
  for (uint32_t i = 0; i < segments; ++i) free_.push_back(i);
}

bool SegmentedTier::request(uint32_t object) {
  const uint64_t key = key_of(object);
  const uint32_t size_bytes = trace_.size_bytes[object];
  Object& state = objects_[object];
  if (state.resident) {
    policy_.on_request(key, size_bytes);
    state.reads = static_cast<uint8_t>(std::min(state.reads + 1, int{kReadsMax}));
    return true;
  }
  policy_.on_request(key, 0);
  if (const auto queue = policy_.admit(key, size_bytes, free_bytes())) store(*queue, object);
  return false;
}

double SegmentedTier::write_amplification() const {
  return static_cast<double>(stored_bytes_ + rewritten_bytes_) /
         static_cast<double>(std::max<uint64_t>(stored_bytes_, 1));
}

uint64_t SegmentedTier::bytes_of(Queue queue) const {
  const Stream& of = streams_[static_cast<size_t>(queue)];
  return (of.sealed.size() + (of.open != kNone ? 1 : 0)) * segment_bytes_;
}

bool SegmentedTier::fits(const Stream& to, uint64_t size_bytes) const {
  return to.open != kNone && segments_[to.open].used_bytes + size_bytes <= segment_bytes_;
}

void SegmentedTier::open_segment(Stream& to) {
  if (to.open != kNone) to.sealed.push_back(to.open);
  to.open = free_.back();
  free_.pop_back();
}

void SegmentedTier::append(Stream& to, const Record& record) {
  segments_[to.open].records.push_back(record);
  segments_[to.open].used_bytes += record.size_bytes;
  Object& state = objects_[record.object];
  if (!state.resident || state.storing != record.storing) return;  // evicted while it was being stored
  segments_[to.open].live_bytes += record.size_bytes;
  state.places.push_back({to.open, record.size_bytes});
}

void SegmentedTier::store(Queue queue, uint32_t object) {
  Object& state = objects_[object];
  state = {state.storing + 1, true, 0, {}};
  stored_bytes_ += trace_.size_bytes[object];
  resident_bytes_ += trace_.size_bytes[object];
  const uint64_t record_bytes = std::max<uint64_t>(segment_bytes_ / 16, 1);
  for (uint64_t left = trace_.size_bytes[object]; left > 0;) {
    const Record record{object, state.storing, left == trace_.size_bytes[object], std::min(left, record_bytes)};
    left -= record.size_bytes;
    while (!fits(stream(queue), record.size_bytes)) {
      // Reclaiming may itself open a segment of this stream.
      if (free_.size() > 1) {
        open_segment(stream(queue));
      } else {
        reclaim();
      }
    }
    append(stream(queue), record);
  }
}

bool SegmentedTier::decide(const Record& record, Queue from) {
  const uint64_t key = key_of(record.object);
  const uint32_t size_bytes = trace_.size_bytes[record.object];
  Object& state = objects_[record.object];
  if (policy_.keep(key, size_bytes, from, state.reads)) {
    if (record.is_first) state.reads -= state.reads > 0;
    return true;
  }
  kill(record.object);
  policy_.on_evicted(key, size_bytes, from);
  return false;
}

void SegmentedTier::kill(uint32_t object) {
  Object& state = objects_[object];
  state.resident = false;
  resident_bytes_ -= trace_.size_bytes[object];
  for (const Place& place : state.places) segments_[place.segment].live_bytes -= place.size_bytes;
  state.places.clear();
}

void SegmentedTier::free_dead(Stream& of) {
  std::erase_if(of.sealed, [this](uint32_t segment) {
    if (segments_[segment].live_bytes > 0) return false;
    segments_[segment] = {};
    free_.push_back(segment);
    return true;
  });
}

void SegmentedTier::reclaim() {
  Queue from = policy_.victim(bytes_of(Queue::kProbation), bytes_of(Queue::kMain));
  if (stream(from).sealed.empty()) from = from == Queue::kMain ? Queue::kProbation : Queue::kMain;
  const uint32_t taken = stream(from).sealed.front();
  stream(from).sealed.pop_front();
  const std::vector<Record> records = std::move(segments_[taken].records);
  uint32_t decided = kNone;  // records of an object lie side by side: one decision for them
  for (const Record& record : records) {
    const Object& state = objects_[record.object];
    if (!state.resident || state.storing != record.storing) continue;
    if (record.object != decided && !decide(record, from)) continue;
    decided = record.object;
    std::erase_if(objects_[record.object].places, [taken](const Place& place) { return place.segment == taken; });
    if (!fits(stream(Queue::kMain), record.size_bytes)) open_segment(stream(Queue::kMain));  // the reserve
    append(stream(Queue::kMain), record);
    rewritten_bytes_ += record.size_bytes;
  }
  segments_[taken] = {};
  free_.push_back(taken);
  for (Stream& of : streams_) free_dead(of);
}

std::unique_ptr<Cache> make_exact_lru(const Trace& trace) { return std::make_unique<ExactLru>(trace); }
std::unique_ptr<Cache> make_exact_s3_fifo(const Trace& trace) { return std::make_unique<ExactS3Fifo>(trace); }

double hit_ratio(const Trace& trace, Cache& cache, const std::function<void(size_t, bool)>& seen) {
  size_t hits = 0;
  for (size_t i = 0; i < trace.requests.size(); ++i) {
    const bool hit = cache.request(trace.requests[i]);
    if (i >= trace.warmup_requests) hits += hit;
    if (seen) seen(i, hit);
  }
  return static_cast<double>(hits) / static_cast<double>(trace.requests.size() - trace.warmup_requests);
}

}  // namespace nezha::cache::model
