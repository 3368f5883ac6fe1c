#include "webhook/controller/trust_keeper.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "nezha/base/limits.h"
#include "webhook/annotations.h"
#include "webhook/controller/leaf_set.h"
#include "webhook/controller/short_hash.h"
#include "webhook/controller/timestamp.h"
#include "webhook/file_version.h"
#include "webhook/trust.h"

namespace nezha::webhook {
namespace {

using Json = nlohmann::json;

const k8s::Resource kSecrets{"", "v1", "secrets"};
const k8s::Resource kConfigMaps{"", "v1", "configmaps"};
const k8s::Resource kRegistrations{"admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations"};

// Since when the CAs are kept although nothing is intercepted.
constexpr const char* kUnusedSince = "nezha.io/unused-since";
constexpr const char* kRemoved = "removed";

Result<Json> parse_object(const std::string& text, const std::string& what) {
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return fail(Remedy::kRetryLater, what + ": the API server's answer is no JSON object");
  return json;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) out += part + "\n";
  return out;
}

size_t bytes_of(const Authorities& authorities) {
  size_t bytes = 0;
  for (const auto& [key, text] : write_authorities(authorities)) bytes += key.size() + text.size();
  return bytes;
}

std::string version_of(const Json& object) {
  return object.value("metadata", Json::object()).value("resourceVersion", "");
}

Json config_map_of(Json metadata, const Json& content) {
  return Json{{"apiVersion", "v1"},
              {"kind", "ConfigMap"},
              {"metadata", std::move(metadata)},
              {"data", content.at("data")},
              {"binaryData", content.at("binaryData")}};
}

}  // namespace

std::vector<std::string> intercepted_hosts(const config::Settings& settings) {
  std::set<std::string> hosts;
  for (const auto& upstream : settings.upstreams) {
    if (upstream.tls != config::TlsMode::kIntercept) continue;
    for (const auto& host : upstream.hosts)
      if (hosts.size() < limits::kInterceptedHostsMax) hosts.insert(host.get());
  }
  return {hosts.begin(), hosts.end()};
}

TrustKeeper::TrustKeeper(TrustKeeperSettings settings, k8s::ApiClient& api, const Clock& clock, obs::Metrics& metrics,
                         obs::Log& log)
    : settings_(std::move(settings)),
      api_(api),
      clock_(clock),
      log_(log),
      writes_(metrics.counter("nezha_webhook_trust_writes_total",
                              "Writes of CAs, certificates of intercepted hosts and trust bundles.")),
      failures_(metrics.counter("nezha_webhook_trust_failures_total",
                                "Attempts that failed to give a namespace its trust bundle, or to remove it.")),
      name_spaces_(metrics.gauge("nezha_webhook_trusted_namespaces", "Namespaces that have a trust bundle.")) {}

void TrustKeeper::note(const Namespace& name_space) {
  if (noted_.size() < limits::kNotedNamespacesMax) noted_.insert(name_space);
}

Result<> TrustKeeper::reconcile(const TrustView& view) {
  soon_due_ = false;
  written_ = 0;
  if (!settings_.enabled || view.policy == nullptr) return ok();
  name_spaces_.set(static_cast<double>(view.present.size()));
  const std::vector<std::string> hosts = intercepted_hosts(*view.policy->settings);
  if (hosts.empty()) return retire(view);
  idle_since_.reset();
  retired_ = false;
  NEZHA_TRY(load_roots());
  NEZHA_TRY(const bool owned, read_owner());
  if (!owned) {
    soon_due_ = true;
    return ok();
  }
  const std::set<Namespace> wanted = wanted_namespaces(view);
  const bool sidecars = view.policy->settings->webhook.sidecar.has_value();
  NEZHA_TRY(const Authorities authorities, settle_authorities(hosts, sidecars ? wanted : std::set<Namespace>()));
  NEZHA_TRY(settle_leaf_secret(settings_.release, settings_.leaf_secret, authorities.at(kCacheAuthority).ca, hosts));
  settle_namespaces(wanted, authorities, hosts, view);
  return ok();
}

Result<> TrustKeeper::load_roots() {
  if (!roots_.empty()) return ok();
  NEZHA_TRY(const std::string text, read_file(settings_.roots_file, limits::kCertificateBytesMax));
  roots_ = pki::split_bundle(text);
  if (roots_.empty()) {
    return fail(Remedy::kFixInput, settings_.roots_file +
                                       " holds no certificates: without the public roots no pod is given a bundle; "
                                       "install ca-certificates or give --roots");
  }
  return ok();
}

// False: there is no registration that could own anything.
Result<bool> TrustKeeper::read_owner() {
  const auto read = api_.get(kRegistrations, Namespace(), settings_.registration);
  if (!read && read.error().remedy == Remedy::kAbsent) return false;
  if (!read) return fail(read.error().remedy, read.error().message);
  NEZHA_TRY(const Json registration, parse_object(read.value(), "the registration"));
  owner_uid_ = registration.value("metadata", Json::object()).value("uid", "");
  return !owner_uid_.empty();
}

// A namespace that has a bundle keeps it: pods there may run that mount it.
std::set<Namespace> TrustKeeper::wanted_namespaces(const TrustView& view) {
  std::set<Namespace> wanted = view.labelled;
  for (const auto& [name_space, record] : view.present) {
    wanted.insert(name_space);
    noted_.erase(name_space);
  }
  wanted.insert(noted_.begin(), noted_.end());
  for (const char* system : {"kube-system", "kube-public", "kube-node-lease"}) wanted.erase(Namespace(system));
  wanted.erase(settings_.release);
  return wanted;
}

// True for a namespace's authority that has been unwanted for long: another replica may know more than this one.
bool TrustKeeper::forgotten(const std::string& authority, bool wanted) {
  if (wanted || authority == kCacheAuthority) {
    unwanted_since_.erase(authority);
    return false;
  }
  const auto since = unwanted_since_.try_emplace(authority, clock_.now()).first->second;
  return clock_.now() >= since + settings_.forget_grace;
}

Result<> TrustKeeper::settle_each(const std::vector<std::string>& hosts, const std::set<std::string>& wanted,
                                  Authorities& authorities) {
  for (const std::string& name : wanted) {
    const auto found = authorities.find(name);
    std::optional<Authority> before;
    if (found != authorities.end()) before = found->second;
    if (!before && name != kCacheAuthority && bytes_of(authorities) > limits::kAuthoritiesBytesMax) {
      log_.error("no room for the CA of another namespace; its sidecars relay https://", {{"authority", name}});
      continue;
    }
    NEZHA_TRY(authorities[name], settle_authority(std::move(before), hosts, clock_.wall(), settings_.times));
  }
  std::erase_if(authorities, [&](const auto& entry) { return forgotten(entry.first, wanted.contains(entry.first)); });
  return ok();
}

Result<Authorities> TrustKeeper::settle_authorities(const std::vector<std::string>& hosts,
                                                    const std::set<Namespace>& sidecars) {
  const std::string& name = settings_.ca_secret;
  auto read = api_.get(kSecrets, settings_.release, name);
  const bool absent = !read && read.error().remedy == Remedy::kAbsent;
  if (!read && !absent) return fail(read.error().remedy, read.error().message);
  Json secret{{"apiVersion", "v1"},
              {"kind", "Secret"},
              {"type", "Opaque"},
              {"metadata", {{"name", name}, {"namespace", settings_.release.get()}}}};
  if (!absent) {
    NEZHA_TRY(secret, parse_object(read.value(), "the Secret " + name));
  }
  const Authorities before = read_authorities(read_secret_data(secret));
  Authorities after = before;
  std::set<std::string> wanted{kCacheAuthority};
  for (const Namespace& name_space : sidecars) wanted.insert(authority_of(name_space));
  NEZHA_TRY(settle_each(hosts, wanted, after));
  auto& metadata = secret["metadata"];
  const bool was_unused = metadata.contains("annotations") && metadata["annotations"].is_object() &&
                          metadata["annotations"].erase(kUnusedSince) > 0;
  if (after == before && !was_unused) return after;
  NEZHA_TRY(note_rewrite(name));
  secret = with_secret_data(std::move(secret), write_authorities(after));
  if (absent) {
    NEZHA_TRY(const auto created, api_.create(kSecrets, settings_.release, secret.dump()));
    if (!created) return fail(Remedy::kRetryLater, "another replica just created the Secret " + name);
  } else {
    NEZHA_TRY(api_.update(kSecrets, settings_.release, name, secret.dump()));
  }
  wrote();
  log_.info("CAs of intercepted hosts written", {{"secret", name}, {"cas", std::to_string(after.size())}});
  return after;
}

// Replicas of two versions, or with two configurations, may disagree about an object: they change it slowly then.
Result<> TrustKeeper::note_rewrite(const std::string& object) {
  auto& times = rewrites_[object];
  while (!times.empty() && clock_.now() >= times.front() + std::chrono::minutes(1)) times.pop_front();
  if (times.size() >= settings_.rewrites_per_minute_max)
    return fail(Remedy::kRetryLater, object + " was changed too often; another replica or somebody else disagrees");
  times.push_back(clock_.now());
  return ok();
}

void TrustKeeper::wrote() {
  ++written_;
  writes_.add();
}

// Neither a user's nor another release's.
bool TrustKeeper::is_ours(const Json& object) const {
  const Json labels = object.value("metadata", Json::object()).value("labels", Json());
  return labels.is_object() && labels.value(kTrustLabel, Json()) == "true" &&
         owner_name_of(object) == settings_.registration;
}

Json TrustKeeper::metadata_of(const Namespace& name_space, const std::string& name) const {
  Json metadata{{"name", name}, {"namespace", name_space.get()}};
  if (name_space == settings_.release) return metadata;
  metadata["labels"] = {{kTrustLabel, "true"}};
  metadata["ownerReferences"] = Json::array({{{"apiVersion", "admissionregistration.k8s.io/v1"},
                                              {"kind", "MutatingWebhookConfiguration"},
                                              {"name", settings_.registration},
                                              {"uid", owner_uid_}}});
  return metadata;
}

Result<> TrustKeeper::settle_leaf_secret(const Namespace& name_space, const std::string& name, const pki::Identity& ca,
                                         const std::vector<std::string>& hosts) {
  const std::string object = name_space.get() + "/" + name;
  const std::string stamp = short_hash(ca.certificate_pem + joined(hosts) + owner_uid_);
  const auto checked = checked_.find(object);
  if (checked != checked_.end() && checked->second.stamp == stamp &&
      clock_.now() < checked->second.at + settings_.recheck)
    return ok();
  const bool is_tenants = name_space != settings_.release;
  Json secret{
      {"apiVersion", "v1"}, {"kind", "Secret"}, {"type", "Opaque"}, {"metadata", metadata_of(name_space, name)}};
  auto read = api_.get(kSecrets, name_space, name);
  const bool absent = !read && read.error().remedy == Remedy::kAbsent;
  if (!read && !absent) return fail(read.error().remedy, read.error().message);
  if (!absent) {
    NEZHA_TRY(secret, parse_object(read.value(), "the Secret " + object));
    if (is_tenants && !is_ours(secret))
      return fail(Remedy::kGiveUp, "the namespace has a Secret " + name + " that is not this release's");
  }
  const LeafSet before = read_leaf_set(read_secret_data(secret));
  NEZHA_TRY(const LeafSet after, settle_leaves(before, ca, hosts, clock_.wall(), settings_.times));
  const bool owned = !is_tenants || owner_uid_of(secret) == owner_uid_;
  if (absent || after != before || !owned) {
    if (is_tenants) secret["metadata"]["ownerReferences"] = metadata_of(name_space, name)["ownerReferences"];
    secret = with_secret_data(std::move(secret), write_leaf_set(after));
    if (absent) {
      NEZHA_TRY(const auto created, api_.create(kSecrets, name_space, secret.dump()));
      if (!created) return fail(Remedy::kRetryLater, "another replica just created the Secret " + object);
    } else {
      NEZHA_TRY(api_.update(kSecrets, name_space, name, secret.dump()));
    }
    wrote();
    log_.info("certificates of intercepted hosts written",
              {{"secret", object}, {"hosts", std::to_string(after.leaves.size())}});
  }
  checked_[object] = {stamp, clock_.now()};
  return ok();
}

void TrustKeeper::settle_namespaces(const std::set<Namespace>& wanted, const Authorities& authorities,
                                    const std::vector<std::string>& hosts, const TrustView& view) {
  std::erase_if(failing_, [&](const auto& entry) { return !wanted.contains(entry.first); });
  std::erase_if(digests_, [&](const auto& entry) { return !wanted.contains(entry.first); });
  for (const Namespace& name_space : wanted) {
    const auto failing = failing_.find(name_space);
    if (failing != failing_.end() && clock_.now() < failing->second.next) {
      soon_due_ |= failing->second.delay <= settings_.recheck;
      continue;
    }
    if (written_ > limits::kNamespacesPerPassMax) {
      soon_due_ = true;
      return;
    }
    const auto settled = settle_namespace(name_space, authorities, hosts, view);
    if (settled)
      failing_.erase(name_space);
    else
      failed(name_space, settled.error());
  }
}

void TrustKeeper::failed(const Namespace& name_space, const Error& error) {
  if (error.remedy == Remedy::kAbsent) {  // the namespace itself is gone
    noted_.erase(name_space);
    failing_.erase(name_space);
    return;
  }
  failures_.add();
  const bool again = failing_.contains(name_space);
  Attempt& attempt = failing_[name_space];
  attempt.delay = again ? std::min(attempt.delay * 2, settings_.retry_max) : settings_.retry_first;
  attempt.next = clock_.now() + attempt.delay;
  soon_due_ |= attempt.delay <= settings_.recheck;
  // A write that another replica was faster with is part of the work.
  const bool part_of_the_work = error.remedy == Remedy::kRetryLater && !again;
  if (part_of_the_work || attempt.told == error.message) return;
  attempt.told = error.message;
  log_.warning("no trust bundle for a namespace, https:// is relayed there; will try again",
               {{"namespace", name_space.get()}, {"why", error.message}});
}

Result<> TrustKeeper::settle_namespace(const Namespace& name_space, const Authorities& authorities,
                                       const std::vector<std::string>& hosts, const TrustView& view) {
  TrustBundle bundle{roots_, hosts, {}};
  const auto add = [&](const std::string& certificate) {
    auto& all = bundle.certificates_pem;
    if (std::find(all.begin(), all.end(), certificate) == all.end()) all.push_back(certificate);
  };
  for (const auto& root : pki::split_bundle(view.extra_roots_pem)) add(root);
  for (const auto& ca : trusted_cas(authorities.at(kCacheAuthority))) add(ca);
  const auto own = authorities.find(authority_of(name_space));
  if (own != authorities.end()) {
    for (const auto& ca : trusted_cas(own->second)) add(ca);
    if (view.policy->settings->webhook.sidecar) {
      NEZHA_TRY(settle_leaf_secret(name_space, kSidecarCertificates, own->second.ca, hosts));
      bundle.sidecar_hosts = hosts;
    }
  }
  const auto present = view.present.find(name_space);
  return settle_bundle(name_space, bundle, present == view.present.end() ? nullptr : &present->second);
}

Result<std::string> TrustKeeper::digest_of(const Namespace& name_space, const TrustBundle& bundle) {
  const std::string stamp =
      short_hash(joined(bundle.certificates_pem) + joined(bundle.hosts) + "\n" + joined(bundle.sidecar_hosts));
  Digest& known = digests_[name_space];
  if (known.stamp == stamp) return known.text;
  NEZHA_TRY(const Json content, trust_content(bundle));
  known = {stamp, trust_digest(content)};
  return known.text;
}

Result<> TrustKeeper::settle_bundle(const Namespace& name_space, const TrustBundle& bundle,
                                    const TrustRecord* present) {
  size_t bytes = 0;
  for (const auto& pem : bundle.certificates_pem) bytes += pem.size();
  if (bytes > limits::kRootsBytesMax)
    return fail(Remedy::kFixInput, "the roots have " + std::to_string(bytes) +
                                       " bytes, more than fit into a ConfigMap; shorten extra-roots.pem");
  NEZHA_TRY(const std::string digest, digest_of(name_space, bundle));
  if (present != nullptr && present->digest == digest && present->owner_uid == owner_uid_) return ok();
  return write_bundle(name_space, bundle, digest);
}

Result<> TrustKeeper::write_bundle(const Namespace& name_space, const TrustBundle& bundle, const std::string& digest) {
  const std::string object = name_space.get() + "/" + kTrustConfigMap;
  auto read = api_.get(kConfigMaps, name_space, kTrustConfigMap);
  const bool absent = !read && read.error().remedy == Remedy::kAbsent;
  if (!read && !absent) return fail(read.error().remedy, read.error().message);
  Json live;
  if (!absent) {
    NEZHA_TRY(live, parse_object(read.value(), "the ConfigMap " + object));
    if (!is_ours(live))
      return fail(Remedy::kGiveUp,
                  std::string("the namespace has a ConfigMap ") + kTrustConfigMap + " that is not this release's");
    if (trust_digest(live) == digest && owner_uid_of(live) == owner_uid_) return ok();  // the watch is behind
    NEZHA_TRY(note_rewrite(object));
  }
  NEZHA_TRY(const Json content, trust_content(bundle));
  Json wanted = config_map_of(metadata_of(name_space, kTrustConfigMap), content);
  if (absent) {
    NEZHA_TRY(const auto created, api_.create(kConfigMaps, name_space, wanted.dump()));
    if (!created) return fail(Remedy::kRetryLater, "another replica just created the ConfigMap " + object);
  } else {
    wanted["metadata"]["resourceVersion"] = version_of(live);
    NEZHA_TRY(api_.update(kConfigMaps, name_space, kTrustConfigMap, wanted.dump()));
  }
  wrote();
  log_.info("trust bundle written", {{"configmap", object}, {"hosts", std::to_string(bundle.hosts.size())}});
  return ok();
}

// Nothing is to be intercepted: the caches' certificates are removed, and later the rest.
Result<> TrustKeeper::retire(const TrustView& view) {
  if (retired_ && view.present.empty()) return ok();
  if (!idle_since_) idle_since_ = clock_.now();
  if (clock_.now() < *idle_since_ + settings_.removal_grace) {
    soon_due_ = true;
    return ok();
  }
  digests_.clear();
  noted_.clear();
  NEZHA_TRY(empty_secret(settings_.leaf_secret));
  NEZHA_TRY(const bool over, overlap_is_over());
  for (const auto& [name_space, record] : view.present) {
    const auto failing = failing_.find(name_space);
    if (failing != failing_.end() && clock_.now() < failing->second.next) continue;
    const auto removed = remove_from(name_space, over ? &record : nullptr);
    if (removed)
      failing_.erase(name_space);
    else
      failed(name_space, removed.error());
  }
  if (!over || !view.present.empty()) return ok();
  NEZHA_TRY(empty_secret(settings_.ca_secret));
  retired_ = true;
  return ok();
}

// The chart owns the object; only its content is ours.
Result<> TrustKeeper::empty_secret(const std::string& name) {
  const auto read = api_.get(kSecrets, settings_.release, name);
  if (!read && read.error().remedy == Remedy::kAbsent) return ok();
  if (!read) return fail(read.error().remedy, read.error().message);
  NEZHA_TRY(Json secret, parse_object(read.value(), "the Secret " + name));
  if (read_secret_data(secret).empty()) return ok();
  secret = with_secret_data(std::move(secret), {});
  NEZHA_TRY(api_.update(kSecrets, settings_.release, name, secret.dump()));
  wrote();
  log_.info("nothing is intercepted any more", {{"emptied", name}});
  return ok();
}

// Whether no pod of before can run, or wait to, any more.
Result<bool> TrustKeeper::overlap_is_over() {
  const auto read = api_.get(kSecrets, settings_.release, settings_.ca_secret);
  if (!read && read.error().remedy == Remedy::kAbsent) return true;
  if (!read) return fail(read.error().remedy, read.error().message);
  NEZHA_TRY(Json secret, parse_object(read.value(), "the Secret " + settings_.ca_secret));
  if (read_secret_data(secret).empty()) return true;
  auto& metadata = secret["metadata"];
  if (!metadata.contains("annotations") || !metadata["annotations"].is_object())
    metadata["annotations"] = Json::object();
  const auto since = parse_timestamp(metadata["annotations"].value(kUnusedSince, ""));
  if (since) return clock_.wall() >= *since + settings_.times.overlap;
  metadata["annotations"][kUnusedSince] = to_timestamp(clock_.wall());
  NEZHA_TRY(api_.update(kSecrets, settings_.release, settings_.ca_secret, secret.dump()));
  wrote();
  return false;
}

// The certificates of sidecars; with `record`, the bundle too.
Result<> TrustKeeper::remove_from(const Namespace& name_space, const TrustRecord* record) {
  auto& checked = checked_[name_space.get() + "/" + kSidecarCertificates];
  if (checked.stamp != kRemoved) {
    const auto read = api_.get(kSecrets, name_space, kSidecarCertificates);
    if (!read && read.error().remedy != Remedy::kAbsent) return fail(read.error().remedy, read.error().message);
    if (read) {
      NEZHA_TRY(const Json secret, parse_object(read.value(), "the Secret of sidecars"));
      if (is_ours(secret)) {
        NEZHA_TRY(api_.remove(kSecrets, name_space, kSidecarCertificates, version_of(secret)));
      }
    }
    checked = {kRemoved, clock_.now()};
  }
  if (record == nullptr) return ok();
  NEZHA_TRY(api_.remove(kConfigMaps, name_space, kTrustConfigMap, record->resource_version));
  wrote();
  log_.info("trust bundle removed", {{"namespace", name_space.get()}});
  return ok();
}

}  // namespace nezha::webhook
