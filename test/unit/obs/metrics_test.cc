// Aim: series are found again by name and labels, and the exposition is what Prometheus reads.
#include "nezha/obs/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace nezha::obs {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Metrics, CounterAddsUpAndKeepsItsHelp) {
  const auto metrics = make_metrics();
  metrics->counter("nezha_requests_total", "Requests answered.", {{"result", "hit"}}).add();
  metrics->counter("nezha_requests_total", "ignored", {{"result", "hit"}}).add(2);
  metrics->counter("nezha_requests_total", "ignored", {{"result", "miss"}}).add();
  const std::string text = metrics->expose();
  EXPECT_THAT(text, HasSubstr("# HELP nezha_requests_total Requests answered.\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE nezha_requests_total counter\n"));
  EXPECT_THAT(text, HasSubstr("nezha_requests_total{result=\"hit\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("nezha_requests_total{result=\"miss\"} 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("ignored")));
}

TEST(Metrics, SameNameAndLabelsAreOneHandle) {
  const auto metrics = make_metrics();
  Gauge& first = metrics->gauge("nezha_connections", "Open connections.");
  for (int i = 0; i < 100; ++i) metrics->gauge("nezha_connections", "", {{"listener", std::to_string(i)}});
  EXPECT_EQ(&first, &metrics->gauge("nezha_connections", "Open connections."));
}

TEST(Metrics, GaugeSetsAndAdds) {
  const auto metrics = make_metrics();
  Gauge& gauge = metrics->gauge("nezha_tier_bytes", "Bytes stored.", {{"tier", "0"}});
  gauge.set(10);
  gauge.add(-4);
  EXPECT_THAT(metrics->expose(), HasSubstr("nezha_tier_bytes{tier=\"0\"} 6\n"));
}

TEST(Metrics, HistogramCountsCumulatively) {
  const auto metrics = make_metrics();
  Histogram& histogram = metrics->histogram("nezha_seconds", "Time of a call.", {0.1, 1});
  for (const double value : {0.05, 0.5, 5.0}) histogram.observe(value);
  const std::string text = metrics->expose();
  EXPECT_THAT(text, HasSubstr("nezha_seconds_bucket{le=\"0.1\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("nezha_seconds_bucket{le=\"1\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("nezha_seconds_bucket{le=\"+Inf\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("nezha_seconds_count 3\n"));
}

TEST(Metrics, LabelValuesAreEscaped) {
  const auto metrics = make_metrics();
  metrics->counter("nezha_errors_total", "Errors.", {{"path", "a\"b\\c\nd"}}).add();
  EXPECT_THAT(metrics->expose(), HasSubstr("nezha_errors_total{path=\"a\\\"b\\\\c\\nd\"} 1\n"));
}

TEST(Metrics, CountsFromManyThreads) {
  const auto metrics = make_metrics();
  constexpr int kThreads = 4;
  constexpr int kCalls = 1000;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < kCalls; ++i) metrics->counter("nezha_parallel_total", "Calls.").add();
    });
  for (auto& thread : threads) thread.join();
  EXPECT_THAT(metrics->expose(), HasSubstr("nezha_parallel_total 4000\n"));
}

TEST(MetricsDeathTest, OneNameOfTwoTypesIsABug) {
  const auto metrics = make_metrics();
  metrics->counter("nezha_thing", "A thing.");
  EXPECT_DEATH(metrics->gauge("nezha_thing", "A thing."), "check failed.*nezha_thing");
  EXPECT_DEATH(metrics->counter("no dashes-or blanks", "Bad."), "check failed");
}

}  // namespace
}  // namespace nezha::obs
