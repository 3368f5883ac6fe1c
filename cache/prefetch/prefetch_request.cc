#include "cache/prefetch/prefetch_request.h"

#include <nlohmann/json.hpp>

#include "nezha/base/text.h"

namespace nezha::cache {
namespace {

constexpr const char* kForms = R"(write {"bucket": B, "key": K} or {"bucket": B, "prefix": P})";

// A host of its own, or a path on a host of the upstream.
BucketPlace place_on(const config::Upstream& upstream, const std::string& host, const s3::BucketName& bucket) {
  const bool own_host = host.starts_with(bucket.get() + ".");
  const bool tls = !upstream.endpoint && upstream.tls == config::TlsMode::kIntercept;
  return {upstream.name, tls, host, own_host ? "/" : "/" + bucket.get() + "/"};
}

}  // namespace

Result<PrefetchRequest> parse_prefetch_request(std::string_view text) {
  const nlohmann::json document = nlohmann::json::parse(text, nullptr, false);
  const auto bad = [](const std::string& what) { return fail(Remedy::kFixInput, what + "; " + kForms); };
  if (document.is_discarded() || !document.is_object()) return bad("the body is no JSON object");
  PrefetchRequest out;
  bool key = false;
  for (const auto& [name, value] : document.items()) {
    if (!value.is_string()) return bad("\"" + printable(name, 40) + "\" is no text");
    const auto& word = value.get_ref<const std::string&>();
    if (name == "bucket") {
      out.bucket = s3::BucketName(word);
    } else if (name == "host") {
      out.host = to_lower(word);
    } else if (name == "key" || name == "prefix") {
      (name == "key" ? key : out.prefix) = true;
      out.text = word;
    } else {
      return bad("\"" + printable(name, 40) + "\" is not known");
    }
  }
  const std::string& bucket = out.bucket.get();
  if (bucket.empty() || !is_dns1123_subdomain(bucket)) return bad("\"bucket\" is no bucket's name");
  if (key == out.prefix || (key && out.text.empty())) return bad("one of \"key\" and \"prefix\" is needed");
  return out;
}

Result<BucketPlace> place_of_bucket(const PrefetchRequest& request, const config::Settings& settings) {
  const auto bad = [](const std::string& what) { return fail(Remedy::kFixInput, what); };
  std::vector<const config::Upstream*> able;
  for (const auto& upstream : settings.upstreams) {
    if (!upstream.credentials_secret.empty()) able.push_back(&upstream);
  }
  if (able.empty()) return bad("no upstream has keys to read with; add credentialsSecretRef to one");
  for (const auto* upstream : able) {
    for (const auto& host : upstream->hosts) {
      const bool wanted =
          request.host.empty() ? host.get().starts_with(request.bucket.get() + ".") : host.get() == request.host;
      if (wanted) return place_on(*upstream, host.get(), request.bucket);
    }
  }
  if (!request.host.empty()) return bad("\"" + printable(request.host, 80) + "\" is no host of an upstream with keys");
  if (able.size() > 1) return bad("several upstreams have keys; name one by a \"host\" of its own");
  return place_on(*able.front(), able.front()->hosts.front().get(), request.bucket);
}

}  // namespace nezha::cache
