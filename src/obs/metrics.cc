// Metrics by prometheus-cpp: this file keeps one handle per name and labels, the library keeps the numbers.
#include "nezha/obs/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <atomic>
#include <exception>
#include <mutex>
#include <utility>

#include "nezha/base/check.h"

namespace nezha::obs {
namespace {

class FlushedCounter : public Counter {
 public:
  virtual void flush() = 0;
};

class PromCounter final : public FlushedCounter {
 public:
  explicit PromCounter(prometheus::Counter& counter) : counter_(counter) {}
  // Amounts are whole numbers: one instruction here, and the library learns of them when somebody asks.
  void add(double amount) override { pending_.fetch_add(static_cast<uint64_t>(amount), std::memory_order_relaxed); }
  void flush() override { counter_.Increment(static_cast<double>(pending_.exchange(0))); }

 private:
  prometheus::Counter& counter_;
  std::atomic<uint64_t> pending_{0};
};

class PromGauge final : public Gauge {
 public:
  explicit PromGauge(prometheus::Gauge& gauge) : gauge_(gauge) {}
  void set(double value) override { gauge_.Set(value); }
  void add(double amount) override { gauge_.Increment(amount); }

 private:
  prometheus::Gauge& gauge_;
};

class PromHistogram final : public Histogram {
 public:
  explicit PromHistogram(prometheus::Histogram& histogram) : histogram_(histogram) {}
  void observe(double value) override { histogram_.Observe(value); }

 private:
  prometheus::Histogram& histogram_;
};

// Handles by name and labels. A map, because its values stay where they are.
template <class Handle>
using Handles = std::map<std::pair<std::string, Labels>, std::unique_ptr<Handle>>;

class PromMetrics final : public Metrics {
 public:
  Counter& counter(const std::string& name, const std::string& help, const Labels& labels) override {
    return find_or_make(counters_, name, labels, [&] {
      auto& family = prometheus::BuildCounter().Name(name).Help(help).Register(registry_);
      return std::make_unique<PromCounter>(family.Add(labels));
    });
  }

  Gauge& gauge(const std::string& name, const std::string& help, const Labels& labels) override {
    return find_or_make(gauges_, name, labels, [&] {
      auto& family = prometheus::BuildGauge().Name(name).Help(help).Register(registry_);
      return std::make_unique<PromGauge>(family.Add(labels));
    });
  }

  Histogram& histogram(const std::string& name, const std::string& help, const std::vector<double>& bounds,
                       const Labels& labels) override {
    return find_or_make(histograms_, name, labels, [&] {
      auto& family = prometheus::BuildHistogram().Name(name).Help(help).Register(registry_);
      return std::make_unique<PromHistogram>(family.Add(labels, bounds));
    });
  }

  std::string expose() const override {
    {
      std::lock_guard lock(mutex_);
      for (const auto& [name, counter] : counters_) counter->flush();
    }
    return prometheus::TextSerializer().Serialize(registry_.Collect());
  }

 private:
  // The library throws on a malformed name or one of another type: that is a bug of ours, not an event.
  template <class Handle, class Make>
  Handle& find_or_make(Handles<Handle>& handles, const std::string& name, const Labels& labels, const Make& make) {
    std::lock_guard lock(mutex_);
    auto& handle = handles[{name, labels}];
    if (handle) return *handle;
    try {
      handle = make();
    } catch (const std::exception& error) {
      NEZHA_CHECK(false, (name + ": " + error.what()).c_str());
    }
    return *handle;
  }

  prometheus::Registry registry_{prometheus::Registry::InsertBehavior::Merge};
  mutable std::mutex mutex_;
  Handles<FlushedCounter> counters_;
  Handles<Gauge> gauges_;
  Handles<Histogram> histograms_;
};

}  // namespace

std::unique_ptr<Metrics> make_metrics() { return std::make_unique<PromMetrics>(); }

}  // namespace nezha::obs
