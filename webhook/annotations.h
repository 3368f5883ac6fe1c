// Every label and annotation that Nezha reads or writes on Kubernetes objects: meaning, values, default.
#pragma once

namespace nezha::webhook {

// Label on a pod: "true" opts in, "false" opts out where the namespace opts in with the same label.
// Label on a namespace: "true" opts all its pods in. Any other value counts as absent.
inline constexpr const char* kInjectLabel = "nezha.io/inject";

// Annotation on a pod: "central" or "sidecar" overrides the mode of every rule that matches. Default: the rule's.
inline constexpr const char* kModeAnnotation = "nezha.io/mode";

// Annotation on a pod: the name of the one injection rule to use, whatever the rule's selector says.
// The namespace's own rules are looked up before the cluster's. Default: every rule whose selector matches.
// (On a ConfigMap the same key is a label: "true" offers its rules to its namespace.)
inline constexpr const char* kConfigAnnotation = "nezha.io/config";

// Annotation written by the webhook: compact JSON
//   {"rule": names joined by commas, "mode": "central" or "sidecar", "hosts": [...], "reasons": [...]}
// with "hostsMore": n when more hosts are aliased than the list shows. Reasons say what was not done and why.
inline constexpr const char* kStatusAnnotation = "nezha.io/status";

// Label written on what the webhook makes in users' namespaces, ConfigMap nezha-trust and Secret nezha-sidecar-tls;
// value "true". What lacks it is not touched.
inline constexpr const char* kTrustLabel = "nezha.io/trust";

// Annotation of the cluster autoscaler on a pod: volumes, by commas, that do not keep it from removing the node.
// The sidecar's is added to what the pod lists.
inline constexpr const char* kEvictableVolumesAnnotation =
    "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes";

// Label on a namespace, value "enabled": its pods are considered for the ancestor's format.
inline constexpr const char* kAncestorNamespaceLabel = "hostaliases-injector";
inline constexpr const char* kAncestorNamespaceValue = "enabled";

// Label on a pod: its value chooses the item of the ancestor's format.
inline constexpr const char* kAncestorPodLabel = "app";

// Annotation that the kubelet sets on mirror pods, which show static pods and cannot be changed. Only read.
inline constexpr const char* kMirrorAnnotation = "kubernetes.io/config.mirror";

}  // namespace nezha::webhook
