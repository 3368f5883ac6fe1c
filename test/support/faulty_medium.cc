#include "test/support/faulty_medium.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace nezha::test {

using cache::Medium;
using cache::SegmentBytes;

void Faults::arm(Call call, uint64_t after, uint64_t count, bool partly) {
  std::lock_guard lock(mutex_);
  Plan& plan = plans_[static_cast<size_t>(call)];
  plan.from = plan.calls + after;
  plan.until = count > UINT64_MAX - plan.from ? UINT64_MAX : plan.from + count;
  plan.partly = partly;
}

void Faults::before(Call call, std::function<void()> act) {
  std::lock_guard lock(mutex_);
  plans_[static_cast<size_t>(call)].before = std::move(act);
}

void Faults::disarm() {
  std::lock_guard lock(mutex_);
  for (Plan& plan : plans_) plan.from = UINT64_MAX, plan.until = 0, plan.before = nullptr;
}

uint64_t Faults::calls(Call call) const {
  std::lock_guard lock(mutex_);
  return plans_[static_cast<size_t>(call)].calls;
}

Faults::Fate Faults::next(Call call) {
  std::function<void()> before;
  {
    std::lock_guard lock(mutex_);
    before = plans_[static_cast<size_t>(call)].before;
  }
  if (before) before();
  std::lock_guard lock(mutex_);
  Plan& plan = plans_[static_cast<size_t>(call)];
  const uint64_t number = plan.calls++;
  if (number < plan.from || number >= plan.until) return Fate::kWorks;
  return plan.partly ? Fate::kHalf : Fate::kFails;
}

namespace {

auto io_error() { return fail(Remedy::kGiveUp, "Input/output error"); }

class FaultyBytes final : public SegmentBytes {
 public:
  FaultyBytes(std::unique_ptr<SegmentBytes> bytes, Faults& faults) : bytes_(std::move(bytes)), faults_(faults) {}
  Result<void> write(uint64_t offset, std::string_view bytes) override {
    const Faults::Fate fate = faults_.next(Call::kWrite);
    if (fate == Faults::Fate::kWorks) return bytes_->write(offset, bytes);
    if (fate == Faults::Fate::kHalf) (void)bytes_->write(offset, bytes.substr(0, bytes.size() / 2));
    return io_error();
  }
  Result<void> sync(uint64_t offset, uint64_t size) override {
    if (faults_.next(Call::kSync) != Faults::Fate::kWorks) return io_error();
    return bytes_->sync(offset, size);
  }
  Result<void> load(uint64_t offset, uint64_t size) const override {
    if (faults_.next(Call::kLoad) != Faults::Fate::kWorks) return io_error();
    faults_.loaded();
    return bytes_->load(offset, size);
  }
  void prefetch(uint64_t offset, uint64_t size) const override { bytes_->prefetch(offset, size); }
  bool is_resident(uint64_t offset, uint64_t size) const override {
    return !faults_.evicted() && bytes_->is_resident(offset, size);
  }
  std::string_view data() const override { return bytes_->data(); }

 private:
  std::unique_ptr<SegmentBytes> bytes_;
  Faults& faults_;
};

class FaultyMedium final : public Medium {
 public:
  FaultyMedium(std::unique_ptr<Medium> medium, Faults& faults) : medium_(std::move(medium)), faults_(faults) {}
  bool durable() const override { return medium_->durable(); }
  std::string name() const override { return medium_->name(); }
  Result<std::vector<uint32_t>> list() override { return medium_->list(); }
  bool remove(uint32_t number) override {
    return faults_.next(Call::kRemove) == Faults::Fate::kWorks && medium_->remove(number);
  }
  std::string set_aside(uint32_t number) override { return medium_->set_aside(number); }
  Result<std::string> read_marker() override { return medium_->read_marker(); }
  Result<void> write_marker(std::string_view bytes) override {
    if (faults_.next(Call::kMark) != Faults::Fate::kWorks) return io_error();
    return medium_->write_marker(bytes);
  }
  std::string set_aside_marker() override { return medium_->set_aside_marker(); }
  Result<std::unique_ptr<SegmentBytes>> open(uint32_t number) override {
    if (faults_.next(Call::kOpen) != Faults::Fate::kWorks) return io_error();
    return wrap(medium_->open(number));
  }
  Result<std::unique_ptr<SegmentBytes>> create(uint32_t number, uint64_t size_bytes) override {
    if (faults_.next(Call::kCreate) != Faults::Fate::kWorks) return fail(Remedy::kGiveUp, "No space left on device");
    return wrap(medium_->create(number, size_bytes));
  }

 private:
  Result<std::unique_ptr<SegmentBytes>> wrap(Result<std::unique_ptr<SegmentBytes>> made) {
    if (!made) return made;
    return std::unique_ptr<SegmentBytes>(std::make_unique<FaultyBytes>(std::move(made.value()), faults_));
  }
  std::unique_ptr<Medium> medium_;
  Faults& faults_;
};

}  // namespace

std::unique_ptr<Medium> make_faulty_medium(std::unique_ptr<Medium> medium, Faults& faults) {
  return std::make_unique<FaultyMedium>(std::move(medium), faults);
}

// Buffers never move and live as long as somebody maps them.
struct TestDisk::State {
  using Buffer = std::shared_ptr<std::vector<char>>;
  mutable std::mutex mutex;
  std::map<uint32_t, Buffer> segments;
  size_t set_aside = 0;
  std::optional<std::string> marker, marker_aside;
  uint64_t writes_until_copy = UINT64_MAX;
  uint64_t random = 0;
  std::unique_ptr<TestDisk> copy;

  std::unique_ptr<TestDisk> copied() const {  // REQUIRES: mutex held
    auto out = std::make_shared<State>();
    for (const auto& [number, bytes] : segments) out->segments[number] = std::make_shared<std::vector<char>>(*bytes);
    out->marker = marker;
    return std::unique_ptr<TestDisk>(new TestDisk(std::move(out)));
  }
};

class TestDisk::DiskBytes final : public SegmentBytes {
 public:
  DiskBytes(std::shared_ptr<State> state, State::Buffer bytes) : state_(std::move(state)), bytes_(std::move(bytes)) {}
  Result<void> write(uint64_t offset, std::string_view bytes) override {
    std::lock_guard lock(state_->mutex);
    char* to = bytes_->data() + offset;
    if (state_->writes_until_copy-- == 0) {
      // Persistent memory tears at 8 bytes.
      const size_t done = std::min<size_t>(bytes.size(), state_->random % (bytes.size() + 8) / 8 * 8);
      std::memcpy(to, bytes.data(), done);
      state_->copy = state_->copied();
      state_->writes_until_copy = UINT64_MAX;
    }
    std::memcpy(to, bytes.data(), bytes.size());
    return ok();
  }
  Result<void> sync(uint64_t, uint64_t) override { return ok(); }
  Result<void> load(uint64_t, uint64_t) const override { return ok(); }
  void prefetch(uint64_t, uint64_t) const override {}
  bool is_resident(uint64_t, uint64_t) const override { return true; }
  std::string_view data() const override { return {bytes_->data(), bytes_->size()}; }

 private:
  std::shared_ptr<State> state_;
  State::Buffer bytes_;
};

class TestDisk::DiskMedium final : public Medium {
 public:
  explicit DiskMedium(std::shared_ptr<State> state) : state_(std::move(state)) {}
  bool durable() const override { return true; }
  std::string name() const override { return "test disk"; }
  Result<std::vector<uint32_t>> list() override {
    std::lock_guard lock(state_->mutex);
    std::vector<uint32_t> numbers;
    for (const auto& [number, bytes] : state_->segments) numbers.push_back(number);
    return numbers;
  }
  Result<std::unique_ptr<SegmentBytes>> open(uint32_t number) override {
    std::lock_guard lock(state_->mutex);
    const auto& bytes = state_->segments.at(number);
    if (bytes->size() < 4096) return fail(Remedy::kAbsent, "too short");
    return std::unique_ptr<SegmentBytes>(std::make_unique<DiskBytes>(state_, bytes));
  }
  Result<std::unique_ptr<SegmentBytes>> create(uint32_t number, uint64_t size_bytes) override {
    std::lock_guard lock(state_->mutex);
    auto& bytes = state_->segments[number];
    bytes = std::make_shared<std::vector<char>>(size_bytes);
    return std::unique_ptr<SegmentBytes>(std::make_unique<DiskBytes>(state_, bytes));
  }
  bool remove(uint32_t number) override {
    std::lock_guard lock(state_->mutex);
    state_->segments.erase(number);
    return true;
  }
  std::string set_aside(uint32_t number) override {
    std::lock_guard lock(state_->mutex);
    state_->segments.erase(number);
    ++state_->set_aside;
    return "aside/" + std::to_string(number);
  }
  Result<std::string> read_marker() override {
    std::lock_guard lock(state_->mutex);
    if (!state_->marker) return fail(Remedy::kAbsent, "no marker");
    return std::string(*state_->marker);
  }
  Result<void> write_marker(std::string_view bytes) override {
    std::lock_guard lock(state_->mutex);
    state_->marker = bytes;
    return ok();
  }
  std::string set_aside_marker() override {
    std::lock_guard lock(state_->mutex);
    state_->marker_aside = std::exchange(state_->marker, std::nullopt);
    return "aside/marker";
  }

 private:
  std::shared_ptr<State> state_;
};

TestDisk::TestDisk() : state_(std::make_shared<State>()) {}

std::unique_ptr<Medium> TestDisk::medium() const { return std::make_unique<DiskMedium>(state_); }

TestDisk TestDisk::copy() const {
  std::lock_guard lock(state_->mutex);
  return *state_->copied();
}

void TestDisk::copy_later(uint64_t writes, uint64_t random) {
  std::lock_guard lock(state_->mutex);
  state_->writes_until_copy = writes;
  state_->random = random;
}

std::unique_ptr<TestDisk> TestDisk::take_copy() {
  std::lock_guard lock(state_->mutex);
  return std::move(state_->copy);
}

std::vector<uint32_t> TestDisk::numbers() const { return medium()->list().value(); }

std::string TestDisk::read(uint32_t number) const {
  std::lock_guard lock(state_->mutex);
  const auto& bytes = *state_->segments.at(number);
  return std::string(bytes.begin(), bytes.end());
}

void TestDisk::poke(uint32_t number, uint64_t offset, char change) {
  std::lock_guard lock(state_->mutex);
  char& at = (*state_->segments.at(number))[offset];
  at = static_cast<char>(at ^ change);
}

void TestDisk::put(uint32_t number, std::string bytes) {
  std::lock_guard lock(state_->mutex);
  state_->segments[number] = std::make_shared<std::vector<char>>(bytes.begin(), bytes.end());
}

void TestDisk::remove(uint32_t number) {
  std::lock_guard lock(state_->mutex);
  state_->segments.erase(number);
}

size_t TestDisk::set_aside() const {
  std::lock_guard lock(state_->mutex);
  return state_->set_aside;
}

std::optional<std::string> TestDisk::marker() const {
  std::lock_guard lock(state_->mutex);
  return state_->marker;
}

void TestDisk::set_marker(std::optional<std::string> bytes) {
  std::lock_guard lock(state_->mutex);
  state_->marker = std::move(bytes);
}

std::optional<std::string> TestDisk::marker_aside() const {
  std::lock_guard lock(state_->mutex);
  return state_->marker_aside;
}

}  // namespace nezha::test
