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

constexpr auto kHeader = Approvals::Way::kHeader, kQuery = Approvals::Way::kQuery;

Approvals::Token token_of(const std::string& reader, const CacheKey& key = {"h/p", "q"}) {
  return Approvals::token(s3::AccessKeyId(reader), key);
}

TEST(Approvals, AreAboutAllOfTheirParts) {
  Approvals approvals(1000);
  const SteadyTime now{};
  approvals.note(token_of("id"), "\"1\"", kHeader, now);
  const auto holds = [&](const Approvals::Token& token, const char* etag, Approvals::Way way) {
    return approvals.holds(token, etag, way, now, std::chrono::seconds(1));
  };
  EXPECT_TRUE(holds(token_of("id"), "\"1\"", kHeader));
  EXPECT_FALSE(holds(token_of("id"), "\"1\"", kQuery));
  EXPECT_FALSE(holds(token_of("id"), "\"2\"", kHeader));
  EXPECT_FALSE(holds(token_of("id2"), "\"1\"", kHeader));
  EXPECT_FALSE(holds(token_of("id", {"h/pq", ""}), "\"1\"", kHeader));
  EXPECT_FALSE(holds(token_of("id", {"h/p", ""}), "\"1\"", kHeader));
  approvals.note(token_of("id"), "\"1\"", kQuery, now);
  EXPECT_TRUE(holds(token_of("id"), "\"1\"", kHeader) && holds(token_of("id"), "\"1\"", kQuery));
  approvals.note(token_of("id"), "\"2\"", kQuery, now);
  EXPECT_FALSE(holds(token_of("id"), "\"2\"", kHeader)) << "of the version before";
}

TEST(Approvals, ARefusalEndsThemAndWhatWasAskedBefore) {
  Approvals approvals(1000);
  const SteadyTime begun{}, refused = begun + std::chrono::seconds(1);
  const auto holds = [&](Approvals::Way way) {
    return approvals.holds(token_of("id"), "\"1\"", way, refused, std::chrono::seconds(10));
  };
  for (const auto way : {kHeader, kQuery}) approvals.note(token_of("id"), "\"1\"", way, begun);
  EXPECT_TRUE(holds(kHeader) && holds(kQuery));
  approvals.refuse(token_of("id"), refused);
  EXPECT_FALSE(holds(kHeader) || holds(kQuery));
  approvals.note(token_of("id"), "\"1\"", kHeader, begun);
  EXPECT_FALSE(holds(kHeader)) << "an answer that was late";
  approvals.note(token_of("id"), "\"1\"", kHeader, refused + std::chrono::nanoseconds(1));
  EXPECT_TRUE(holds(kHeader));
}

TEST(Approvals, EndAndStayFew) {
  Approvals approvals(160);
  SteadyTime now{};
  const auto held = [&](int count) {
    int out = 0;
    for (int i = 0; i < count; ++i)
      out += approvals.holds(token_of(std::to_string(i)), "\"1\"", kHeader, now, std::chrono::seconds(10));
    return out;
  };
  for (int i = 0; i < 10'000; ++i) approvals.note(token_of(std::to_string(i)), "\"1\"", kHeader, now);
  EXPECT_LE(held(10'000), 160);
  EXPECT_GE(held(10'000), 1);
  now += std::chrono::seconds(10);
  EXPECT_EQ(held(10'000), 0);
}

}  // namespace
}  // namespace nezha::cache
