#include "cache/purge/purge_request.h"

#include <nlohmann/json.hpp>

#include "nezha/base/text.h"

namespace nezha::cache {
namespace {

constexpr const char* kForms =
    R"(write {"upstream": U}, {"host": H, "path": P}, {"host": H, "prefix": P}, {"bucket": B, "key": K} )"
    R"(or {"bucket": B, "prefix": P})";

}  // namespace

Result<PurgeRequest> parse_purge_request(std::string_view text) {
  const nlohmann::json document = nlohmann::json::parse(text, nullptr, false);
  const auto bad = [](const std::string& what) { return fail(Remedy::kFixInput, what + "; " + kForms); };
  if (document.is_discarded() || !document.is_object()) return bad("the body is no JSON object");
  for (const auto& [name, value] : document.items()) {
    if (!value.is_string() || value.get_ref<const std::string&>().empty())
      return bad("\"" + printable(name, 40) + "\" is no text, or empty");
  }
  const auto is = [&](std::initializer_list<const char*> names) {
    bool all = document.size() == names.size();
    for (const char* name : names) all = all && document.contains(name);
    return all;
  };
  const auto value = [&](const char* name) { return document[name].get<std::string>(); };
  using Scope = PurgeRequest::Scope;
  if (is({"upstream"})) return PurgeRequest{Scope::kUpstream, value("upstream"), "", true};
  if (is({"bucket", "key"})) return PurgeRequest{Scope::kBucket, value("bucket"), value("key"), false};
  if (is({"bucket", "prefix"})) return PurgeRequest{Scope::kBucket, value("bucket"), value("prefix"), true};
  const bool path = is({"host", "path"});
  if (!path && !is({"host", "prefix"})) return bad("the body is of none of the known forms");
  PurgeRequest out{Scope::kHost, to_lower(value("host")), value(path ? "path" : "prefix"), !path};
  if (!out.text.starts_with('/'))
    return bad(std::string("\"") + (path ? "path" : "prefix") + "\" does not begin with /");
  return out;
}

}  // namespace nezha::cache
