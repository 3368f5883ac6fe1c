// Aim: Named values compare, hash and order as their values do, and two kinds of name do not mix.
#include "nezha/base/named.h"

#include <gtest/gtest.h>

#include <type_traits>
#include <unordered_set>

namespace nezha {
namespace {

static_assert(!std::is_convertible_v<std::string, HostName>, "a plain string becomes a name only where it is written");
static_assert(!std::is_convertible_v<HostName, UpstreamName>);
static_assert(!std::is_constructible_v<UpstreamName, HostName>);

TEST(Named, ComparesByValue) {
  EXPECT_EQ(HostName("a"), HostName("a"));
  EXPECT_NE(HostName("a"), HostName("b"));
  EXPECT_LT(HostName("a"), HostName("b"));
  EXPECT_EQ(HostName().get(), "");
}

TEST(Named, Hashes) {
  const std::unordered_set<HostName> set{HostName("a"), HostName("a"), HostName("b")};
  EXPECT_EQ(set.size(), 2U);
  EXPECT_TRUE(set.contains(HostName("b")));
}

}  // namespace
}  // namespace nezha
