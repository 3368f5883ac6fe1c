#include "webhook/controller/tls_keeper.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "nezha/base/check.h"
#include "webhook/controller/tls_secret.h"

namespace nezha::webhook {
namespace {

using Json = nlohmann::json;

const k8s::Resource kSecrets{"", "v1", "secrets"};
const k8s::Resource kRegistrations{"admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations"};
constexpr const char* kCertificateCondition = "certificate";
constexpr const char* kRegistrationCondition = "registration";
constexpr size_t kStepsMax = 4;  // of one pass: a rotation never needs more without waiting
constexpr size_t kRegistrationWritesPerMinuteMax = 20;
constexpr std::chrono::minutes kReplaceInterval{1};

Result<Json> parse_object(const std::string& text, const std::string& what) {
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return fail(Remedy::kRetryLater, what + ": the API server's answer is no JSON object");
  return json;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += (out.empty() ? "" : "; ") + line;
  return out;
}

// Of these CAs the one that was made last and still holds.
std::optional<std::string> newest_valid(const std::set<std::string>& cas, WallTime now) {
  std::optional<std::string> newest;
  WallTime made{};
  for (const std::string& ca : cas) {
    const auto info = pki::inspect(ca);
    if (!info || !info.value().is_ca || now >= info.value().validity.not_after) continue;
    if (newest && info.value().validity.not_before <= made) continue;
    newest = ca;
    made = info.value().validity.not_before;
  }
  return newest;
}

}  // namespace

std::vector<std::string> service_dns_names(const std::string& service, const Namespace& name_space) {
  const std::string in_space = service + "." + name_space.get();
  return {in_space + ".svc", in_space + ".svc.cluster.local", in_space, service};
}

TlsKeeper::TlsKeeper(TlsKeeperSettings settings, k8s::ApiClient& api, LiveCertificate& live, EventWriter& events,
                     Readiness& readiness, const Clock& clock, obs::Metrics& metrics, obs::Log& log)
    : settings_(std::move(settings)),
      rotation_(service_dns_names(settings_.service, settings_.release), settings_.lifetimes),
      api_(api),
      live_(live),
      events_(events),
      readiness_(readiness),
      clock_(clock),
      log_(log),
      expiry_days_(metrics.gauge("nezha_webhook_certificate_expires_in_days",
                                 "Days until the certificate in force expires; negative when it has.")),
      bundle_matches_(metrics.gauge("nezha_webhook_ca_bundle_matches",
                                    "1 when every entry of the registration trusts the certificate in force.")),
      steps_(metrics.counter("nezha_webhook_certificate_writes_total",
                             "Writes of the certificate Secret: creation, renewal, rotation.")) {
  readiness_.set(kCertificateCondition, "none loaded yet");
  readiness_.set(kRegistrationCondition, "not read yet");
}

Result<> TlsKeeper::reconcile(const Policy* policy) {
  NEZHA_TRY(std::optional<std::string> registration, read_registration());
  std::set<std::string> registered;
  if (registration) registered = registered_cas(Json::parse(*registration, nullptr, false));
  note_registered(registered);
  NEZHA_TRY(TlsState state, load_or_create(registered));
  NEZHA_TRY(state, rotate(std::move(state), registered));
  last_state_ = state;
  Result<> outcome = ok();
  if (registration) {
    auto written = register_cas(*registration, state, policy);
    if (written) {
      registration = std::move(written).value();
      registered = registered_cas(Json::parse(*registration, nullptr, false));
      note_registered(registered);
    } else {
      outcome = fail(written.error().remedy, written.error().message);
    }
  }
  serve(state, registered);
  report(registration);
  const bool next_waits = state.next_ca.has_value();
  soon_due_ = !registration || next_waits || !unwanted_since_.empty() || served_ca_pem_ != state.ca.certificate_pem;
  return outcome;
}

Result<std::optional<std::string>> TlsKeeper::read_registration() {
  auto read = api_.get(kRegistrations, Namespace(), settings_.registration);
  if (!read && read.error().remedy == Remedy::kAbsent) return std::optional<std::string>();
  if (!read) {
    readiness_.set(kRegistrationCondition, read.error().message);
    return std::move(read).as_failure();
  }
  NEZHA_TRY(parse_object(read.value(), "the registration"));
  return std::optional(std::move(read).value());
}

Result<TlsState> TlsKeeper::load_or_create(const std::set<std::string>& registered) {
  auto read = api_.get(kSecrets, settings_.release, settings_.secret);
  if (!read && read.error().remedy == Remedy::kAbsent) {
    const Json secret{{"apiVersion", "v1"},
                      {"kind", "Secret"},
                      {"type", "Opaque"},
                      {"metadata", {{"name", settings_.secret}, {"namespace", settings_.release.get()}}}};
    return fill(secret, false, "it did not exist", registered);
  }
  if (!read) {
    if (!live_.current()) readiness_.set(kCertificateCondition, read.error().message);
    return std::move(read).as_failure();
  }
  NEZHA_TRY(Json secret, parse_object(read.value(), "the Secret " + settings_.secret));
  secret_json_ = std::move(read).value();
  auto state = read_tls_secret(secret, rotation_);
  if (state && state.value()) return std::move(*state.value());
  if (state) return fill(std::move(secret), true, "it was empty", registered);
  const SteadyTime now = clock_.now();
  if (replaced_at_ && now < *replaced_at_ + kReplaceInterval) {
    return fail(Remedy::kRetryLater, "the Secret " + settings_.secret + " was made unreadable again (" +
                                         state.error().message + "); find out who writes it");
  }
  replaced_at_ = now;
  const std::string why = "it was unreadable: " + state.error().message;
  const auto metadata = secret.value("metadata", Json::object());
  events_.add({{"Secret", settings_.release, settings_.secret, metadata.value("uid", ""),
                metadata.value("resourceVersion", "")},
               true,
               "CertificateReplaced",
               "the content was replaced by a new CA and certificate because " + why});
  return fill(std::move(secret), true, why, registered);
}

// Writes a fresh state. Of several replicas one succeeds; the others fail here and load its state at the next pass.
Result<TlsState> TlsKeeper::fill(Json secret, bool exists, const std::string& why,
                                 const std::set<std::string>& registered) {
  // Replicas may still serve a leaf of the CA that the lost Secret held: it stays trusted for a while.
  std::optional<std::string> previous = newest_valid(registered, clock_.wall());
  if (last_state_) previous = last_state_->ca.certificate_pem;
  NEZHA_TRY(TlsState state, rotation_.create(clock_.wall(), std::move(previous)));
  secret = with_tls_state(std::move(secret), state);
  if (exists) {
    NEZHA_TRY(secret_json_, api_.update(kSecrets, settings_.release, settings_.secret, secret.dump()));
  } else {
    NEZHA_TRY(auto created, api_.create(kSecrets, settings_.release, secret.dump()));
    if (!created) return fail(Remedy::kRetryLater, "another replica just created the Secret " + settings_.secret);
    secret_json_ = std::move(*created);
  }
  steps_.add();
  log_.info("made a new CA and certificate", {{"secret", settings_.secret}, {"because", why}});
  return state;
}

Result<TlsState> TlsKeeper::rotate(TlsState state, const std::set<std::string>& registered) {
  for (size_t i = 0; i < kStepsMax; ++i) {
    const bool next_registered = state.next_ca && registered.count(state.next_ca->certificate_pem) != 0;
    const bool next_settled = next_registered && settled(state.next_ca->certificate_pem);
    const RotationStep step = rotation_.next_step(state, clock_.wall(), next_registered, next_settled);
    if (step == RotationStep::kNone) break;
    NEZHA_TRY(state, rotation_.apply(step, state, clock_.wall()));
    NEZHA_TRY(store(state));
    log_.info("certificates changed", {{"step", to_string(step)}, {"secret", settings_.secret}});
  }
  return state;
}

Result<> TlsKeeper::store(const TlsState& state) {
  NEZHA_TRY(Json secret, parse_object(secret_json_, "the Secret " + settings_.secret));
  secret = with_tls_state(std::move(secret), state);
  NEZHA_TRY(secret_json_, api_.update(kSecrets, settings_.release, settings_.secret, secret.dump()));
  steps_.add();
  return ok();
}

// Returns the registration as it is afterwards.
Result<std::string> TlsKeeper::register_cas(const std::string& live, const TlsState& state, const Policy* policy) {
  const std::set<std::string> present = selector_entries(Json::parse(live));
  WantedRegistration wanted;
  wanted.cas = trusted_cas(state);
  wanted.always_excluded = {Namespace("kube-system"), Namespace("kube-public"), Namespace("kube-node-lease"),
                            settings_.release};
  if (policy == nullptr) {
    wanted.kept = present;
    return update_registration(live, wanted);
  }
  wanted.selectors = wanted_selectors(*policy);
  wanted.kept = kept_entries(present, wanted);
  std::string names;
  for (const auto& [name, selector] : wanted.selectors) names += name + " ";
  if (names != rejected_selectors_) {
    auto written = update_registration(live, wanted);
    if (written || written.error().remedy != Remedy::kFixInput) return written;
    rejected_selectors_ = names;
    log_.error(
        "the API server refuses an entry for a rule's selector; the rules' own selectors have no effect until "
        "the configuration changes",
        {{"why", written.error().message}});
  }
  // The CA bundle matters more than any one rule.
  wanted.selectors.clear();
  wanted.kept = present;
  return update_registration(live, wanted);
}

std::set<std::string> TlsKeeper::kept_entries(const std::set<std::string>& present, const WantedRegistration& wanted) {
  std::set<std::string> kept;
  const SteadyTime now = clock_.now();
  std::erase_if(unwanted_since_, [&](const auto& entry) {
    return present.count(entry.first) == 0 || wanted.selectors.count(entry.first) != 0;
  });
  for (const std::string& name : present) {
    if (wanted.selectors.count(name) != 0) continue;
    const SteadyTime since = unwanted_since_.try_emplace(name, now).first->second;
    if (now < since + settings_.removal_grace) kept.insert(name);
  }
  return kept;
}

Result<std::string> TlsKeeper::update_registration(const std::string& live, const WantedRegistration& wanted) {
  const Json now = Json::parse(live);
  const Json desired = desired_registration(now, wanted);
  if (desired == now) return live;
  if (!may_write_registration()) {
    return fail(Remedy::kRetryLater, "something else keeps changing the MutatingWebhookConfiguration " +
                                         settings_.registration + "; pausing repairs for up to a minute");
  }
  NEZHA_TRY(std::string written, api_.update(kRegistrations, Namespace(), settings_.registration, desired.dump()));
  log_.info("registration updated", {{"name", settings_.registration}});
  NEZHA_TRY(parse_object(written, "the registration"));
  return written;
}

bool TlsKeeper::may_write_registration() {
  const SteadyTime now = clock_.now();
  while (!registration_writes_.empty() && now - registration_writes_.front() > std::chrono::minutes(1)) {
    registration_writes_.pop_front();
  }
  if (registration_writes_.size() >= kRegistrationWritesPerMinuteMax) return false;
  registration_writes_.push_back(now);
  return true;
}

void TlsKeeper::note_registered(const std::set<std::string>& registered) {
  std::erase_if(registered_at_, [&](const auto& entry) { return registered.count(entry.first) == 0; });
  for (const std::string& ca : registered) registered_at_.try_emplace(ca, clock_.now());
}

bool TlsKeeper::settled(const std::string& ca_pem) const {
  const auto since = registered_at_.find(ca_pem);
  return since != registered_at_.end() && clock_.now() >= since->second + settings_.lifetimes.settle;
}

// A leaf that the API server trusts is kept until the new one's CA has been registered for a while.
void TlsKeeper::serve(const TlsState& state, const std::set<std::string>& registered) {
  const auto current = live_.current();
  const bool same_ca = served_ca_pem_ == state.ca.certificate_pem;
  if (current && !same_ca && registered.count(served_ca_pem_) != 0 && !settled(state.ca.certificate_pem)) {
    const auto info = pki::inspect(current->certificate_pem);
    if (info && clock_.wall() < info.value().validity.not_after) return;
  }
  live_.set({state.leaf.certificate_pem, state.leaf.key_pem});
  served_ca_pem_ = state.ca.certificate_pem;
}

void TlsKeeper::report(const std::optional<std::string>& registration) {
  const auto current = live_.current();
  NEZHA_CHECK(current != nullptr, "serve() has set a certificate");
  const auto info = pki::inspect(current->certificate_pem);
  if (info) {
    const std::chrono::duration<double, std::ratio<86400>> left = info.value().validity.not_after - clock_.wall();
    expiry_days_.set(left.count());
    readiness_.set(kCertificateCondition, left.count() > 0 ? "" : "the one in force has expired");
  }
  report_registration(registration);
}

void TlsKeeper::report_registration(const std::optional<std::string>& registration) {
  std::string missing, advice;
  bool trusted = false;
  if (registration) {
    const Json json = Json::parse(*registration);
    trusted = registered_cas(json).count(served_ca_pem_) != 0;
    advice = joined(registration_problems(json, settings_.service, settings_.release, served_ca_pem_));
    if (!trusted) missing = "the MutatingWebhookConfiguration " + settings_.registration + ": " + advice;
  } else {
    missing = "the MutatingWebhookConfiguration " + settings_.registration +
              " does not exist, so the API server sends nothing; install the chart or give --webhook-configuration";
  }
  bundle_matches_.set(trusted ? 1 : 0);
  const bool changed = readiness_.set(kRegistrationCondition, missing);
  const bool advised = readiness_.note(kRegistrationCondition, trusted ? advice : "");
  if (changed && trusted) log_.info("the webhook is registered", {{"name", settings_.registration}});
  if (changed && !trusted) log_.warning("the webhook is not registered", {{"why", missing}});
  if (advised && trusted && !advice.empty()) log_.warning("the registration is not right", {{"why", advice}});
}

}  // namespace nezha::webhook
