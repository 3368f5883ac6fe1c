// Cache-Control (RFC 9111 §5.2) and the arithmetic of freshness (§4.2).
#include "nezha/http/cache_control.h"

#include <gtest/gtest.h>

#include "nezha/http/date.h"

namespace nezha::http {
namespace {

using std::chrono::hours;

Fields with(std::initializer_list<std::pair<const char*, std::string>> lines) {
  Fields fields;
  for (const auto& [name, value] : lines) fields.add(name, value);
  return fields;
}

CacheControl parse(const std::string& value) { return parse_cache_control(with({{"Cache-Control", value}})); }

TEST(CacheControl, Directives) {
  EXPECT_TRUE(parse("no-store").no_store);
  EXPECT_TRUE(parse("NO-STORE").no_store);
  EXPECT_TRUE(parse("a, no-store ,b").no_store);
  EXPECT_FALSE(parse("x-no-store").no_store);
  EXPECT_FALSE(parse("community=\"no-store\"").no_store);
  EXPECT_FALSE(parse("community=\"a, no-store\"").no_store);
  EXPECT_TRUE(parse("private").is_private);
  EXPECT_FALSE(parse("private=\"X-A\"").is_private) << "the rest may be shared";
  EXPECT_EQ(parse("private=\"X-A\"").withheld_fields.size(), 1u);
  EXPECT_TRUE(parse("no-cache").no_cache);
  EXPECT_FALSE(parse("no-cache=\"Set-Cookie\"").no_cache);
  EXPECT_EQ(parse("no-cache=\"Set-Cookie, X\"").withheld_fields.size(), 2u);
  EXPECT_EQ(parse("max-age=60").max_age, Seconds(60));
  EXPECT_EQ(parse("max-age=\"60\"").max_age, Seconds(60));
  EXPECT_EQ(parse("s-maxage=60, max-age=5").s_maxage, Seconds(60));
  EXPECT_TRUE(parse("max-stale").max_stale_any);
  EXPECT_EQ(parse("max-stale=5").max_stale, Seconds(5));
  EXPECT_TRUE(parse("only-if-cached").only_if_cached);
}

TEST(CacheControl, TheCarefulReadingWins) {
  EXPECT_EQ(parse("max-age=60, max-age=5").max_age, Seconds(5));
  EXPECT_EQ(parse("max-age=5, max-age=60").max_age, Seconds(5));
  EXPECT_EQ(parse("max-age").max_age, Seconds(0));
  EXPECT_EQ(parse("max-age=").max_age, Seconds(0));
  EXPECT_EQ(parse("max-age=abc").max_age, Seconds(0));
  EXPECT_EQ(parse("max-age=-1").max_age, Seconds(0));
  EXPECT_EQ(parse("max-age=1.5").max_age, Seconds(0));
  EXPECT_EQ(parse("max-age=99999999999999999999999").max_age, Seconds(2147483648));
}

TEST(CacheControl, LinesAreOneList) {
  const auto control =
      parse_cache_control(with({{"Cache-Control", "public"}, {"cache-control", "max-age=7, no-store"}}));
  EXPECT_TRUE(control.is_public && control.no_store);
  EXPECT_EQ(control.max_age, Seconds(7));
}

class Freshness : public testing::Test {
 protected:
  WallTime now_ = *parse_date("Sun, 06 Nov 1994 08:49:37 GMT", WallTime{});
  Lifetime lifetime(Fields fields) { return lifetime_of(fields, parse_cache_control(fields), now_, now_); }
  std::string date(hours from_now) { return format_date(now_ + from_now); }
};

TEST_F(Freshness, SharedMaxAgeBeatsMaxAgeBeatsExpires) {
  EXPECT_EQ(lifetime(with({{"Cache-Control", "max-age=5, s-maxage=60"}, {"Expires", date(hours(1))}})).fresh_for,
            Seconds(60));
  EXPECT_EQ(lifetime(with({{"Cache-Control", "max-age=5"}, {"Expires", date(hours(1))}})).fresh_for, Seconds(5));
  EXPECT_EQ(lifetime(with({{"Date", date(hours(0))}, {"Expires", date(hours(1))}})).fresh_for, Seconds(3600));
}

TEST_F(Freshness, ABadExpiresIsThePast) {
  for (const std::string value : {"0", "-1", "never", ""}) {
    const auto got = lifetime(with({{"Expires", value}, {"Last-Modified", date(hours(-1000))}}));
    EXPECT_EQ(got.fresh_for, Seconds(0)) << value;
    EXPECT_TRUE(got.explicit_) << value;
  }
  EXPECT_EQ(lifetime(with({{"Expires", date(hours(1))}, {"Expires", date(hours(2))}})).fresh_for, Seconds(0));
}

TEST_F(Freshness, HeuristicIsATenthAndAtMostADay) {
  const auto tenth = lifetime(with({{"Date", date(hours(0))}, {"Last-Modified", date(hours(-10))}}));
  EXPECT_EQ(tenth.fresh_for, Seconds(3600));
  EXPECT_TRUE(tenth.heuristic);
  EXPECT_EQ(lifetime(with({{"Last-Modified", date(hours(-24 * 365))}})).fresh_for, hours(24));
  EXPECT_EQ(lifetime(with({{"Last-Modified", date(hours(5))}})).fresh_for, Seconds(0));
  EXPECT_EQ(lifetime({}).fresh_for, Seconds(0));
}

TEST_F(Freshness, AgeCountsFromTheOrigin) {
  EXPECT_EQ(lifetime(with({{"Age", "100"}, {"Cache-Control", "max-age=60"}})).initial_age, Seconds(100));
  EXPECT_EQ(lifetime(with({{"Date", date(hours(-2))}})).initial_age, hours(2));
  EXPECT_EQ(lifetime(with({{"Date", date(hours(2))}})).initial_age, Seconds(0));
  EXPECT_EQ(lifetime(with({{"Age", "-5"}})).initial_age, Seconds(0));
  const auto slow = lifetime_of(with({{"Age", "10"}}), {}, now_ - Seconds(7), now_);
  EXPECT_EQ(slow.initial_age, Seconds(17));
}

}  // namespace
}  // namespace nezha::http
