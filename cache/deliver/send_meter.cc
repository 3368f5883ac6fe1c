#include "cache/deliver/send_meter.h"

#include <algorithm>
#include <ctime>

namespace nezha::cache {
namespace {

constexpr uint32_t kTryOtherEvery = 128;
constexpr uint32_t kTryWorseEvery = 1024;  // where the other costs more than half as much again
constexpr double kWorse = 1.5;
constexpr uint32_t kMeasureEvery = 16;
constexpr uint32_t kWeightMin = 16;  // a new measurement counts as one of so many
constexpr size_t kBytesMeasuredMin = 64 * 1024;

uint64_t thread_cpu_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

}  // namespace

bool SendMeter::choose(bool& measure) {
  ++turns_;
  measure = true;
  if (file_.ns_per_byte == 0) return true;
  if (copy_.ns_per_byte == 0) return false;
  const bool file_is_cheaper = file_.ns_per_byte < copy_.ns_per_byte;
  const auto [less, more] = std::minmax(file_.ns_per_byte, copy_.ns_per_byte);
  if (turns_ % (more > less * kWorse ? kTryWorseEvery : kTryOtherEvery) == 0) return !file_is_cheaper;
  measure = turns_ % kMeasureEvery == 0;
  return file_is_cheaper;
}

SendMeter::Turn::Turn(SendMeter& meter)
    : meter_(meter), by_file_(meter.choose(measured_)), begin_ns_(measured_ ? thread_cpu_ns() : 0) {}

void SendMeter::Turn::done(size_t sent_bytes) const {
  if (!measured_ || sent_bytes < kBytesMeasuredMin) return;
  const double cost = static_cast<double>(thread_cpu_ns() - begin_ns_) / static_cast<double>(sent_bytes);
  double& average = (by_file_ ? meter_.file_ : meter_.copy_).ns_per_byte;
  uint32_t& count = (by_file_ ? meter_.file_ : meter_.copy_).count;
  count = std::min(count + 1, kWeightMin);  // the first ones are an average of their own
  average += (cost - average) / count;
}

}  // namespace nezha::cache
