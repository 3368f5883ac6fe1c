#include "nezha/k8s/api_client.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "src/k8s/client/failure.h"
#include "src/k8s/client/scope_target.h"
#include "src/k8s/client/transport.h"

namespace nezha::k8s {
namespace {

constexpr const char* kJsonType = "application/json";

const char* content_type_of(PatchType type) {
  switch (type) {
    case PatchType::kJson:
      return "application/json-patch+json";
    case PatchType::kMerge:
      return "application/merge-patch+json";
    case PatchType::kStrategic:
      return "application/strategic-merge-patch+json";
  }
  return kJsonType;
}

// The body of a success; any other status as an error.
Result<std::string> succeeded(const WireRequest& request, WireAnswer answer) {
  if (answer.status >= 200 && answer.status < 300) return std::move(answer.body);
  return BOOST_OUTCOME_V2_NAMESPACE::failure(
      error_of_answer(request.method + " " + request.target, answer.status, answer.body));
}

}  // namespace

std::string Resource::path(const Namespace& name_space) const {
  std::string out = group.empty() ? "/api/" + version : "/apis/" + group + "/" + version;
  if (!name_space.get().empty()) out += "/namespaces/" + percent_encode(name_space.get());
  return out + "/" + plural;
}

std::string Resource::path(const Namespace& name_space, std::string_view name) const {
  return path(name_space) + "/" + percent_encode(name);
}

std::string scope_target(const Scope& scope) {
  std::string out = scope.resource.path(scope.name_space) + "?";
  if (!scope.label_selector.empty()) out += "labelSelector=" + percent_encode(scope.label_selector) + "&";
  if (!scope.field_selector.empty()) out += "fieldSelector=" + percent_encode(scope.field_selector) + "&";
  return out;
}

class ApiClient::Connection {
 public:
  Connection(ApiServer server, const Limits& limits)
      : transport_(std::move(server), {limits.connect, limits.request, limits.response_bytes_max}) {}

  // An answer of any status; a read over a connection that was closed meanwhile is repeated.
  Result<WireAnswer> exchange(const WireRequest& request) {
    auto answer = transport_.send(request);
    if (!answer && answer.error().remedy == Remedy::kRetryHere && request.method == "GET") {
      answer = transport_.send(request);
    }
    if (answer || answer.error().remedy != Remedy::kRetryHere) return answer;
    return fail(Remedy::kRetryLater, answer.error().message);
  }

  Result<std::string> call(const WireRequest& request) {
    NEZHA_TRY(WireAnswer answer, exchange(request));
    return succeeded(request, std::move(answer));
  }

  void stop() { transport_.stop(); }

 private:
  Transport transport_;
};

ApiClient::ApiClient(ApiServer server) : ApiClient(std::move(server), Limits{}) {}
ApiClient::ApiClient(ApiServer server, Limits limits)
    : connection_(std::make_unique<Connection>(std::move(server), limits)) {}
ApiClient::~ApiClient() = default;

Result<std::string> ApiClient::get(const Resource& resource, const Namespace& name_space, std::string_view name) {
  return connection_->call({"GET", resource.path(name_space, name), {}, {}});
}

Result<std::optional<std::string>> ApiClient::create(const Resource& resource, const Namespace& name_space,
                                                     std::string_view json) {
  const WireRequest request{"POST", resource.path(name_space), std::string(json), kJsonType};
  NEZHA_TRY(WireAnswer answer, connection_->exchange(request));
  if (answer.status == 409 && is_already_exists(answer.body)) return std::optional<std::string>();
  NEZHA_TRY(std::string created, succeeded(request, std::move(answer)));
  return std::optional(std::move(created));
}

Result<std::string> ApiClient::update(const Resource& resource, const Namespace& name_space, std::string_view name,
                                      std::string_view json) {
  return connection_->call({"PUT", resource.path(name_space, name), std::string(json), kJsonType});
}

Result<std::string> ApiClient::patch(const Resource& resource, const Namespace& name_space, std::string_view name,
                                     PatchType type, std::string_view body) {
  return connection_->call({"PATCH", resource.path(name_space, name), std::string(body), content_type_of(type)});
}

Result<> ApiClient::remove(const Resource& resource, const Namespace& name_space, std::string_view name,
                           std::string_view resource_version) {
  const nlohmann::json options{
      {"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"preconditions", {{"resourceVersion", resource_version}}}};
  const auto removed = connection_->call({"DELETE", resource.path(name_space, name), options.dump(), kJsonType});
  if (removed || removed.error().remedy == Remedy::kAbsent) return ok();
  return fail(removed.error().remedy, removed.error().message);
}

Result<std::string> ApiClient::list(const Scope& scope, size_t page_items, std::string_view page_token) {
  std::string target = scope_target(scope) + "limit=" + std::to_string(page_items);
  if (!page_token.empty()) target += "&continue=" + percent_encode(page_token);
  return connection_->call({"GET", std::move(target), {}, {}});
}

void ApiClient::stop() { connection_->stop(); }

}  // namespace nezha::k8s
