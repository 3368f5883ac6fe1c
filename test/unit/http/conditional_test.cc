// Entity tags, preconditions (RFC 9110 §13.2.2) and If-Range (§13.1.5).
#include "nezha/http/conditional.h"

#include <gtest/gtest.h>

#include "nezha/http/date.h"

namespace nezha::http {
namespace {

const WallTime kNow = *parse_date("Sun, 06 Nov 1994 08:49:37 GMT", WallTime{});
constexpr char kOld[] = "Sun, 06 Nov 1994 07:00:00 GMT", kModified[] = "Sun, 06 Nov 1994 08:00:00 GMT";
constexpr char kNew[] = "Sun, 06 Nov 1994 08:30:00 GMT";

Fields stored(const char* etag) {
  Fields fields;
  fields.add("Date", format_date(kNow));
  if (*etag) fields.add("ETag", etag);
  fields.add("Last-Modified", kModified);
  return fields;
}

Precondition evaluate(std::initializer_list<std::pair<const char*, const char*>> lines, const char* etag = "\"a\"") {
  Fields request;
  for (const auto& [name, value] : lines) request.add(name, value);
  return evaluate_preconditions(request, stored(etag), kNow);
}

constexpr auto kProceed = Precondition::kProceed, kSame = Precondition::kNotModified, kFailed = Precondition::kFailed;

TEST(EntityTag, Syntax) {
  for (const char* good : {"\"\"", "\"a\"", "W/\"a\"", "\"a,b\"", "\"\xc3\xa9\"", "\"a\\b\""})
    EXPECT_TRUE(parse_entity_tag(good)) << good;
  for (const char* wrong : {"", "a", "\"a", "a\"", "w/\"a\"", "W/a", "W\"a\"", "\"a\"b\"", "\"a b\"", "\"", "W/\""}) {
    EXPECT_FALSE(parse_entity_tag(wrong)) << wrong;
  }
}

TEST(EntityTag, WeakAndStrongComparison) {  // the table of RFC 9110 §8.8.3.2
  const EntityTag w1{"W/\"1\""}, w2{"W/\"2\""}, s1{"\"1\""};
  EXPECT_FALSE(strong_match(w1, w1));
  EXPECT_TRUE(weak_match(w1, w1));
  EXPECT_FALSE(weak_match(w1, w2));
  EXPECT_FALSE(strong_match(w1, s1));
  EXPECT_TRUE(weak_match(w1, s1));
  EXPECT_TRUE(strong_match(s1, s1));
}

TEST(Preconditions, Evaluate) {
  EXPECT_EQ(evaluate({}), kProceed);
  EXPECT_EQ(evaluate({{"If-None-Match", "\"a\""}}), kSame);
  EXPECT_EQ(evaluate({{"If-None-Match", "W/\"a\""}}), kSame);
  EXPECT_EQ(evaluate({{"If-None-Match", "\"b\", \"a\""}}), kSame);
  EXPECT_EQ(evaluate({{"If-None-Match", "\"b\""}, {"If-None-Match", "\"a\""}}), kSame);
  EXPECT_EQ(evaluate({{"If-None-Match", "*"}}), kSame);
  EXPECT_EQ(evaluate({{"If-None-Match", "\"b\""}}), kProceed);
  EXPECT_EQ(evaluate({{"If-Match", "\"a\""}}), kProceed);
  EXPECT_EQ(evaluate({{"If-Match", "*"}}), kProceed);
  EXPECT_EQ(evaluate({{"If-Match", "\"b\""}}), kFailed);
  EXPECT_EQ(evaluate({{"If-Match", "W/\"a\""}}), kFailed) << "If-Match compares strongly";
  EXPECT_EQ(evaluate({{"If-Match", "W/\"a\""}}, "W/\"a\""), kFailed);
  EXPECT_EQ(evaluate({{"If-Modified-Since", kModified}}), kSame);
  EXPECT_EQ(evaluate({{"If-Modified-Since", kNew}}), kSame);
  EXPECT_EQ(evaluate({{"If-Modified-Since", kOld}}), kProceed);
  EXPECT_EQ(evaluate({{"If-Modified-Since", "yesterday"}}), kProceed);
  EXPECT_EQ(evaluate({{"If-Unmodified-Since", kOld}}), kFailed);
  EXPECT_EQ(evaluate({{"If-Unmodified-Since", kNew}}), kProceed);
}

TEST(Preconditions, Precedence) {
  EXPECT_EQ(evaluate({{"If-None-Match", "\"b\""}, {"If-Modified-Since", kNew}}), kProceed);
  EXPECT_EQ(evaluate({{"If-Match", "\"a\""}, {"If-Unmodified-Since", kOld}}), kProceed);
  EXPECT_EQ(evaluate({{"If-Match", "\"b\""}, {"If-None-Match", "\"a\""}}), kFailed);
}

bool holds(const char* value, Fields fields = stored("\"a\"")) {
  Fields request;
  request.add("If-Range", value);
  return if_range_holds(request, fields, kNow);
}

TEST(IfRange, NeedsAStrongMatch) {
  EXPECT_TRUE(if_range_holds({}, stored("\"a\""), kNow));
  EXPECT_TRUE(holds("\"a\""));
  EXPECT_FALSE(holds("\"b\""));
  EXPECT_FALSE(holds("W/\"a\"", stored("W/\"a\"")));
  EXPECT_TRUE(holds(kModified));
  EXPECT_FALSE(holds(kNew)) << "a later date is not the exact one";
  EXPECT_FALSE(holds("nonsense"));
  Fields same_second = stored("");
  same_second.set("Date", kModified);
  EXPECT_FALSE(holds(kModified, same_second)) << "may have changed again within that second";
}

}  // namespace
}  // namespace nezha::http
