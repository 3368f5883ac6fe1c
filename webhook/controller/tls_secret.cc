#include "webhook/controller/tls_secret.h"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "nezha/pki/base64.h"
#include "webhook/controller/timestamp.h"

namespace nezha::webhook {
namespace {

using Json = nlohmann::json;

constexpr const char* kCa = "ca";
constexpr const char* kLeaf = "tls";
constexpr const char* kNextCa = "next-ca";
constexpr const char* kPreviousCa = "previous-ca.crt";
constexpr const char* kPromotedAt = "promoted-at";

Result<std::string> text_at(const Json& data, const std::string& key) {
  const auto member = data.find(key);
  if (member == data.end() || !member->is_string()) return fail(Remedy::kFixInput, "the key " + key + " is missing");
  auto text = pki::base64_decode(member->get_ref<const std::string&>());
  if (!text) return fail(Remedy::kFixInput, key + ": " + text.error().message);
  return text;
}

Result<pki::Identity> identity_at(const Json& data, const std::string& name) {
  pki::Identity identity;
  NEZHA_TRY(identity.certificate_pem, text_at(data, name + ".crt"));
  NEZHA_TRY(identity.key_pem, text_at(data, name + ".key"));
  return identity;
}

void set_text(Json& data, const std::string& key, const std::string& text) { data[key] = pki::base64_encode(text); }

void set_identity(Json& data, const std::string& name, const pki::Identity& identity) {
  set_text(data, name + ".crt", identity.certificate_pem);
  set_text(data, name + ".key", identity.key_pem);
}

void read_rotation(const Json& data, TlsState& state) {
  auto next = identity_at(data, kNextCa);
  if (next && pki::check_pair(next.value())) {
    state.next_ca = std::move(next).value();
    state.next_ca->certificate_pem = pki::split_bundle(state.next_ca->certificate_pem).front();
  }
  auto previous = text_at(data, kPreviousCa);
  if (previous && pki::inspect(previous.value())) state.previous_ca_pem = pki::split_bundle(previous.value()).front();
  const auto promoted_at = text_at(data, kPromotedAt);
  if (promoted_at) state.promoted_at = parse_timestamp(promoted_at.value());
}

}  // namespace

Result<std::optional<TlsState>> read_tls_secret(const Json& secret, const Rotation& rotation) {
  const auto data = secret.find("data");
  if (data == secret.end() || data->is_null()) return std::optional<TlsState>();
  if (!data->is_object()) return fail(Remedy::kFixInput, "data is no object");
  // The type kubernetes.io/tls demands both keys, so an empty Secret of that type has them with empty values.
  bool any = false;
  for (const auto& [key, value] : data->items()) any |= value != "";
  if (!any) return std::optional<TlsState>();
  TlsState state;
  NEZHA_TRY(state.ca, identity_at(*data, kCa));
  NEZHA_TRY(state.leaf, identity_at(*data, kLeaf));
  NEZHA_TRY(rotation.check(state));
  state.ca.certificate_pem = pki::split_bundle(state.ca.certificate_pem).front();
  read_rotation(*data, state);
  return std::optional(std::move(state));
}

Json with_tls_state(Json secret, const TlsState& state) {
  Json data = Json::object();
  set_identity(data, kCa, state.ca);
  set_identity(data, kLeaf, state.leaf);
  if (state.next_ca) set_identity(data, kNextCa, *state.next_ca);
  if (state.previous_ca_pem) set_text(data, kPreviousCa, *state.previous_ca_pem);
  if (state.promoted_at) set_text(data, kPromotedAt, to_timestamp(*state.promoted_at));
  secret["data"] = std::move(data);
  return secret;
}

}  // namespace nezha::webhook
