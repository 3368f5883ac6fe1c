// policy_sim: replays request sequences against the cache's own eviction and admission code and against exact LRU and
// S3-FIFO, and prints what each hits as a markdown table. No bytes are moved. Usage: policy_sim [SEED]
#include <cstdio>
#include <string>
#include <vector>

#include "cache/policy/model/caches.h"
#include "cache/policy/strategy.h"
#include "nezha/base/text.h"

namespace nezha::cache::model {
namespace {

constexpr unsigned kSegments = 128;
constexpr uint32_t kMillion = 1'000'000;

struct Outcome {
  double hit_ratio = 0;
  double write_amplification = 0;
  PolicyReport report;
};

Outcome replay(const Trace& trace, Policy& policy, unsigned segments) {
  SegmentedTier tier(trace, policy, segments);
  Outcome outcome;
  outcome.hit_ratio = hit_ratio(trace, tier);
  outcome.write_amplification = tier.write_amplification();
  outcome.report = policy.report();
  return outcome;
}

Trace with_sizes(Trace trace, uint64_t seed) {
  vary_sizes(trace, seed);
  return trace;
}

std::vector<Trace> workloads(uint64_t seed) {
  return {zipf(kMillion, 0.9, 0.01, 3 * kMillion, seed),
          zipf(kMillion, 0.9, 0.1, 3 * kMillion, seed + 1),
          shuffled_epochs(kMillion / 10, 0.5, 9, seed + 2),
          shuffled_epochs(kMillion / 10, 0.8, 9, seed + 3),
          zipf_with_scans(kMillion, 0.01, 3 * kMillion, seed + 4),
          zipf_with_scans(kMillion, 0.1, 3 * kMillion, seed + 5),
          mix(kMillion, 0.01, 3 * kMillion, seed + 6),
          mix(kMillion, 0.1, 3 * kMillion, seed + 7),
          drifting(300'000, 0.01, 2 * kMillion, seed + 8),
          drifting(300'000, 0.1, 2 * kMillion, seed + 9),
          with_sizes(zipf(300'000, 0.9, 0.05, 2 * kMillion, seed + 10), seed),
          with_sizes(shuffled_epochs(50'000, 0.5, 9, seed + 11), seed)};
}

std::vector<Trace> small_workloads(uint64_t seed) {
  std::vector<Trace> traces = {shuffled_epochs(400, 0.5, 30, seed), shuffled_epochs(400, 0.8, 30, seed + 1),
                               zipf(3'000, 0.9, 0.1, 300'000, seed + 2), zipf(30'000, 0.9, 0.1, 600'000, seed + 3)};
  for (Trace& trace : traces) {
    trace.name += ", " + std::to_string(trace.cache_bytes / kObjectBytes) + " objects fit";
  }
  return traces;
}

void print_policies(const std::vector<Trace>& traces) {
  std::printf(
      "| load | nezha | exact LRU | exact S3-FIFO | fixed-subset | lru | s3-fifo | frequency | "
      "written per stored | live at the end | switches |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  for (const Trace& trace : traces) {
    const Outcome live = replay(trace, *make_policy(trace.cache_bytes, 1), kSegments);
    std::printf("| %s | **%.3f** | %.3f | %.3f", trace.name.c_str(), live.hit_ratio,
                hit_ratio(trace, *make_exact_lru(trace)), hit_ratio(trace, *make_exact_s3_fifo(trace)));
    for (size_t kind = 0; kind < kStrategyKinds; ++kind) {
      const auto policy = make_single_policy(static_cast<StrategyKind>(kind), trace.cache_bytes);
      std::printf(" | %.3f", replay(trace, *policy, kSegments).hit_ratio);
    }
    std::printf(" | %.2f | %s | %d |\n", live.write_amplification, std::string(live.report.live).c_str(),
                static_cast<int>(live.report.switches));
    std::fflush(stdout);
  }
}

void print_segments(const std::vector<Trace>& traces) {
  constexpr unsigned kCounts[] = {16, 32, 64, 128, 256, 512, 1024};
  std::printf("\n| load, by number of segments |");
  for (const unsigned count : kCounts) std::printf(" %u |", count);
  std::printf("\n| --- | --- | --- | --- | --- | --- | --- | --- |\n");
  for (const Trace& trace : traces) {
    std::printf("| %s |", trace.name.c_str());
    for (const unsigned count : kCounts) {
      std::printf(" %.3f |", replay(trace, *make_policy(trace.cache_bytes, 1), count).hit_ratio);
    }
    std::printf("\n");
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace nezha::cache::model

int main(int argc, char** argv) {
  using namespace nezha::cache::model;
  const auto seed = nezha::parse_decimal(argc > 1 ? argv[1] : "1");
  if (!seed) {
    std::fprintf(stderr, "policy-sim: SEED=%s is not a whole number; write for example SEED=2\n", argv[1]);
    return 2;
  }
  const std::vector<Trace> traces = workloads(*seed);
  print_policies(traces);
  std::printf("\n");
  print_policies(small_workloads(*seed));
  print_segments({traces[0], traces[2], traces[3], traces[7]});
  return 0;
}
