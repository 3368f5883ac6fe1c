#include "cache/credentials/key_ring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "cache/credentials/approvals.h"
#include "test/support/event.h"
#include "test/support/temporary_directory.h"

namespace nezha::cache {
namespace {

using test::TemporaryDirectory;

void write(const std::string& path, std::string_view text) { std::ofstream(path) << text; }

class ReadKeySet : public testing::Test {
 protected:
  ReadKeySet() {
    write(path("accessKeyId"), "AKIA1\n");
    write(path("secretAccessKey"), "s3cr3t/+=\r\n");
  }
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  void expect_error(const std::string& file, const std::string& text, const std::string& error) {
    write(path(file), text);
    const auto set = read_key_set(folder_.path());
    ASSERT_FALSE(set);
    EXPECT_EQ(set.error().message, path(file) + ": " + error);
    EXPECT_THAT(set.error().message, testing::Not(testing::HasSubstr("s3cr3t")));
  }
  TemporaryDirectory folder_;
};

TEST_F(ReadKeySet, TakesTheKeysWithoutBlanksAround) {
  const auto set = read_key_set(folder_.path());
  ASSERT_TRUE(set) << set.error().message;
  EXPECT_EQ(set.value().own.access_key_id.get(), "AKIA1");
  EXPECT_EQ(set.value().own.secret_key.reveal(), "s3cr3t/+=");
  EXPECT_TRUE(set.value().own.session_token.empty());
  EXPECT_EQ(set.value().region, "us-east-1");
}

TEST_F(ReadKeySet, TakesWhatIsOptional) {
  write(path("sessionToken"), "token\n");
  write(path("region"), "eu-west-1");
  write(path("readers"), "# who trains\nAKIA2 two\n\n  AKIA3\t three \r\n");
  const auto set = read_key_set(folder_.path());
  ASSERT_TRUE(set) << set.error().message;
  EXPECT_EQ(set.value().own.session_token.reveal(), "token");
  EXPECT_EQ(set.value().region, "eu-west-1");
  EXPECT_EQ(set.value().find(s3::AccessKeyId("AKIA1")), &set.value().own);
  ASSERT_NE(set.value().find(s3::AccessKeyId("AKIA3")), nullptr);
  EXPECT_EQ(set.value().find(s3::AccessKeyId("AKIA3"))->secret_key.reveal(), "three");
  EXPECT_EQ(set.value().find(s3::AccessKeyId("AKIA")), nullptr);
  EXPECT_EQ(set.value().find(s3::AccessKeyId("")), nullptr);
}

TEST_F(ReadKeySet, NamesTheFileThatIsWrongAndNothingOfASecret) {
  expect_error("readers", "AKIA2 two\nAKIA3\n", "line 2 is not ACCESS_KEY_ID SECRET_ACCESS_KEY");
  expect_error("readers", "AKIA2 s3cr3t of three\n", "line 1 is not ACCESS_KEY_ID SECRET_ACCESS_KEY");
  std::filesystem::remove(path("readers"));
  expect_error("sessionToken", "\n", "is missing or empty");
  expect_error("secretAccessKey", "s3cr3t and more", "is not one word of visible ASCII");
  expect_error("secretAccessKey", std::string(1024 * 1024 + 1, 's'), "is too large for a Secret");
  std::filesystem::remove(path("accessKeyId"));
  const auto set = read_key_set(folder_.path());
  ASSERT_FALSE(set);
}

TEST(KeyRing, FollowsItsDirectory) {
  TemporaryDirectory directory;
  const auto log = obs::make_null_log();
  const auto metrics = obs::make_metrics();
  const auto ring = follow_key_ring(directory.path() + "/later", *log, *metrics);
  EXPECT_EQ(ring->find("a"), nullptr);
  const std::string folder = directory.path() + "/later/a";
  std::filesystem::create_directories(folder);
  write(folder + "/accessKeyId", "AKIA1");
  write(folder + "/secretAccessKey", "one");
  const auto secret = [&]() -> std::string {
    const auto set = ring->find("a");
    return set ? std::string(set->own.secret_key.reveal()) : "";
  };
  EXPECT_TRUE(test::eventually([&] { return secret() == "one"; }));
  const auto held = ring->find("a");
  write(folder + "/secretAccessKey", "not a secret");
  EXPECT_TRUE(test::eventually(
      [&] { return metrics->expose().find("nezha_cache_credentials_errors_total 1") != std::string::npos; }));
  EXPECT_EQ(secret(), "one") << "the last good keys stay";
  write(folder + "/secretAccessKey", "two");
  EXPECT_TRUE(test::eventually([&] { return secret() == "two"; }));
  std::filesystem::remove_all(folder);
  EXPECT_TRUE(test::eventually([&] { return ring->find("a") == nullptr; }));
  EXPECT_EQ(held->own.secret_key.reveal(), "one") << "whoever holds keys keeps them";
}

Approvals::Subject subject(const std::string& reader, const std::string& path = "h/p", const std::string& agent = "") {
  return Approvals::subject(reader, path, {"query", agent});
}

TEST(Approvals, AreAboutAllOfTheirParts) {
  Approvals approvals(1000);
  const SteadyTime now{};
  approvals.note(subject("id"), "\"1\"", now);
  const auto holds = [&](const Approvals::Subject& of, const char* etag) {
    return approvals.holds(of, etag, now, std::chrono::seconds(1));
  };
  EXPECT_TRUE(holds(subject("id"), "\"1\""));
  EXPECT_FALSE(holds(subject("id"), "\"2\""));
  EXPECT_FALSE(holds(subject("id2"), "\"1\""));
  EXPECT_FALSE(holds(subject("id", "h/p2"), "\"1\""));
  EXPECT_FALSE(holds(subject("id", "h/p", "agent"), "\"1\""));
  EXPECT_FALSE(holds(Approvals::subject("id", "h/p", {"quer", "y"}), "\"1\"")) << "parts do not run into each other";
  approvals.note(subject("id"), "\"2\"", now);
  EXPECT_FALSE(holds(subject("id"), "\"1\""));
  EXPECT_TRUE(holds(subject("id"), "\"2\""));
}

TEST(Approvals, AreEndedForAReaderForAPathAndForAll) {
  const SteadyTime begun{}, ended = begun + std::chrono::seconds(1);
  const std::vector<Approvals::Subject> subjects = {subject("a"), subject("a", "h/p", "agent"), subject("b"),
                                                    subject("a", "h/other")};
  const auto left_after = [&](const auto& end) {
    Approvals approvals(1000);
    for (const auto& one : subjects) approvals.note(one, "\"1\"", begun);
    end(approvals);
    std::string left;
    for (const auto& one : subjects) left += approvals.holds(one, "\"1\"", ended, std::chrono::seconds(9)) ? '1' : '0';
    // An answer that was late says nothing any more.
    approvals.note(subjects.front(), "\"1\"", begun);
    EXPECT_FALSE(approvals.holds(subjects.front(), "\"1\"", ended, std::chrono::seconds(9)));
    approvals.note(subjects.front(), "\"1\"", ended + std::chrono::nanoseconds(1));
    EXPECT_TRUE(approvals.holds(subjects.front(), "\"1\"", ended, std::chrono::seconds(9)));
    return left;
  };
  EXPECT_EQ(left_after([&](Approvals& approvals) { approvals.refuse(subject("a"), ended); }), "0011");
  EXPECT_EQ(left_after([&](Approvals& approvals) { approvals.end("h/p", ended); }), "0001");
  EXPECT_EQ(left_after([&](Approvals& approvals) { approvals.end_all(ended); }), "0000");
}

TEST(Approvals, EndAndStayFew) {
  Approvals approvals(160);
  SteadyTime now{};
  const auto held = [&](const std::string& reader, const std::string& path) {
    int out = 0;
    for (int i = 0; i < 10'000; ++i)
      out += approvals.holds(subject(reader, path + std::to_string(i)), "\"1\"", now, std::chrono::seconds(10));
    return out;
  };
  for (int i = 0; i < 10'000; ++i) approvals.note(subject("a", "p" + std::to_string(i)), "\"1\"", now);
  EXPECT_LE(held("a", "p"), 160);
  EXPECT_GE(held("a", "p"), 1);
  now += std::chrono::seconds(10);
  EXPECT_EQ(held("a", "p"), 0);
  // Many readers of one path: the latest stay.
  Approvals many(1'000'000);
  for (int i = 0; i < 1000; ++i) many.note(subject(std::to_string(i)), "\"1\"", now);
  EXPECT_TRUE(many.holds(subject("999"), "\"1\"", now, std::chrono::seconds(1)));
  EXPECT_FALSE(many.holds(subject("0"), "\"1\"", now, std::chrono::seconds(1)));
}

}  // namespace
}  // namespace nezha::cache
