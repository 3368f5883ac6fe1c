// ReviewMetrics: what the admission server counts.
//   nezha_admission_reviews_total{entry, result}   reviews answered; result is a verdict of decide.h, "not-a-pod",
//                                                  "error", "malformed" or "refused" (no review in the request)
//   nezha_admission_seconds{entry}                 from the whole body received to the answer built
//   nezha_admission_requests_in_flight             HTTP requests whose head was read and whose answer is not written
//   yet
// entry is the last word of the path: pod, namespace, selector, ancestor.
// Threads: any.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "nezha/base/clock.h"
#include "nezha/obs/metrics.h"
#include "webhook/policy.h"

namespace nezha::webhook {

class ReviewMetrics {
 public:
  // Borrowed. Every series exists from the start, so that a rate can be taken of the first event.
  explicit ReviewMetrics(obs::Metrics& metrics);
  // REQUIRES: a result named above.
  void count(Entry entry, std::string_view result);
  void observe(Entry entry, SteadyTime::duration duration);
  void begin_request() { in_flight_.add(1); }
  void end_request() { in_flight_.add(-1); }

 private:
  obs::Gauge& in_flight_;
  std::map<std::pair<Entry, std::string>, obs::Counter*, std::less<>> reviews_;
  std::map<Entry, obs::Histogram*> seconds_;
};

}  // namespace nezha::webhook
