#include "webhook/controller/tls_state.h"

#include <utility>

namespace nezha::webhook {
namespace {

constexpr const char* kCaName = "nezha webhook CA";

// Whether `fraction` of the certificate's life is over, or it cannot be read.
bool used_up(const std::string& certificate_pem, WallTime now, int thirds) {
  const auto info = pki::inspect(certificate_pem);
  if (!info) return true;
  const auto& validity = info.value().validity;
  return now >= validity.not_before + (validity.not_after - validity.not_before) / 3 * thirds;
}

bool expired(const std::string& certificate_pem, WallTime now) { return used_up(certificate_pem, now, 3); }

}  // namespace

const char* to_string(RotationStep step) {
  switch (step) {
    case RotationStep::kNone:
      return "none";
    case RotationStep::kAddNextCa:
      return "add the next CA";
    case RotationStep::kPromote:
      return "issue from the next CA";
    case RotationStep::kRenewLeaf:
      return "renew the leaf";
    case RotationStep::kDropPrevious:
      return "drop the previous CA";
  }
  return "unknown";
}

Rotation::Rotation(std::vector<std::string> dns_names, Lifetimes lifetimes)
    : dns_names_(std::move(dns_names)), lifetimes_(lifetimes) {}

Result<pki::Identity> Rotation::new_ca(WallTime now) const {
  return pki::make_ca(kCaName, {now - lifetimes_.backdate, now + lifetimes_.ca});
}

Result<pki::Identity> Rotation::new_leaf(const pki::Identity& ca, WallTime now) const {
  return pki::make_leaf(ca, dns_names_, {now - lifetimes_.backdate, now + lifetimes_.leaf});
}

Result<TlsState> Rotation::create(WallTime now, std::optional<std::string> previous_ca_pem) const {
  TlsState state;
  NEZHA_TRY(state.ca, new_ca(now));
  NEZHA_TRY(state.leaf, new_leaf(state.ca, now));
  if (previous_ca_pem) state.promoted_at = now;
  state.previous_ca_pem = std::move(previous_ca_pem);
  return state;
}

RotationStep Rotation::next_step(const TlsState& state, WallTime now, bool registered, bool settled) const {
  const bool leaf_dead = expired(state.leaf.certificate_pem, now);
  if (state.next_ca && !expired(state.next_ca->certificate_pem, now)) {
    // A leaf that nobody accepts any more gains nothing by waiting, once its successor is trusted.
    const bool hurry = leaf_dead && expired(state.ca.certificate_pem, now);
    if (settled || (registered && hurry)) return RotationStep::kPromote;
  } else if (used_up(state.ca.certificate_pem, now, 2)) {
    return RotationStep::kAddNextCa;
  }
  const auto leaf = pki::inspect(state.leaf.certificate_pem);
  const bool wrong_names = !leaf || leaf.value().dns_names != dns_names_;
  if ((wrong_names || used_up(state.leaf.certificate_pem, now, 2)) && !expired(state.ca.certificate_pem, now)) {
    const auto ca = pki::inspect(state.ca.certificate_pem);
    // Cut to the end of its CA, a new leaf would be due again at once: the next CA brings the next leaf.
    const bool gains = !leaf || !ca || leaf.value().validity.not_after < ca.value().validity.not_after;
    if (wrong_names || gains) return RotationStep::kRenewLeaf;
  }
  const bool overlap_over = !state.promoted_at || now >= *state.promoted_at + lifetimes_.overlap;
  return state.previous_ca_pem && overlap_over ? RotationStep::kDropPrevious : RotationStep::kNone;
}

Result<TlsState> Rotation::apply(RotationStep step, const TlsState& state, WallTime now) const {
  TlsState next = state;
  switch (step) {
    case RotationStep::kNone:
      break;
    case RotationStep::kAddNextCa: {
      NEZHA_TRY(next.next_ca, new_ca(now));
      break;
    }
    case RotationStep::kPromote: {
      next.previous_ca_pem = state.ca.certificate_pem;
      next.ca = *state.next_ca;
      next.next_ca.reset();
      next.promoted_at = now;
      NEZHA_TRY(next.leaf, new_leaf(next.ca, now));
      break;
    }
    case RotationStep::kRenewLeaf: {
      NEZHA_TRY(next.leaf, new_leaf(state.ca, now));
      break;
    }
    case RotationStep::kDropPrevious:
      next.previous_ca_pem.reset();
      next.promoted_at.reset();
      break;
  }
  return next;
}

Result<> Rotation::check(const TlsState& state) const {
  const auto prefixed = [](const char* what, const Error& error) {
    return fail(Remedy::kFixInput, std::string(what) + ": " + error.message);
  };
  if (const auto held = pki::check_pair(state.ca); !held) return prefixed("ca.crt and ca.key", held.error());
  if (const auto held = pki::check_pair(state.leaf); !held) return prefixed("tls.crt and tls.key", held.error());
  const auto leaf = pki::inspect(state.leaf.certificate_pem);
  if (!leaf) return prefixed("tls.crt", leaf.error());
  if (leaf.value().dns_names.empty()) return fail(Remedy::kFixInput, "tls.crt: it names no DNS name");
  // At its own beginning: an expired leaf is to be renewed, it is not garbage.
  const auto chain = pki::check_chain(state.leaf.certificate_pem, state.ca.certificate_pem,
                                      leaf.value().dns_names.front(), leaf.value().validity.not_before);
  if (!chain) return prefixed("tls.crt is not signed by ca.crt", chain.error());
  return ok();
}

std::vector<std::string> trusted_cas(const TlsState& state) {
  std::vector<std::string> out;
  if (state.previous_ca_pem) out.push_back(*state.previous_ca_pem);
  out.push_back(state.ca.certificate_pem);
  if (state.next_ca) out.push_back(state.next_ca->certificate_pem);
  return out;
}

}  // namespace nezha::webhook
