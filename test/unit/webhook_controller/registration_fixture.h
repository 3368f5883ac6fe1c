// The registration as the chart installs it and the API server completes it, for tests.
#pragma once

namespace nezha::test {

inline constexpr const char* kRegistrationPath =
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/nezha";
inline constexpr const char* kSecretPath = "/api/v1/namespaces/nezha-system/secrets/nezha-webhook-tls";

inline constexpr const char* kRegistration = R"({
  "apiVersion": "admissionregistration.k8s.io/v1",
  "kind": "MutatingWebhookConfiguration",
  "metadata": {"name": "nezha", "labels": {"app.kubernetes.io/managed-by": "Helm"}},
  "webhooks": [
    {"name": "pod.nezha.io",
     "admissionReviewVersions": ["v1"],
     "clientConfig": {
       "service": {"name": "nezha-webhook", "namespace": "nezha-system", "path": "/mutate", "port": 443}},
     "failurePolicy": "Ignore", "matchPolicy": "Equivalent", "reinvocationPolicy": "IfNeeded", "sideEffects": "None",
     "timeoutSeconds": 5,
     "namespaceSelector": {"matchExpressions": [
       {"key": "kubernetes.io/metadata.name", "operator": "NotIn",
        "values": ["kube-system", "kube-public", "kube-node-lease", "nezha-system", "extra"]}]},
     "objectSelector": {"matchLabels": {"nezha.io/inject": "true"}},
     "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"],
                "scope": "Namespaced"}]},
    {"name": "namespace.nezha.io",
     "admissionReviewVersions": ["v1"],
     "clientConfig": {
       "service": {"name": "nezha-webhook", "namespace": "nezha-system", "path": "/mutate/namespace", "port": 443}},
     "namespaceSelector": {"matchLabels": {"nezha.io/inject": "true"}},
     "objectSelector": {},
     "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"],
                "scope": "Namespaced"}]}
  ]})";

}  // namespace nezha::test
