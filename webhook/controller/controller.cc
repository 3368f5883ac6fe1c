#include "webhook/controller/controller.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>
#include <vector>

#include "nezha/base/limits.h"
#include "webhook/annotations.h"
#include "webhook/controller/cache_service.h"
#include "webhook/controller/inbox.h"
#include "webhook/controller/policy_builder.h"
#include "webhook/trust.h"

namespace nezha::webhook {
namespace {

constexpr const char* kDelegatedSelector = "nezha.io/config=true";
constexpr const char* kConfigurationCondition = "configuration";
constexpr std::chrono::seconds kNotedInterval{5};
constexpr size_t kBundlesPerPage = 20;  // each is up to 1 MiB, and a page at most 16

std::optional<ConfigMap> only_config_map(const k8s::Snapshot& snapshot) {
  if (snapshot.empty()) return std::nullopt;
  return read_config_map(*snapshot.begin()->second);
}

bool is_terminating(const std::string& name_space_json) {
  const auto json = nlohmann::json::parse(name_space_json, nullptr, false);
  return json.is_object() && json.contains("metadata") && json["metadata"].contains("deletionTimestamp");
}

std::string text_of(const std::vector<IpAddress>& addresses) {
  std::string out;
  for (const IpAddress& address : addresses) out += (out.empty() ? "" : " ") + address.get();
  return out.empty() ? "none" : out;
}

}  // namespace

class Controller::Impl {
 public:
  Impl(ControllerSettings settings, const k8s::ApiServer& api_server, PolicyStore& policies,
       LiveCertificate& certificate, Readiness& readiness, const Clock& clock, obs::Metrics& metrics, obs::Log& log)
      : settings_(std::move(settings)),
        api_server_(api_server),
        policies_(policies),
        readiness_(readiness),
        clock_(clock),
        log_(log),
        generation_(metrics.gauge("nezha_webhook_policy_generation", "Counts the configurations put in force.")),
        invalid_(metrics.gauge("nezha_webhook_config_invalid", "ConfigMaps that are wrong now.")),
        errors_(metrics.counter("nezha_webhook_config_errors_total", "Versions of ConfigMaps that were wrong.")),
        restarts_(metrics.counter("nezha_webhook_watch_restarts_total", "Watches that had to begin anew.")),
        api_(api_server),
        events_(api_, clock, log),
        builder_(settings_.cache_address),
        tls_(settings_.tls, api_, certificate, events_, readiness, clock, metrics, log),
        auditor_(settings_.audit, api_, events_, clock, metrics, log),
        trust_(settings_.trust, api_, clock, metrics, log) {
    describe_missing();
  }

  ~Impl() { stop(); }

  void note_untrusted(const Namespace& name_space) {
    // A burst of pods where nothing can be made must not wake the controller for each.
    if (!is_news(name_space)) return;
    inbox_.put([&](News& news) { news.noted.insert(name_space); });
  }

  void start() {
    watch_configuration();
    watch_tls();
    if (settings_.trust.enabled) watch_trust();
    thread_ = std::jthread([this](std::stop_token stop) { run(stop); });
  }

  void stop() {
    thread_.request_stop();
    api_.stop();
    watches_.clear();
    if (thread_.joinable()) thread_.join();
  }

 private:
  bool is_news(const Namespace& name_space) {
    const SteadyTime now = clock_.now();
    std::lock_guard lock(noted_mutex_);
    std::erase_if(noted_, [&](const auto& entry) { return now >= entry.second + kNotedInterval; });
    return noted_.size() < limits::kNotedNamespacesMax && noted_.try_emplace(name_space, now).second;
  }

  k8s::Scope one(k8s::Resource resource, const Namespace& name_space, const std::string& name) const {
    return {std::move(resource), name_space, "", "metadata.name=" + name};
  }

  void watch(k8s::Scope scope, k8s::WatchOptions options, k8s::Watch::OnChange on_change) {
    watches_.push_back(std::make_unique<k8s::Watch>(api_server_, std::move(scope), std::move(options),
                                                    std::move(on_change), log_, &restarts_));
  }
  void watch(k8s::Scope scope, k8s::Watch::OnChange on_change) {
    watch(std::move(scope), settings_.watch, std::move(on_change));
  }

  void watch_configuration() {
    const k8s::Resource config_maps{"", "v1", "configmaps"};
    const Namespace& release = settings_.tls.release;
    watch(one(config_maps, release, settings_.admin_config), [this](const k8s::Snapshot& snapshot) {
      inbox_.put([&](News& news) { news.admin = only_config_map(snapshot); });
    });
    watch(one(config_maps, release, settings_.ancestor_config), [this](const k8s::Snapshot& snapshot) {
      inbox_.put([&](News& news) { news.ancestor = only_config_map(snapshot); });
    });
    if (settings_.delegation) {
      watch({config_maps, Namespace(), kDelegatedSelector, ""},
            [this](const k8s::Snapshot& snapshot) { put_delegated(snapshot); });
    }
    if (settings_.cache_address) return;
    watch(one({"", "v1", "services"}, release, settings_.cache_service), [this](const k8s::Snapshot& snapshot) {
      inbox_.put([&](News& news) {
        news.cache_addresses =
            snapshot.empty() ? std::vector<IpAddress>() : cluster_ips(snapshot.begin()->second->json);
      });
    });
  }

  void put_delegated(const k8s::Snapshot& snapshot) {
    std::vector<ConfigMap> config_maps;
    for (const auto& [key, object] : snapshot) {
      if (!is_admin_config(key)) config_maps.push_back(read_config_map(*object));
    }
    inbox_.put([&](News& news) { news.delegated = std::move(config_maps); });
  }

  // The admin's own ConfigMaps carry more than delegation allows, whatever label somebody gave them.
  bool is_admin_config(const k8s::ObjectKey& key) const {
    return key.name_space == settings_.tls.release &&
           (key.name == settings_.admin_config || key.name == settings_.ancestor_config);
  }

  void watch_tls() {
    const auto changed = [this](const k8s::Snapshot&) { inbox_.put([](News& news) { news.tls = true; }); };
    watch(one({"", "v1", "secrets"}, settings_.tls.release, settings_.tls.secret), changed);
    watch(one({"admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations"}, Namespace(),
              settings_.tls.registration),
          changed);
  }

  void watch_trust() {
    const Namespace& release = settings_.tls.release;
    watch(one({"", "v1", "services"}, release, settings_.intercept_service), [this](const k8s::Snapshot& snapshot) {
      inbox_.put([&](News& news) {
        news.intercept_addresses =
            snapshot.empty() ? std::vector<IpAddress>() : cluster_ips(snapshot.begin()->second->json);
      });
    });
    k8s::WatchOptions reduced = settings_.watch;
    reduced.page_items = kBundlesPerPage;
    reduced.reduce = reduced_trust;
    watch({{"", "v1", "configmaps"}, Namespace(), std::string(kTrustLabel) + "=true", ""}, reduced,
          [this](const k8s::Snapshot& snapshot) {
            std::map<Namespace, TrustRecord> records;
            for (const auto& [key, object] : snapshot) {
              if (key.name != kTrustConfigMap) continue;
              TrustRecord record = read_trust(*object);
              if (record.owner_name == settings_.trust.registration) records[key.name_space] = std::move(record);
            }
            inbox_.put([&](News& news) { news.trust = std::move(records); });
          });
    watch({{"", "v1", "namespaces"}, Namespace(), std::string(kInjectLabel) + "=true", ""},
          [this](const k8s::Snapshot& snapshot) {
            std::set<Namespace> labelled;
            for (const auto& [key, object] : snapshot)
              if (!is_terminating(object->json)) labelled.insert(Namespace(key.name));
            inbox_.put([&](News& news) { news.labelled = std::move(labelled); });
          });
  }

  void run(const std::stop_token& stop) {
    std::chrono::milliseconds wait{0};
    std::chrono::milliseconds retry = settings_.retry_first;
    while (true) {
      const News news = inbox_.take(stop, wait);
      if (stop.stop_requested()) return;
      take_trust(news);
      if (news.configuration()) take_configuration(news);
      const bool kept_tls = keep_tls(stop);
      const bool kept = keep_trust(stop) && kept_tls;
      if (kept_tls && complete() && !stop.stop_requested()) auditor_.look(*policies_.current());
      const bool told = events_.flush();
      if (kept && told) {
        retry = settings_.retry_first;
        wait = tls_.soon_due() || trust_.soon_due() ? settings_.soon : settings_.resync;
      } else {
        wait = retry;
        retry = std::min(retry * 2, settings_.retry_max);
      }
    }
  }

  bool keep_tls(const std::stop_token& stop) {
    const auto policy = policies_.current();
    return settled(tls_.reconcile(complete() ? policy.get() : nullptr), stop, tls_failure_,
                   "certificates or registration not settled, will try again");
  }

  bool keep_trust(const std::stop_token& stop) {
    const auto policy = policies_.current();
    trust_view_.policy = complete() && labelled_known_ && !admin_unknown_ ? policy.get() : nullptr;
    return settled(trust_.reconcile(trust_view_), stop, trust_failure_,
                   "certificates of intercepted hosts not settled, will try again");
  }

  // What is failing in the passes of one keeper.
  struct Failure {
    bool now = false;
    std::string told;
  };

  bool settled(const Result<>& kept, const std::stop_token& stop, Failure& failure, const char* message) {
    if (kept || stop.stop_requested()) {
      failure = {};
      return true;
    }
    // One failure is part of the work, e.g. a write that another replica was faster with; more are worth a look.
    const bool again = std::exchange(failure.now, true);
    if (again && failure.told != kept.error().message) {
      failure.told = kept.error().message;
      log_.warning(message, {{"why", failure.told}});
    }
    return false;
  }

  void take_trust(const News& news) {
    for (const Namespace& name_space : news.noted) trust_.note(name_space);
    if (news.labelled) trust_view_.labelled = *news.labelled;
    labelled_known_ |= news.labelled.has_value();
    trust_known_ |= news.trust.has_value();
    if (!news.trust) return;
    trust_view_.present = *news.trust;
    std::map<Namespace, TrustedHosts> trusted;
    for (const auto& [name_space, record] : *news.trust) trusted[name_space] = record.trusted;
    builder_.set_trusted(std::move(trusted));
  }

  void take_configuration(const News& news) {
    if (news.admin) builder_.set_admin(*news.admin);
    if (news.ancestor) builder_.set_ancestor(*news.ancestor);
    if (news.delegated) delegated_ = *news.delegated;
    if (news.cache_addresses) builder_.set_cache_addresses(*news.cache_addresses);
    if (news.intercept_addresses) builder_.set_intercept_addresses(*news.intercept_addresses);
    intercept_known_ |= news.intercept_addresses.has_value();
    admin_known_ |= news.admin.has_value();
    ancestor_known_ |= news.ancestor.has_value();
    delegated_known_ |= news.delegated.has_value();
    cache_known_ |= news.cache_addresses.has_value();
    // Before the admin's configuration is known nothing is delegated, and that would be told as an error.
    if (admin_known_ && delegated_) builder_.set_delegated(*std::exchange(delegated_, std::nullopt));
    auto outcome = builder_.build();
    for (const Finding& finding : outcome.findings) tell(finding);
    invalid_.set(static_cast<double>(outcome.invalid));
    admin_unknown_ = outcome.admin_unknown;
    trust_view_.extra_roots_pem = std::move(outcome.extra_roots_pem);
    publish(std::move(outcome.policy));
    describe_missing();
  }

  void publish(std::shared_ptr<const Policy> policy) {
    log_.info("configuration in force", {{"upstreams", std::to_string(policy->settings->upstreams.size())},
                                         {"rules", std::to_string(policy->settings->injection.size())},
                                         {"namespaces_with_rules", std::to_string(policy->delegated.size())},
                                         {"ancestor_rules", std::to_string(policy->ancestor.size())},
                                         {"cache", text_of(policy->cache_addresses)}});
    readiness_.note("cache", policy->cache_addresses.empty() && cache_known_
                                 ? "the Service " + settings_.cache_service +
                                       " does not exist or has no cluster IP, so pods are admitted unchanged"
                                 : "");
    policies_.publish(std::move(policy));
    generation_.add(1);
  }

  void tell(const Finding& finding) {
    const std::string where = finding.about.name_space.get() + "/" + finding.about.name;
    if (finding.good) {
      log_.info("ConfigMap is valid again", {{"configmap", where}});
      events_.add({finding.about, false, "ConfigurationInForce", finding.message});
      return;
    }
    errors_.add();
    log_.warning("ConfigMap is invalid; the last good version stays in force",
                 {{"configmap", where}, {"why", finding.message}});
    events_.add({finding.about, true, "InvalidConfiguration", finding.message});
  }

  // Every part of the configuration has been listed at least once.
  bool complete() const {
    return admin_known_ && ancestor_known_ && (delegated_known_ || !settings_.delegation) &&
           (cache_known_ || settings_.cache_address) &&
           ((intercept_known_ && trust_known_) || !settings_.trust.enabled);
  }

  void describe_missing() {
    const std::string release = settings_.tls.release.get() + "/";
    std::string missing;
    const auto miss = [&](bool known, const std::string& what) {
      if (!known) missing += (missing.empty() ? "not listed yet: " : ", ") + what;
    };
    miss(admin_known_, "ConfigMap " + release + settings_.admin_config);
    miss(ancestor_known_, "ConfigMap " + release + settings_.ancestor_config);
    miss(delegated_known_ || !settings_.delegation, "ConfigMaps labelled " + std::string(kDelegatedSelector));
    miss(cache_known_ || settings_.cache_address, "Service " + release + settings_.cache_service);
    if (settings_.trust.enabled) {
      miss(intercept_known_, "Service " + release + settings_.intercept_service);
      miss(trust_known_, "ConfigMaps labelled " + std::string(kTrustLabel) + "=true");
    }
    readiness_.set(kConfigurationCondition, missing);
  }

  const ControllerSettings settings_;
  const k8s::ApiServer api_server_;
  PolicyStore& policies_;
  Readiness& readiness_;
  const Clock& clock_;
  obs::Log& log_;
  obs::Gauge& generation_;
  obs::Gauge& invalid_;
  obs::Counter& errors_;
  obs::Counter& restarts_;
  k8s::ApiClient api_;
  EventWriter events_;
  PolicyBuilder builder_;
  TlsKeeper tls_;
  Auditor auditor_;
  TrustKeeper trust_;
  Inbox inbox_;
  std::mutex noted_mutex_;
  std::map<Namespace, SteadyTime> noted_;            // put into the inbox lately
  std::optional<std::vector<ConfigMap>> delegated_;  // not given to the builder yet
  bool admin_known_ = false;
  bool ancestor_known_ = false;
  bool delegated_known_ = false;
  bool cache_known_ = false;
  bool intercept_known_ = false;
  bool trust_known_ = false;
  bool labelled_known_ = false;
  bool admin_unknown_ = false;
  TrustView trust_view_;
  Failure tls_failure_;
  Failure trust_failure_;
  std::vector<std::unique_ptr<k8s::Watch>> watches_;
  std::jthread thread_;
};

Controller::Controller(ControllerSettings settings, const k8s::ApiServer& api_server, PolicyStore& policies,
                       LiveCertificate& certificate, Readiness& readiness, const Clock& clock, obs::Metrics& metrics,
                       obs::Log& log)
    : impl_(std::make_unique<Impl>(std::move(settings), api_server, policies, certificate, readiness, clock, metrics,
                                   log)) {}
Controller::~Controller() = default;
void Controller::start() { impl_->start(); }
void Controller::note_untrusted(const Namespace& name_space) { impl_->note_untrusted(name_space); }
void Controller::stop() { impl_->stop(); }

}  // namespace nezha::webhook
