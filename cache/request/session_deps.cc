#include "cache/request/session_deps.h"

namespace nezha::cache {
namespace {

obs::Counter& requests(obs::Metrics& metrics, const char* result) {
  return metrics.counter("nezha_cache_requests_total", "Requests by how they were answered", {{"result", result}});
}

}  // namespace

RequestMetrics::RequestMetrics(obs::Metrics& metrics)
    : hit(requests(metrics, "hit")),
      revalidated(requests(metrics, "revalidated")),
      stale(requests(metrics, "stale")),
      collapsed(requests(metrics, "collapsed")),
      miss(requests(metrics, "miss")),
      pass(requests(metrics, "pass")),
      refused(requests(metrics, "refused")),
      error(requests(metrics, "error")),
      background(metrics.counter("nezha_cache_background_checks_total",
                                 "Stale answers checked with the source after they were served")),
      continued(metrics.counter("nezha_cache_continued_answers_total",
                                "Answers from the store that the source ended, because stored bytes were lost")),
      aborted(metrics.counter("nezha_cache_aborted_answers_total",
                              "Answers cut short by a reset, because the client left or the source failed")),
      not_fetched(metrics.counter("nezha_cache_write_through_dropped_total",
                                  "Written objects that were not fetched, because too many waited")),
      sent_bytes(metrics.counter("nezha_cache_sent_bytes_total", "Bytes of answers handed to the kernel")),
      hit_bytes(metrics.counter("nezha_cache_hit_bytes_total", "Body bytes answered from the store")) {}

}  // namespace nezha::cache
