// ApiServer: how to reach the Kubernetes API. A value; reads no file but the environment.
// Threads: any.
#pragma once

#include <string>

#include "nezha/base/result.h"

namespace nezha::k8s {

struct ApiServer {
  std::string url;         // "https://10.96.0.1:443"; http:// is accepted for tests and kubectl proxy
  std::string token_file;  // bearer token, read again before every request because the kubelet rotates it; empty: none
  std::string ca_file;     // PEM roots for https; empty: the system's roots
};

// What a pod is given: KUBERNETES_SERVICE_HOST and _PORT, and the files of its service account.
// Fails with kAbsent outside a pod.
[[nodiscard]] Result<ApiServer> in_cluster_api_server();

}  // namespace nezha::k8s
