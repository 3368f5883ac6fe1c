// TlsState: the webhook's CAs and its leaf, as all replicas share them, and what happens to them over time. Pure.
//
// Rotation of the CA, one step per write, each of which leaves a state that any replica can go on from:
//   1 add the next CA beside the current one            ca + next_ca              caBundle = both
//   2 once caBundle with both has been registered for   ca becomes previous_ca,   caBundle = both
//     `settle`: promote it and issue a leaf from it     next_ca becomes ca
//   3 after `overlap`: forget the previous CA           ca                        caBundle = ca
// So a leaf is served only when the API server has trusted its CA for a while, and the old leaf stays trusted while a
// replica may still serve it.
// Threads: values.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "nezha/base/clock.h"
#include "nezha/base/result.h"
#include "nezha/pki/certificates.h"

namespace nezha::webhook {

struct TlsState {
  pki::Identity ca;
  pki::Identity leaf;
  std::optional<pki::Identity> next_ca;
  std::optional<std::string> previous_ca_pem;  // its key is forgotten at promotion
  std::optional<WallTime> promoted_at;         // when `ca` took the place of the previous one
  friend bool operator==(const TlsState&, const TlsState&) = default;
};

struct Lifetimes {
  std::chrono::seconds ca = std::chrono::hours(24 * 730);
  std::chrono::seconds leaf = std::chrono::hours(24 * 90);
  std::chrono::seconds settle = std::chrono::minutes(10);   // for every API server to see a caBundle
  std::chrono::seconds overlap = std::chrono::hours(24);    // for every replica to serve a new leaf
  std::chrono::seconds backdate = std::chrono::minutes(5);  // clocks of the cluster's machines differ
};

enum class RotationStep { kNone, kAddNextCa, kPromote, kRenewLeaf, kDropPrevious };
const char* to_string(RotationStep step);

class Rotation {
 public:
  // `dns_names`: what the leaf must be valid for, the first one is the name that the API server dials.
  Rotation(std::vector<std::string> dns_names, Lifetimes lifetimes);

  // A fresh CA and leaf. `previous_ca_pem`: a CA that replicas may still serve a leaf of.
  Result<TlsState> create(WallTime now, std::optional<std::string> previous_ca_pem) const;

  // What is due. `settled`: caBundle has held the next CA for `settle`; `registered`: it holds it now.
  RotationStep next_step(const TlsState& state, WallTime now, bool registered, bool settled) const;
  Result<TlsState> apply(RotationStep step, const TlsState& state, WallTime now) const;

  // kFixInput: keys and certificates do not belong together, or the leaf is none of ours; says which.
  Result<> check(const TlsState& state) const;

  const std::vector<std::string>& dns_names() const { return dns_names_; }
  const Lifetimes& lifetimes() const { return lifetimes_; }

 private:
  Result<pki::Identity> new_ca(WallTime now) const;
  Result<pki::Identity> new_leaf(const pki::Identity& ca, WallTime now) const;

  const std::vector<std::string> dns_names_;
  const Lifetimes lifetimes_;
};

// The CAs that clients must trust, oldest first: what caBundle has to hold.
std::vector<std::string> trusted_cas(const TlsState& state);

}  // namespace nezha::webhook
