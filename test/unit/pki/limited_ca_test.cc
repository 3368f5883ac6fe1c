// A CA limited by name constraints, and what OpenSSL says of leaves under it and under its other issues.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nezha/pki/certificates.h"

namespace nezha::pki {
namespace {

using std::chrono::hours;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const WallTime kStart = std::chrono::system_clock::from_time_t(1'800'000'000);
const Validity kLife{kStart, kStart + hours(1000)};

Identity ca_for(const std::vector<std::string>& hosts) { return make_limited_ca("nezha test", hosts, kLife).value(); }

std::string leaf_of(const Identity& ca, const std::string& host) {
  return make_leaf(ca, {host}, kLife).value().certificate_pem;
}

// Empty: the chain holds.
std::string verdict(const std::string& leaf, const std::string& ca_pem, const std::string& host) {
  const auto held = check_chain(leaf, ca_pem, host, kStart + hours(1));
  return held ? "" : held.error().message;
}

TEST(LimitedCa, HoldsForItsHostsAlone) {
  const Identity ca = ca_for({"data.example.org", "s3.example.com"});
  EXPECT_EQ(verdict(leaf_of(ca, "data.example.org"), ca.certificate_pem, "data.example.org"), "");
  EXPECT_EQ(verdict(leaf_of(ca, "s3.example.com"), ca.certificate_pem, "s3.example.com"), "");
  for (const char* other : {"example.org", "bank.example.net", "xdata.example.org", "com"})
    EXPECT_THAT(verdict(leaf_of(ca, other), ca.certificate_pem, other), HasSubstr("permitted subtree violation"));
}

// The canary of the test above: without constraints the same leaf holds.
TEST(LimitedCa, AnUnlimitedOneHoldsForAnyHost) {
  const Identity ca = make_ca("nezha test", kLife).value();
  EXPECT_EQ(verdict(leaf_of(ca, "bank.example.net"), ca.certificate_pem, "bank.example.net"), "");
}

TEST(LimitedCa, OneWrongNameSpoilsALeafWithSeveral) {
  const Identity ca = ca_for({"a.org"});
  const auto leaf = make_leaf(ca, {"a.org", "b.org"}, kLife).value();
  EXPECT_NE(verdict(leaf.certificate_pem, ca.certificate_pem, "a.org"), "");
}

TEST(LimitedCa, TellsWhatItPermits) {
  EXPECT_THAT(inspect(ca_for({"b.org", "a.org"}).certificate_pem).value().permitted_names,
              ElementsAre("b.org", "a.org"));
  EXPECT_TRUE(inspect(make_ca("x", kLife).value().certificate_pem).value().permitted_names.empty());
}

TEST(LimitedCa, ReissuedItIsTheSameCaForOtherHosts) {
  const Identity before = ca_for({"a.org"});
  const std::string after = reissue_limited_ca(before, {"a.org", "b.org"}).value();
  const auto old_info = inspect(before.certificate_pem).value(), info = inspect(after).value();
  EXPECT_EQ(info.subject, old_info.subject);
  EXPECT_EQ(info.validity.not_before, old_info.validity.not_before);
  EXPECT_EQ(info.validity.not_after, old_info.validity.not_after);
  EXPECT_THAT(info.permitted_names, ElementsAre("a.org", "b.org"));
  EXPECT_TRUE(check_pair({after, before.key_pem}));

  // Whichever issue a reader holds, leaves of the hosts it knows hold, signed before or after.
  const Identity reissued{after, before.key_pem};
  EXPECT_EQ(verdict(leaf_of(before, "a.org"), after, "a.org"), "");
  EXPECT_EQ(verdict(leaf_of(reissued, "a.org"), before.certificate_pem, "a.org"), "");
  EXPECT_EQ(verdict(leaf_of(reissued, "b.org"), after, "b.org"), "");
  EXPECT_NE(verdict(leaf_of(reissued, "b.org"), before.certificate_pem, "b.org"), "");
}

TEST(LimitedCa, NeedsANameAndACa) {
  EXPECT_FALSE(make_limited_ca("x", {}, kLife));
  const Identity ca = ca_for({"a.org"});
  EXPECT_FALSE(reissue_limited_ca(ca, {}));
  EXPECT_FALSE(reissue_limited_ca(make_leaf(ca, {"a.org"}, kLife).value(), {"a.org"}));
  EXPECT_FALSE(reissue_limited_ca({ca.certificate_pem, make_key().value()}, {"a.org"}));
}

TEST(LimitedCa, ManyLongNamesFit) {
  std::vector<std::string> hosts;
  for (int i = 0; i < 1000; ++i) hosts.push_back("host-" + std::to_string(i) + "." + std::string(60, 'x') + ".org");
  const Identity ca = ca_for(hosts);
  EXPECT_EQ(inspect(ca.certificate_pem).value().permitted_names, hosts);
  EXPECT_EQ(verdict(leaf_of(ca, hosts.back()), ca.certificate_pem, hosts.back()), "");
}

TEST(LeafOfKey, ManyLeavesShareOneKey) {
  const Identity ca = ca_for({"a.org", "b.org"});
  const std::string key = make_key().value();
  for (const char* host : {"a.org", "b.org"}) {
    const std::string leaf = make_leaf_of_key(ca, key, {host}, kLife).value();
    EXPECT_TRUE(check_pair({leaf, key}));
    EXPECT_EQ(verdict(leaf, ca.certificate_pem, host), "");
  }
  EXPECT_FALSE(make_leaf_of_key(ca, "garbage", {"a.org"}, kLife));
}

}  // namespace
}  // namespace nezha::pki
