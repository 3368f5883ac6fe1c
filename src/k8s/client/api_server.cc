#include "nezha/k8s/api_server.h"

#include <cstdlib>

namespace nezha::k8s {
namespace {

constexpr const char* kServiceAccount = "/var/run/secrets/kubernetes.io/serviceaccount";

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

Result<ApiServer> in_cluster_api_server() {
  const std::string host = environment("KUBERNETES_SERVICE_HOST");
  const std::string port = environment("KUBERNETES_SERVICE_PORT");
  if (host.empty() || port.empty()) {
    return fail(Remedy::kAbsent, "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set, so this is no pod");
  }
  const bool ipv6 = host.find(':') != std::string::npos;
  const std::string folder = kServiceAccount;
  return ApiServer{.url = "https://" + (ipv6 ? "[" + host + "]" : host) + ":" + port,
                   .token_file = folder + "/token",
                   .ca_file = folder + "/ca.crt"};
}

}  // namespace nezha::k8s
