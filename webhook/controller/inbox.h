// Inbox: what the watches learned, until the controller's thread takes it. The last value of each kind wins.
// Threads: any.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <utility>
#include <vector>

#include "nezha/base/named.h"
#include "webhook/controller/config_map.h"
#include "webhook/controller/trust_bundle.h"

namespace nezha::webhook {

// Nothing in a member: no news. The inner optional says whether the object exists.
struct News {
  std::optional<std::optional<ConfigMap>> admin;
  std::optional<std::optional<ConfigMap>> ancestor;
  std::optional<std::vector<ConfigMap>> delegated;
  std::optional<std::vector<IpAddress>> cache_addresses;
  std::optional<std::vector<IpAddress>> intercept_addresses;
  std::optional<std::map<Namespace, TrustRecord>> trust;  // bundles that exist
  std::optional<std::set<Namespace>> labelled;            // namespaces that opt in
  std::set<Namespace> noted;                              // pods there could have used a bundle; bounded by who adds
  bool tls = false;                                       // the Secret or the registration changed

  bool configuration() const {
    return admin || ancestor || delegated || cache_addresses || intercept_addresses || trust;
  }
};

class Inbox {
 public:
  template <class Change>
  void put(const Change& change) {
    std::lock_guard lock(mutex_);
    change(news_);
    filled_ = true;
    wake_.notify_all();
  }

  // Waits for news, at most this long; empty news when none came or a stop was asked for.
  News take(const std::stop_token& stop, std::chrono::milliseconds wait_max) {
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, stop, wait_max, [this] { return filled_; });
    filled_ = false;
    return std::exchange(news_, News{});
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any wake_;
  News news_;
  bool filled_ = false;
};

}  // namespace nezha::webhook
