// Authorities over time, and their text in a Secret.
#include "webhook/controller/authority.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "webhook/controller/leaf_set.h"

namespace nezha::webhook {
namespace {

using std::chrono::hours;
using ::testing::ElementsAre;

const WallTime kStart = std::chrono::system_clock::from_time_t(1'800'000'000);
const TrustTimes kTimes;
constexpr hours kDay{24};

Authority made(const std::vector<std::string>& hosts) {
  return settle_authority(std::nullopt, hosts, kStart, kTimes).value();
}

TEST(Authority, IsStableUntilSomethingIsDue) {
  const Authority authority = made({"a.org"});
  EXPECT_EQ(settle_authority(authority, {"a.org"}, kStart + 100 * kDay, kTimes).value(), authority);
}

TEST(Authority, FollowsTheHostsWithTheSameKey) {
  const Authority before = made({"a.org"});
  const Authority after = settle_authority(before, {"a.org", "b.org"}, kStart, kTimes).value();
  EXPECT_EQ(after.ca.key_pem, before.ca.key_pem);
  EXPECT_THAT(pki::inspect(after.ca.certificate_pem).value().permitted_names, ElementsAre("a.org", "b.org"));
}

TEST(Authority, NextCaIsTrustedForTheOverlapBeforeItSigns) {
  Authority authority = made({"a.org"});
  const std::string first = authority.ca.key_pem, first_pem = authority.ca.certificate_pem;
  WallTime now = kStart, added{}, promoted{};
  for (int day = 0; day < 4000; day += 10) {
    now = kStart + day * kDay;
    authority = settle_authority(authority, {"a.org"}, now, kTimes).value();
    if (authority.next_ca && added == WallTime{}) added = now;
    if (authority.ca.key_pem != first && promoted == WallTime{}) {
      promoted = now;
      EXPECT_THAT(authority.retired_pem, ElementsAre(first_pem));
    }
  }
  ASSERT_NE(promoted, WallTime{});
  EXPECT_GE(promoted - added, kTimes.overlap);
  EXPECT_LE(promoted + kTimes.leaf, kStart + kTimes.ca) << "leaves signed until then have ended before the CA does";
  EXPECT_TRUE(authority.retired_pem.empty()) << "it has ended";
}

TEST(Authority, SecretKeepsAllOfThem) {
  Authorities all{{kCacheAuthority, made({"a.org"})}, {authority_of(Namespace("next")), made({"a.org"})}};
  all[kCacheAuthority].next_ca = made({"a.org"}).ca;
  all[kCacheAuthority].retired_pem = {made({"a.org"}).ca.certificate_pem, made({"b.org"}).ca.certificate_pem};
  EXPECT_EQ(read_authorities(write_authorities(all)), all);
  SecretData broken = write_authorities(all);
  broken["cache.key"] = broken["namespace.next.key"];
  EXPECT_FALSE(read_authorities(broken).contains(kCacheAuthority));
}

TEST(LeafSet, KeepsGoodLeavesAndRenewsOthers) {
  const Authority authority = made({"a.org", "b.org"});
  const LeafSet first = settle_leaves({}, authority.ca, {"a.org"}, kStart, kTimes).value();
  const LeafSet both = settle_leaves(first, authority.ca, {"a.org", "b.org"}, kStart + kDay, kTimes).value();
  EXPECT_EQ(both.leaves.at("a.org"), first.leaves.at("a.org"));
  EXPECT_EQ(both.key_pem, first.key_pem);
  EXPECT_EQ(read_leaf_set(write_leaf_set(both)), both);
  const LeafSet later = settle_leaves(both, authority.ca, {"a.org", "b.org"}, kStart + 61 * kDay, kTimes).value();
  EXPECT_NE(later.leaves.at("a.org"), both.leaves.at("a.org"));
  const LeafSet fewer = settle_leaves(both, authority.ca, {"b.org"}, kStart + kDay, kTimes).value();
  EXPECT_EQ(fewer.leaves.size(), 1u);
  const Authority other = made({"a.org", "b.org"});
  EXPECT_NE(settle_leaves(both, other.ca, {"b.org"}, kStart + kDay, kTimes).value().leaves.at("b.org"),
            both.leaves.at("b.org"));
}

}  // namespace
}  // namespace nezha::webhook
