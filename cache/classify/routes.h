// Routes: which upstream a host belongs to; Settings compiled for look-up by host. Immutable.
// RouteStore holds the Routes in force; a version number lets each loop keep its own copy of the pointer.
// Threads: Routes any; RouteStore any.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "nezha/config/settings.h"

namespace nezha::cache {

class Routes {
 public:
  explicit Routes(std::shared_ptr<const config::Settings> settings);
  // The upstream of a host (lower case, no port), or null. Lives as long as the Routes.
  const config::Upstream* find(std::string_view host) const;
  const config::Settings& settings() const { return *settings_; }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  std::shared_ptr<const config::Settings> settings_;
  std::unordered_map<std::string, const config::Upstream*, Hash, std::equal_to<>> by_host_;
};

class RouteStore {
 public:
  explicit RouteStore(std::shared_ptr<const Routes> routes) : routes_(std::move(routes)) {}
  uint64_t version() const { return version_.load(std::memory_order_acquire); }
  std::shared_ptr<const Routes> current() const {
    std::lock_guard lock(mutex_);
    return routes_;
  }
  void publish(std::shared_ptr<const Routes> routes) {
    std::lock_guard lock(mutex_);
    routes_ = std::move(routes);
    version_.fetch_add(1, std::memory_order_release);
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const Routes> routes_;
  std::atomic<uint64_t> version_{1};
};

}  // namespace nezha::cache
