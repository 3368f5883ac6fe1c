// Aim: hosts that must never be redirected are refused with their reason; look-alikes are not.
#include <gtest/gtest.h>

#include <string>

#include "nezha/config/parse.h"
#include "test/unit/config/expect.h"

namespace nezha::config {
namespace {

std::string error_for_host(const std::string& host) {
  const std::string message = error_of(parse_settings("upstreams: [{name: a, hosts: ['" + host + "']}]", "f.yaml"));
  const std::string prefix = "f.yaml: upstreams[0].hosts[0] (line 1): ";
  return message.starts_with(prefix) ? message.substr(prefix.size()) : message;
}

TEST(Hosts, FormMistakes) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "is an empty text; write a value"},
      {"*.example.com", "\"*.example.com\" is a wildcard; list each host by name"},
      {"Example.com", "\"Example.com\" has upper-case letters; write \"example.com\""},
      {"http://example.com", "\"http://example.com\" is a URL; write its host only"},
      {"example.com/data", "\"example.com/data\" is a URL; write its host only"},
      {"example.com:443", "\"example.com:443\" has a port; leave it out: a host is matched on every port"},
      {"example.com.", "\"example.com.\" ends in a dot; leave it out"},
      {"10.0.0.1", "\"10.0.0.1\" is an IP address, which needs no alias; write the DNS name that clients use"},
      {"::1", "\"::1\" is an IP address, which needs no alias; write the DNS name that clients use"},
      {"my_bucket.example",
       "\"my_bucket.example\" is not a DNS name; labels of a-z, 0-9 and - joined by dots, at most 253 "
       "characters"},
      {"a..b", "\"a..b\" is not a DNS name; labels of a-z, 0-9 and - joined by dots, at most 253 characters"},
      {"-a.example",
       "\"-a.example\" is not a DNS name; labels of a-z, 0-9 and - joined by dots, at most 253 characters"},
      {"a b", "\"a b\" is not a DNS name; labels of a-z, 0-9 and - joined by dots, at most 253 characters"},
  };
  for (const auto& [host, wanted] : cases) EXPECT_EQ(error_for_host(host), wanted) << host;
}

TEST(Hosts, RefusesTheClusterItself) {
  for (const char* host :
       {"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
        "minio.data.svc", "minio.data.svc.cluster.local", "cluster.local"})
    EXPECT_EQ(
        error_for_host(host),
        "\"" + std::string(host) + "\" is a name of the cluster itself; redirecting it would cut pods off, remove it");
}

TEST(Hosts, RefusesLoopback) {
  for (const char* host : {"localhost", "api.localhost", "localhost.localdomain"})
    EXPECT_EQ(
        error_for_host(host),
        "\"" + std::string(host) + "\" is the pod's own loopback name; write the name of a server outside the pod");
}

TEST(Hosts, RefusesMetadata) {
  for (const char* host : {"169.254.169.254", "metadata.google.internal", "metadata", "instance-data.ec2.internal",
                           "fd00:ec2::254", "100.100.100.200", "metadata.tencentyun.com"})
    EXPECT_EQ(error_for_host(host),
              "\"" + std::string(host) +
                  "\" is a cloud metadata address; its answers are credentials of the node, remove it");
}

TEST(Hosts, RefusesCredentialServices) {
  for (const char* host : {"sts.amazonaws.com", "sts.eu-west-1.amazonaws.com", "sts-fips.us-east-1.amazonaws.com",
                           "sts.cn-north-1.amazonaws.com.cn", "iam.amazonaws.com", "sts.us-east-1.api.aws",
                           "sts.googleapis.com", "oauth2.googleapis.com", "login.microsoftonline.com"})
    EXPECT_EQ(error_for_host(host),
              "\"" + std::string(host) +
                  "\" is a credential service (STS, IAM or login); its answers are secrets, remove it");
}

TEST(Hosts, AcceptsLookAlikes) {
  for (const char* host : {"www.cs.toronto.edu", "s3.eu-west-1.amazonaws.com", "sts.s3.eu-west-1.example",
                           "sts.example.com", "my-svc.example", "svc.example", "notlocalhost", "localhost.example.com",
                           "kubernetes.io", "kubernetes-default.example", "mycluster.local.example",
                           "storage.googleapis.com", "minio", "rook-ceph-rgw.rook", "xn--bcher-kva.example", "0.pool"})
    EXPECT_EQ(error_for_host(host), "(no error)") << host;
}

// A bucket named `sts` in virtual-hosted style looks like the token service to a careless rule.
TEST(Hosts, ABucketNamedLikeAServiceIsJudgedByItsFirstLabel) {
  EXPECT_NE(error_for_host("sts.s3.amazonaws.com"), "(no error)");
  EXPECT_EQ(error_for_host("sts-data.s3.amazonaws.com"), "(no error)");
}

}  // namespace
}  // namespace nezha::config
