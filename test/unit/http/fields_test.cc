// Fields, list members, dates, hop-by-hop removal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nezha/http/date.h"
#include "nezha/http/message.h"

namespace nezha::http {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Fields, SetRemoveAndCount) {
  Fields fields;
  fields.add("A", "1");
  fields.add("b", "2");
  fields.add("a", "3");
  EXPECT_EQ(fields.count("A"), 2u);
  EXPECT_EQ(fields.joined("a"), "1, 3");
  fields.set("A", "4");
  EXPECT_EQ(fields.joined("a"), "4");
  fields.remove("B");
  EXPECT_FALSE(fields.has("b"));
  EXPECT_EQ(fields.size(), 1u);
}

TEST(ListMembers, SplitsAtCommasOutsideQuotes) {
  EXPECT_THAT(list_members("a, b ,,\tc"), ElementsAre("a", "b", "c"));
  EXPECT_THAT(list_members("a=\"x,y\", b"), ElementsAre("a=\"x,y\"", "b"));
  EXPECT_THAT(list_members("\"x\\\",y\",b"), ElementsAre("\"x\\\",y\"", "b"));
  EXPECT_THAT(list_members(" , ,"), IsEmpty());
  EXPECT_THAT(list_members("\"open, b"), ElementsAre("\"open, b"));
  EXPECT_THAT(list_members("a\"b\\"), ElementsAre("a\"b\\"));
}

TEST(HopByHop, WhatConnectionNamesGoes) {
  Fields fields;
  for (const auto& [name, value] :
       std::initializer_list<std::pair<const char*, const char*>>{{"Host", "a"},
                                                                  {"Connection", "x-one, Host, close"},
                                                                  {"connection", "X-Two"},
                                                                  {"X-One", "1"},
                                                                  {"x-two", "2"},
                                                                  {"Keep-Alive", "t"},
                                                                  {"Proxy-Connection", "t"},
                                                                  {"TE", "trailers"},
                                                                  {"Transfer-Encoding", "chunked"},
                                                                  {"Upgrade", "h2c"},
                                                                  {"Proxy-Authorization", "x"},
                                                                  {"Proxy-Authenticate", "x"},
                                                                  {"Content-Length", "5"},
                                                                  {"X-Three", "3"}}) {
    fields.add(name, value);
  }
  remove_hop_by_hop(fields);
  std::string names;
  fields.for_each([&](std::string_view name, std::string_view) { names.append(name).append(" "); });
  EXPECT_EQ(names, "Host Content-Length X-Three ");
}

TEST(Date, ThreeForms) {
  const WallTime now = *parse_date("Mon, 30 Nov 2026 00:00:00 GMT", WallTime{});
  const auto wanted = parse_date("Sun, 06 Nov 1994 08:49:37 GMT", now);
  ASSERT_TRUE(wanted);
  EXPECT_EQ(std::chrono::system_clock::to_time_t(*wanted), 784111777);
  EXPECT_EQ(parse_date("Sunday, 06-Nov-94 08:49:37 GMT", now), wanted);
  EXPECT_EQ(parse_date("Sun Nov  6 08:49:37 1994", now), wanted);
  EXPECT_EQ(format_date(*wanted), "Sun, 06 Nov 1994 08:49:37 GMT");
}

TEST(Date, AnythingElseIsNone) {
  for (const char* text :
       {"", "0", "-1", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 UTC", "Sun, 31 Feb 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:00:00 GMT", "Xyz, 06 Nov 1994 08:49:37 GMT", "Sun, 6 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 99999 08:49:37 GMT", "Sun Nov 6 08:49:37 1994", "784111777", "Sun, 00 Nov 1994 08:49:37 GMT"}) {
    EXPECT_FALSE(parse_date(text, WallTime{})) << text;
  }
}

TEST(Date, FarYearsAreFarAndDoNotOverflow) {
  const WallTime now = *parse_date("Mon, 30 Nov 2026 00:00:00 GMT", WallTime{});
  const auto never = parse_date("Fri, 31 Dec 9999 23:59:59 GMT", now),
             ever = parse_date("Mon, 01 Jan 0001 00:00:00 GMT", now);
  ASSERT_TRUE(never && ever);
  EXPECT_GT(*never, now + std::chrono::hours(24 * 365 * 100));
  EXPECT_LT(*ever, now - std::chrono::hours(24 * 365 * 100));
  EXPECT_GT(*never - *ever, std::chrono::hours(24 * 365 * 200));
}

TEST(Date, RoundTripsForEveryDayOfFiftyYears) {
  for (int day = 0; day < 50 * 365; ++day) {
    const WallTime time = WallTime{} + std::chrono::hours(24 * day) + std::chrono::seconds(day % 86400);
    ASSERT_EQ(parse_date(format_date(time), time), time) << day;
  }
}

}  // namespace
}  // namespace nezha::http
