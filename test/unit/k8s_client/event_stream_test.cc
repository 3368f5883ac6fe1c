// The watch parser: the same events at every fragment size, and garbage that must be an error and never a crash.
#include "src/k8s/client/event_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nezha::k8s {
namespace {

using ::testing::HasSubstr;

constexpr size_t kLineMax = 10'000;
constexpr std::string_view kStream =
    R"({"type":"ADDED","object":{"metadata":{"name":"a","namespace":"n","uid":"u",)"
    R"("resourceVersion":"7"},"data":{"k":"v"}}})"
    "\n\n"
    R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}})"
    "\n"
    R"({"type":"DELETED","object":{"metadata":{"name":"a","namespace":"n","resourceVersion":"10"}}})"
    "\n"
    R"({"type":"ERROR","object":{"code":410,"message":"gone"}})"
    "\n";

void expect_the_four(const std::vector<Event>& events) {
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0].type, Event::Type::kUpsert);
  EXPECT_EQ(events[0].object->key, (ObjectKey{Namespace("n"), "a"}));
  EXPECT_EQ(events[0].object->uid, "u");
  EXPECT_THAT(events[0].object->json, HasSubstr(R"("k":"v")"));
  EXPECT_EQ(events[1].type, Event::Type::kBookmark);
  EXPECT_EQ(events[1].resource_version, "9");
  EXPECT_EQ(events[2].type, Event::Type::kDeleted);
  EXPECT_EQ(events[2].resource_version, "10");
  EXPECT_EQ(events[3].type, Event::Type::kError);
  EXPECT_EQ(events[3].error_code, 410);
  EXPECT_EQ(events[3].error_message, "gone");
}

TEST(EventStream, SameEventsAtEveryFragmentSize) {
  for (size_t size = 1; size <= kStream.size(); size = size < 16 ? size + 1 : size * 2) {
    SCOPED_TRACE(size);
    EventStream stream(kLineMax);
    std::vector<Event> all;
    for (size_t at = 0; at < kStream.size(); at += size) {
      auto events = stream.feed(kStream.substr(at, size));
      ASSERT_TRUE(events) << events.error().message;
      for (Event& event : events.value()) all.push_back(std::move(event));
    }
    expect_the_four(all);
  }
}

TEST(EventStream, GarbageIsAnError) {
  for (const char* line : {"garbage",
                           "[]",
                           "null",
                           "7",
                           "\"text\"",
                           "{}",
                           R"({"type":"ADDED"})",
                           R"({"type":"ADDED","object":null})",
                           R"({"type":"ADDED","object":[]})",
                           R"({"type":"ADDED","object":{}})",
                           R"({"type":"ADDED","object":{"metadata":7}})",
                           R"({"type":"ADDED","object":{"metadata":{"name":"a"}}})",
                           R"({"type":"ADDED","object":{"metadata":{"name":7,"resourceVersion":"1"}}})",
                           R"({"type":7,"object":{}})",
                           R"({"type":"NEW","object":{"metadata":{"name":"a","resourceVersion":"1"}}})",
                           R"({"type":"BOOKMARK","object":{}})",
                           R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":1}}})",
                           R"({"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"1"}})",
                           "\xff\xfe",
                           "{\"type\":\"\xff\"}"}) {
    EventStream stream(kLineMax);
    EXPECT_FALSE(stream.feed(std::string(line) + "\n")) << line;
  }
}

TEST(EventStream, ErrorEventsWithOddContentsStayErrors) {
  for (const char* object : {"{}", R"({"code":"410"})", R"({"code":1e400})", R"({"message":7})"}) {
    EventStream stream(kLineMax);
    const auto events = stream.feed(std::string(R"({"type":"ERROR","object":)") + object + "}\n");
    if (!events) continue;  // a number that JSON cannot hold
    ASSERT_EQ(events.value().size(), 1u) << object;
    EXPECT_EQ(events.value()[0].error_code, 0) << object;
  }
}

TEST(EventStream, LineOverTheLimitIsAnErrorBeforeItsEnd) {
  EventStream stream(100);
  EXPECT_TRUE(stream.feed(std::string(60, ' ')));
  const auto events = stream.feed(std::string(60, ' '));
  ASSERT_FALSE(events);
  EXPECT_THAT(events.error().message, HasSubstr("larger than the limit of 100 bytes"));
}

TEST(EventStream, InvalidUtf8InAnObjectIsNoCrash) {
  EventStream stream(kLineMax);
  (void)stream.feed("{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\xc3\",\"resourceVersion\":\"1\"}}}\n");
}

TEST(ListPage, ItemsVersionAndNextPage) {
  const auto page = parse_list_page(R"({"metadata":{"resourceVersion":"5","continue":"more"},)"
                                    R"("items":[{"metadata":{"name":"a","resourceVersion":"3"}}]})");
  ASSERT_TRUE(page);
  EXPECT_EQ(page.value().resource_version, "5");
  EXPECT_EQ(page.value().next, "more");
  ASSERT_EQ(page.value().items.size(), 1u);
  EXPECT_EQ(page.value().items[0]->resource_version, "3");
  EXPECT_TRUE(parse_list_page(R"({"metadata":{"resourceVersion":"5"},"items":null})"));
}

TEST(ListPage, GarbageIsAnError) {
  for (const char* text :
       {"", "x", "[]", "{}", R"({"metadata":{}})", R"({"metadata":{"resourceVersion":"1"},"items":7})",
        R"({"metadata":{"resourceVersion":"1"},"items":[{}]})"}) {
    EXPECT_FALSE(parse_list_page(text)) << text;
  }
}

}  // namespace
}  // namespace nezha::k8s
