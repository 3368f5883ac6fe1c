// The client checks the API server's certificate: right CA and name, wrong CA, wrong name, a CA file that changes.
#include <gtest/gtest.h>

#include "nezha/k8s/api_client.h"
#include "nezha/pki/certificates.h"
#include "test/support/fake_api_server.h"
#include "test/unit/k8s_client/temporary_file.h"

namespace nezha::k8s {
namespace {

const Resource kConfigMaps{"", "v1", "configmaps"};

pki::Validity valid_now() {
  const WallTime now = std::chrono::system_clock::now();
  return {now - std::chrono::hours(1), now + std::chrono::hours(1)};
}

pki::Identity make_ca() { return pki::make_ca("test ca", valid_now()).value(); }
pki::Identity make_leaf(const pki::Identity& ca, const std::string& name) {
  return pki::make_leaf(ca, {name}, valid_now()).value();
}

// The server listens on 127.0.0.1; its certificate is for a name, so the client must dial by that name.
ApiServer by_name(const test::FakeApiServer& server, const std::string& ca_file) {
  ApiServer address = server.address();
  address.url.replace(address.url.find("127.0.0.1"), 9, "localhost");
  address.ca_file = ca_file;
  return address;
}

TEST(ApiClientTls, AcceptsTheRightCaAndName) {
  const auto ca = make_ca();
  const auto leaf = make_leaf(ca, "localhost");
  test::FakeApiServer server(leaf.certificate_pem, leaf.key_pem);
  const test::TemporaryFile roots(ca.certificate_pem);
  const auto answer = ApiClient(by_name(server, roots.path())).list({kConfigMaps, Namespace("a"), "", ""}, 1);
  EXPECT_TRUE(answer) << answer.error().message;
}

TEST(ApiClientTls, RefusesAnotherCa) {
  const auto leaf = make_leaf(make_ca(), "localhost");
  test::FakeApiServer server(leaf.certificate_pem, leaf.key_pem);
  const test::TemporaryFile roots(make_ca().certificate_pem);
  EXPECT_FALSE(ApiClient(by_name(server, roots.path())).list({kConfigMaps, Namespace("a"), "", ""}, 1));
  EXPECT_TRUE(server.requests().empty());
}

TEST(ApiClientTls, RefusesAnotherName) {
  const auto ca = make_ca();
  const auto leaf = make_leaf(ca, "elsewhere");
  test::FakeApiServer server(leaf.certificate_pem, leaf.key_pem);
  const test::TemporaryFile roots(ca.certificate_pem);
  EXPECT_FALSE(ApiClient(by_name(server, roots.path())).list({kConfigMaps, Namespace("a"), "", ""}, 1));
  EXPECT_TRUE(server.requests().empty());
}

TEST(ApiClientTls, FollowsAChangedCaFile) {
  const auto ca = make_ca();
  const auto leaf = make_leaf(ca, "localhost");
  test::FakeApiServer server(leaf.certificate_pem, leaf.key_pem);
  const test::TemporaryFile roots(make_ca().certificate_pem);
  ApiClient client(by_name(server, roots.path()));
  EXPECT_FALSE(client.list({kConfigMaps, Namespace("a"), "", ""}, 1));
  roots.write(ca.certificate_pem);
  const auto answer = client.list({kConfigMaps, Namespace("a"), "", ""}, 1);
  EXPECT_TRUE(answer) << answer.error().message;
}

}  // namespace
}  // namespace nezha::k8s
