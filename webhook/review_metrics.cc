#include "webhook/review_metrics.h"

#include <chrono>

#include "nezha/base/check.h"
#include "webhook/decide.h"

namespace nezha::webhook {
namespace {

constexpr std::pair<Entry, const char*> kEntries[] = {{Entry::kPod, "pod"},
                                                      {Entry::kNamespace, "namespace"},
                                                      {Entry::kSelector, "selector"},
                                                      {Entry::kAncestor, "ancestor"}};
constexpr Verdict kVerdicts[] = {Verdict::kInject, Verdict::kNotOptedIn,  Verdict::kOptedOut,    Verdict::kMirrorPod,
                                 Verdict::kNoRule, Verdict::kUnknownRule, Verdict::kCacheUnknown};
constexpr const char* kOtherResults[] = {"not-a-pod", "error", "malformed", "refused"};

}  // namespace

ReviewMetrics::ReviewMetrics(obs::Metrics& metrics)
    : in_flight_(metrics.gauge("nezha_admission_requests_in_flight", "HTTP requests that are being answered")) {
  const std::vector<double> bounds{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5};
  for (const auto& [entry, name] : kEntries) {
    const auto add = [&, entry = entry, name = name](const char* result) {
      reviews_[{entry, result}] = &metrics.counter("nezha_admission_reviews_total", "Admission reviews by their result",
                                                   {{"entry", name}, {"result", result}});
    };
    for (const auto verdict : kVerdicts) add(to_string(verdict));
    for (const auto* result : kOtherResults) add(result);
    seconds_[entry] =
        &metrics.histogram("nezha_admission_seconds", "Time to answer an admission review", bounds, {{"entry", name}});
  }
}

void ReviewMetrics::count(Entry entry, std::string_view result) {
  const auto found = reviews_.find(std::pair(entry, std::string(result)));
  NEZHA_CHECK(found != reviews_.end(), "a result that is not in the table");
  found->second->add();
}

void ReviewMetrics::observe(Entry entry, SteadyTime::duration duration) {
  seconds_.at(entry)->observe(std::chrono::duration<double>(duration).count());
}

}  // namespace nezha::webhook
