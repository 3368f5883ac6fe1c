#include "nezha/s3/event_notification.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nezha::test {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

std::vector<std::string> names_of(std::string_view json) {
  std::vector<std::string> out;
  const auto names = s3::parse_event_notification(json);
  if (!names) return {"error: " + names.error().message};
  for (const auto& name : names.value().named) out.push_back(name.bucket.get() + " " + name.key.get());
  return out;
}

std::string record(const std::string& event, const std::string& bucket, const std::string& key) {
  return R"({"eventVersion":"2.1","eventName":")" + event + R"(","s3":{"s3SchemaVersion":"1.0","bucket":{"name":")" +
         bucket + R"(","arn":"arn:aws:s3:::x"},"object":{"key":")" + key + R"(","size":1024,"eTag":"d4"}}})";
}

TEST(EventNotification, OfAws) {
  EXPECT_THAT(names_of(R"({"Records":[)" + record("ObjectCreated:Put", "team", "a/b.tar") + "," +
                       record("ObjectRemoved:Delete", "team", "c") + "]}"),
              ElementsAre("team a/b.tar", "team c"));
  // URL-encoded; a literal plus is possible all the same.
  EXPECT_THAT(names_of(R"({"Records":[)" + record("ObjectCreated:Copy", "team", "red+flower%2B.jpg") + "]}"),
              UnorderedElementsAre("team red flower+.jpg", "team red+flower%2B.jpg"));
  EXPECT_THAT(names_of(R"({"Service":"Amazon S3","Event":"s3:TestEvent","Bucket":"team"})"), ElementsAre());
}

TEST(EventNotification, OfMinioAndCeph) {
  EXPECT_THAT(names_of(R"({"EventName":"s3:ObjectCreated:Put","Key":"team/a","Records":[)" +
                       record("s3:ObjectCreated:Put", "team", "a") + "]}"),
              ElementsAre("team a"));
  EXPECT_THAT(names_of(R"({"Records":[)" + record("ObjectRemoved:DeleteMarkerCreated", "team", "a b") + "]}"),
              ElementsAre("team a b"));
  EXPECT_THAT(names_of(R"({"Records":[)" + record("s3:ObjectAccessed:Get", "team", "a") + "]}"), ElementsAre())
      << "a read changes nothing";
}

// One record that is not understood must not keep the others from being heard.
TEST(EventNotification, GoodRecordsCountBesideBadOnes) {
  const std::string bad = R"({"eventName":"ObjectCreated:Put","s3":{"bucket":{"name":"team"}}})";
  const std::string good = record("ObjectCreated:Put", "team", "a");
  const auto got = s3::parse_event_notification(R"({"Records":[)" + bad + "," + good + "," + bad + "]}");
  ASSERT_TRUE(got);
  EXPECT_EQ(got.value().not_understood, 2u);
  ASSERT_EQ(got.value().named.size(), 1u);
  EXPECT_EQ(got.value().named.front().key.get(), "a");
}

TEST(EventNotification, InsideAnSnsEnvelope) {
  std::string inner = R"({\"Records\":[{\"eventName\":\"ObjectCreated:Put\",\"s3\":{\"bucket\":{\"name\":\"team\"},)"
                      R"(\"object\":{\"key\":\"k\"}}}]})";
  EXPECT_THAT(names_of(R"({"Type":"Notification","TopicArn":"arn","Message":")" + inner + "\"}"),
              ElementsAre("team k"));
}

TEST(EventNotification, OfEventBridge) {
  EXPECT_THAT(names_of(R"({"detail-type":"Object Created","source":"aws.s3","detail":)"
                       R"({"bucket":{"name":"team"},"object":{"key":"a+b"}}})"),
              ElementsAre("team a+b"));
}

TEST(EventNotification, RefusesOthers) {
  for (const std::string body :
       {"", "[]", "null", "{}", "7", R"({"Records":7})", R"({"Records":[{"eventName":"ObjectCreated:Put"}]})",
        R"({"Records":[{"eventName":"ObjectCreated:Put","s3":{"bucket":{"name":7},"object":{"key":"k"}}}]})",
        R"({"Type":"SubscriptionConfirmation","SubscribeURL":"http://x"})", R"({"Type":"Notification","Message":"no"})",
        "{\"Records\":["})
    EXPECT_FALSE(s3::parse_event_notification(body)) << body;
}

}  // namespace
}  // namespace nezha::test
