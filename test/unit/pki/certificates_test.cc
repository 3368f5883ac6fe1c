// Certificates made here hold against OpenSSL's own verification, and nothing else does.
#include "nezha/pki/certificates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nezha::pki {
namespace {

using std::chrono::hours;
using ::testing::HasSubstr;

const WallTime kStart = std::chrono::system_clock::from_time_t(1'800'000'000);
const std::vector<std::string> kNames{"nezha-webhook.nezha-system.svc", "nezha-webhook"};

Identity ca_for(hours life) { return make_ca("nezha test", {kStart, kStart + life}).value(); }

TEST(Pki, LeafChainsToItsCaForEachName) {
  const Identity ca = ca_for(hours(100));
  const auto leaf = make_leaf(ca, kNames, {kStart, kStart + hours(10)});
  ASSERT_TRUE(leaf) << leaf.error().message;
  for (const std::string& name : kNames) {
    const auto held = check_chain(leaf.value().certificate_pem, ca.certificate_pem, name, kStart + hours(5));
    EXPECT_TRUE(held) << held.error().message;
  }
}

TEST(Pki, ChainFailsForAnotherNameTimeOrCa) {
  const Identity ca = ca_for(hours(100));
  const Identity leaf = make_leaf(ca, kNames, {kStart, kStart + hours(10)}).value();
  const std::string& name = kNames[0];
  EXPECT_FALSE(check_chain(leaf.certificate_pem, ca.certificate_pem, "other.svc", kStart + hours(5)));
  EXPECT_FALSE(check_chain(leaf.certificate_pem, ca.certificate_pem, name, kStart + hours(11)));
  EXPECT_FALSE(check_chain(leaf.certificate_pem, ca.certificate_pem, name, kStart - hours(1)));
  EXPECT_FALSE(check_chain(leaf.certificate_pem, ca_for(hours(100)).certificate_pem, name, kStart + hours(5)));
  EXPECT_FALSE(check_chain("garbage", ca.certificate_pem, name, kStart));
  EXPECT_FALSE(check_chain(leaf.certificate_pem, "garbage", name, kStart));
}

TEST(Pki, LeafIsNoCaAndCannotSign) {
  const Identity ca = ca_for(hours(100));
  const Identity leaf = make_leaf(ca, kNames, {kStart, kStart + hours(10)}).value();
  EXPECT_TRUE(inspect(ca.certificate_pem).value().is_ca);
  EXPECT_FALSE(inspect(leaf.certificate_pem).value().is_ca);
  const auto grandchild = make_leaf(leaf, kNames, {kStart, kStart + hours(1)});
  ASSERT_FALSE(grandchild);
  EXPECT_THAT(grandchild.error().message, HasSubstr("no CA"));
}

TEST(Pki, LeafDoesNotOutliveItsCa) {
  const Identity leaf = make_leaf(ca_for(hours(5)), kNames, {kStart, kStart + hours(10)}).value();
  EXPECT_EQ(inspect(leaf.certificate_pem).value().validity.not_after, kStart + hours(5));
}

TEST(Pki, InspectTellsNamesTimesAndAFingerprint) {
  const Identity ca = ca_for(hours(100));
  const auto info = inspect(make_leaf(ca, kNames, {kStart, kStart + hours(10)}).value().certificate_pem);
  ASSERT_TRUE(info);
  EXPECT_EQ(info.value().dns_names, kNames);
  EXPECT_EQ(info.value().validity.not_before, kStart);
  EXPECT_EQ(info.value().validity.not_after, kStart + hours(10));
  EXPECT_EQ(info.value().fingerprint.size(), 64u);
  EXPECT_NE(info.value().fingerprint, inspect(ca.certificate_pem).value().fingerprint);
}

TEST(Pki, EachCaHasItsOwnSubjectAndKey) {
  const Identity a = ca_for(hours(1)), b = ca_for(hours(1));
  EXPECT_NE(a.key_pem, b.key_pem);
  EXPECT_NE(inspect(a.certificate_pem).value().subject, inspect(b.certificate_pem).value().subject);
}

TEST(Pki, PairMustFit) {
  const Identity a = ca_for(hours(1)), b = ca_for(hours(1));
  EXPECT_TRUE(check_pair(a));
  const auto mixed = check_pair({a.certificate_pem, b.key_pem});
  ASSERT_FALSE(mixed);
  EXPECT_THAT(mixed.error().message, HasSubstr("does not belong"));
  EXPECT_FALSE(check_pair({"", ""}));
  EXPECT_FALSE(check_pair({a.certificate_pem, "garbage"}));
  EXPECT_FALSE(make_leaf({a.certificate_pem, b.key_pem}, kNames, {kStart, kStart + hours(1)}));
}

TEST(Pki, EncryptedKeyIsRefusedWithoutAskingAnybody) {
  const auto answer =
      check_pair({ca_for(hours(1)).certificate_pem,
                  "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMAAA\n-----END ENCRYPTED PRIVATE KEY-----\n"});
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().message, HasSubstr("not an unencrypted PEM private key"));
}

TEST(Pki, LeafNeedsAName) { EXPECT_FALSE(make_leaf(ca_for(hours(1)), {}, {kStart, kStart + hours(1)})); }

TEST(Pki, BundleIsSplitAndGarbageDropped) {
  const std::string a = ca_for(hours(1)).certificate_pem, b = ca_for(hours(1)).certificate_pem;
  EXPECT_EQ(split_bundle("# comment\n" + a + "text\n" + b), (std::vector<std::string>{a, b}));
  EXPECT_EQ(split_bundle(a + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n" + b),
            (std::vector<std::string>{a, b}));
  EXPECT_TRUE(split_bundle("").empty());
  EXPECT_TRUE(split_bundle("-----BEGIN CERTIFICATE-----").empty());
}

}  // namespace
}  // namespace nezha::pki
