// Metrics: counters, gauges and histograms by name and fixed labels, exported in the Prometheus text format.
// prometheus-cpp stays behind this header. Names are declared where they are used and documented in docs/metrics.md.
// Threads: any. Handles live as long as the Metrics that made them; look them up once, at construction.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace nezha::obs {

using Labels = std::map<std::string, std::string>;

class Counter {
 public:
  virtual ~Counter() = default;
  virtual void add(double amount = 1) = 0;  // whole numbers
};

class Gauge {
 public:
  virtual ~Gauge() = default;
  virtual void set(double value) = 0;
  virtual void add(double amount) = 0;
};

class Histogram {
 public:
  virtual ~Histogram() = default;
  virtual void observe(double value) = 0;
};

class Metrics {
 public:
  virtual ~Metrics() = default;
  // The same name and labels give the same series. `help` is kept from the first call.
  virtual Counter& counter(const std::string& name, const std::string& help, const Labels& labels = {}) = 0;
  virtual Gauge& gauge(const std::string& name, const std::string& help, const Labels& labels = {}) = 0;
  virtual Histogram& histogram(const std::string& name, const std::string& help, const std::vector<double>& bounds,
                               const Labels& labels = {}) = 0;
  // The Prometheus text exposition (version 0.0.4) of everything.
  virtual std::string expose() const = 0;
};

std::unique_ptr<Metrics> make_metrics();

}  // namespace nezha::obs
