#include "cache/request/write_through.h"

#include <algorithm>

#include "nezha/base/check.h"
#include "nezha/base/text.h"

namespace nezha::cache {
namespace {

// PutObject and CopyObject, or CompleteMultipartUpload: every other query makes it a request about something else.
bool writes_object(const http::RequestHead& request, std::string_view query) {
  const auto parameters = split(query, '&');
  const auto all_are = [&](std::string_view name) {
    return std::all_of(parameters.begin(), parameters.end(), [&](std::string_view parameter) {
      const auto known = parameter.substr(0, parameter.find('='));
      return known.empty() || known == "x-id" || (!name.empty() && known == name);
    });
  };
  if (request.method == "PUT") return all_are("");
  return request.method == "POST" && !all_are("") && all_are("uploadId");
}

// Of the request's target, in the form that leads to the same key.
std::string authority_of(std::string_view path) {
  std::string_view authority = path.substr(0, path.find('/'));
  if (authority.ends_with(":443+tls")) authority.remove_suffix(8);
  if (authority.ends_with("+tls")) authority.remove_suffix(4);
  return std::string(authority);
}

}  // namespace

void fetch_written(SessionDeps& deps, const Classified& classified, const http::RequestHead& request, int status,
                   bool tls) {
  if (!classified.upstream->write_through || !may_sign_for(classified) || status < 200 || status >= 300) return;
  if (!writes_object(request, classified.key.query)) return;
  const std::string& path = classified.key.path;
  NEZHA_CHECK(path.find('/') != std::string::npos, "a path stands behind the host");
  FetchTarget target;
  target.tls = tls;
  target.host = path.substr(0, path.find_first_of(":/"));
  target.authority = authority_of(path);
  target.target = path.substr(path.find('/'));
  if (!deps.fetches.offer(std::move(target))) deps.metrics.not_fetched.add();
}

}  // namespace nezha::cache
