// Which names are accepted, and the reason given for each that is not. See names.h.
#include "src/config/names.h"

#include <algorithm>
#include <array>

#include "nezha/base/text.h"

namespace nezha::config {
namespace {

constexpr size_t kLabelPartMax = 63;

bool is_alnum(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

bool is_dns1123_label(std::string_view text) {
  return text.size() <= kLabelPartMax && text.find('.') == std::string_view::npos && is_dns1123_subdomain(text);
}

// The part of a label key after the prefix, or a non-empty label value.
bool is_label_part(std::string_view text) {
  if (text.empty() || text.size() > kLabelPartMax || !is_alnum(text.front()) || !is_alnum(text.back())) return false;
  return std::all_of(text.begin(), text.end(), [](char c) { return is_alnum(c) || c == '-' || c == '_' || c == '.'; });
}

template <size_t N>
bool contains(const std::array<std::string_view, N>& set, std::string_view text) {
  return std::find(set.begin(), set.end(), text) != set.end();
}

// `name` itself or any name below it.
bool is_within(std::string_view host, std::string_view name) {
  return host == name ||
         (host.size() > name.size() + 1 && host.ends_with(name) && host[host.size() - name.size() - 1] == '.');
}

// Redirecting these would cut pods off from their own cluster.
bool is_cluster_name(std::string_view host) {
  return host == "kubernetes" || host == "kubernetes.default" || host.starts_with("kubernetes.default.") ||
         is_within(host, "svc") || is_within(host, "cluster.local");
}

// These answer with the node's or the pod's own credentials, so no answer of theirs may be shared.
bool is_metadata(std::string_view host) {
  constexpr std::array<std::string_view, 10> kNames = {
      "metadata",      "metadata.google.internal",   "metadata.goog",   "metadata.azure.internal", "metadata.azure.com",
      "instance-data", "instance-data.ec2.internal", "169.254.169.254", "100.100.100.200",         "fd00:ec2::254"};
  return contains(kNames, host) || is_within(host, "metadata.google.internal") ||
         is_within(host, "metadata.tencentyun.com");
}

// Token and account services: their answers are credentials.
bool is_credential_service(std::string_view host) {
  constexpr std::array<std::string_view, 7> kNames = {
      "sts.googleapis.com",    "iam.googleapis.com",  "iamcredentials.googleapis.com",
      "oauth2.googleapis.com", "accounts.google.com", "login.microsoftonline.com",
      "login.windows.net"};
  if (contains(kNames, host)) return true;
  if (!is_within(host, "amazonaws.com") && !is_within(host, "amazonaws.com.cn") && !is_within(host, "api.aws"))
    return false;
  const std::string_view service = host.substr(0, host.find('.'));
  return service == "sts" || service == "sts-fips" || service == "iam" || service == "iam-fips";
}

// Mistakes in the form of a host, most telling first.
std::optional<std::string> host_form_mistake(std::string_view host) {
  if (host.empty()) return "is an empty host; write a DNS name";
  if (host.find('*') != std::string_view::npos) return "is a wildcard; list each host by name";
  if (host.find('/') != std::string_view::npos) return "is a URL; write its host only";
  if (canonical_ip(host)) return "is an IP address, which needs no alias; write the DNS name that clients use";
  if (host.find(':') != std::string_view::npos) return "has a port; leave it out: a host is matched on every port";
  if (std::any_of(host.begin(), host.end(), [](char c) { return c >= 'A' && c <= 'Z'; })) {
    return "has upper-case letters; write " + quoted(to_lower(host));
  }
  if (host.back() == '.') return "ends in a dot; leave it out";
  if (!is_dns1123_subdomain(host))
    return "is not a DNS name; labels of a-z, 0-9 and - joined by dots, at most 253 characters";
  return std::nullopt;
}

}  // namespace

std::optional<std::string> host_refusal(std::string_view host) {
  if (is_metadata(host)) return "is a cloud metadata address; its answers are credentials of the node, remove it";
  if (auto mistake = host_form_mistake(host)) return mistake;
  if (is_within(host, "localhost") || host == "localhost.localdomain") {
    return "is the pod's own loopback name; write the name of a server outside the pod";
  }
  if (is_cluster_name(host)) return "is a name of the cluster itself; redirecting it would cut pods off, remove it";
  if (is_credential_service(host))
    return "is a credential service (STS, IAM or login); its answers are secrets, remove it";
  return std::nullopt;
}

Result<HostName> read_host(const View& view) {
  NEZHA_TRY(auto host, view.scalar());
  if (const auto refusal = host_refusal(host)) return view.error(quoted(host) + " " + *refusal);
  return HostName(std::move(host));
}

Result<std::string> read_name(const View& view) {
  NEZHA_TRY(auto name, view.text());
  if (is_dns1123_label(name)) return name;
  return view.error(quoted(name) +
                    " is not a name; write at most 63 of a-z, 0-9 and -, beginning and ending in one of a-z, 0-9");
}

Result<std::string> read_namespace(const View& view) {
  NEZHA_TRY(auto name, view.text());
  if (is_dns1123_label(name)) return name;
  return view.error(quoted(name) + " is not a namespace name; write it as `kubectl get namespaces` does");
}

Result<std::string> read_secret_name(const View& view) {
  NEZHA_TRY(auto name, view.text());
  if (is_dns1123_subdomain(name)) return name;
  return view.error(quoted(name) + " is not the name of a Secret; write it as `kubectl get secrets` does");
}

bool is_label_key(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return is_label_part(text);
  return is_dns1123_subdomain(text.substr(0, slash)) && is_label_part(text.substr(slash + 1));
}

bool is_label_value(std::string_view text) { return text.empty() || is_label_part(text); }

Result<std::string> read_label_key(const View& view) {
  NEZHA_TRY(auto key, view.text());
  if (is_label_key(key)) return key;
  return view.error(quoted(key) + " is not a label key; write NAME or PREFIX/NAME as on the pod");
}

Result<std::string> read_label_value(const View& view) {
  if (view.is_empty_text()) return std::string();
  NEZHA_TRY(auto value, view.text());
  if (is_label_value(value)) return value;
  return view.error(quoted(value) + " is not a label value; write at most 63 of A-Z, a-z, 0-9, '-', '_' and '.'");
}

}  // namespace nezha::config
