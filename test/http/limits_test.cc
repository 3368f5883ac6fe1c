// The tier's limits: too small, full, no room on the device, reclaimed under readers, shared by two processes.
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/statvfs.h>

#include <cstring>
#include <filesystem>
#include <random>
#include <thread>

#include "test/support/cache_under_test.h"
#include "test/support/event.h"
#include "test/support/scripted_origin.h"

namespace nezha::test {
namespace {

constexpr size_t kMiB = 1024 * 1024;
const std::string kFresh = "ETag: \"v1\"\r\nCache-Control: max-age=600\r\n";

size_t size_of(const std::string& target) { return std::stoull(target.substr(target.rfind('-') + 1)); }
std::string body_of(const std::string& target) {
  return pattern_bytes(size_of(target), std::hash<std::string>{}(target));
}

// "/name-SIZE": the same bytes for the same target.
void sized(OriginConnection& connection, const RecordedRequest& request) {
  connection.send(response(200, kFresh, body_of(request.target())));
}
void sized_chunked(OriginConnection& connection, const RecordedRequest& request) {
  connection.send(chunked_response(kFresh, body_of(request.target()), 333'333));
}

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "nezha-test-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }
  uint64_t bytes_on_disk() const {
    uint64_t total = 0;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) total += entry.file_size();
    return total;
  }

 private:
  std::string path_;
};

CacheOptions small_tier(uint64_t size_bytes, const std::string& path = "") {
  CacheOptions options;
  options.tiers = {{path.empty() ? config::Medium::kMemory : config::Medium::kNvme, path, size_bytes}};
  return options;
}

TEST(SmallTier, RelaysWhatIsLargerThanItself) {
  for (const auto& handler : {sized, sized_chunked}) {
    ScriptedOrigin origin(handler);
    CacheUnderTest cache(origin.port(), small_tier(16 * kMiB));
    const std::string target = "/big-" + std::to_string(20 * kMiB + 1);
    for (int i = 0; i < 2; ++i) {
      const ClientAnswer answer = cache.ask(get(target));
      EXPECT_TRUE(answer.complete());
      EXPECT_TRUE(answer.body == body_of(target));
    }
    EXPECT_EQ(origin.count(), 2u);
    EXPECT_EQ(cache.store().generation_count(), 0u);
    const std::string small = "/small-" + std::to_string(kMiB);
    EXPECT_TRUE(cache.ask(get(small)).body == body_of(small));
    EXPECT_TRUE(cache.wait_stored(small)) << "the tier still works";
  }
}

TEST(SmallTier, NeverGrowsBeyondItsSizeUnderRandomLoad) {
  const TemporaryFolder folder;
  ScriptedOrigin origin(sized);
  constexpr uint64_t kSize = 16 * kMiB;
  CacheUnderTest cache(origin.port(), small_tier(kSize, folder.path()));
  std::atomic<bool> over{false};
  std::vector<std::thread> clients;
  for (uint64_t seed = 0; seed < 4; ++seed) {
    clients.emplace_back([&, seed] {
      std::mt19937_64 random(seed);
      RawClient client = cache.connect();
      for (int i = 0; i < 60; ++i) {
        const size_t size = random() % (3 * kMiB);
        const std::string target = "/" + std::to_string(random() % 30) + "-" + std::to_string(size / 1000 * 1000);
        const ClientAnswer answer = client.ask(get(target));
        EXPECT_TRUE(answer.complete() && answer.body == body_of(target)) << target;
        if (folder.bytes_on_disk() > kSize || cache.store().fill_tier().used_bytes() > kSize) over = true;
      }
    });
  }
  for (auto& client : clients) client.join();
  EXPECT_FALSE(over);
  EXPECT_LE(folder.bytes_on_disk(), kSize);
  EXPECT_GT(cache.store().generation_count(), 0u);
}

TEST(SmallTier, ManyFillsAtOnceRelayWhatDoesNotFit) {
  ScriptedOrigin origin(sized);
  CacheUnderTest cache(origin.port(), small_tier(16 * kMiB));
  std::vector<std::thread> clients;
  for (int i = 0; i < 16; ++i) {
    clients.emplace_back([&cache, i] {
      const std::string target = "/" + std::to_string(i) + "-" + std::to_string(5 * kMiB + static_cast<size_t>(i));
      const ClientAnswer answer = cache.ask(get(target));
      EXPECT_TRUE(answer.complete() && answer.body == body_of(target)) << target;
    });
  }
  for (auto& client : clients) client.join();
}

TEST(Reclaim, LeavesASlowReadersBytesAlone) {
  ScriptedOrigin origin(sized);
  CacheUnderTest cache(origin.port(), small_tier(16 * kMiB));
  const std::string kept = "/kept-" + std::to_string(6 * kMiB);
  cache.ask(get(kept));
  ASSERT_TRUE(cache.wait_stored(kept));
  RawClient slow = cache.connect(4096);
  slow.send(get(kept));
  EXPECT_EQ(slow.read_head().status, 200);
  for (int i = 0; i < 40; ++i) {
    const std::string target = "/other" + std::to_string(i) + "-" + std::to_string(kMiB + 7);
    EXPECT_TRUE(cache.ask(get(target)).body == body_of(target));
  }
  EXPECT_TRUE(slow.read_bytes(6 * kMiB) == body_of(kept));
}

TEST(Reclaim, TheIndexHasItsOwnLimit) {
  ScriptedOrigin origin(sized);
  CacheOptions options = small_tier(64 * kMiB);
  options.limits.entry_bytes_max = 100'000;
  CacheUnderTest cache(origin.port(), options);
  RawClient client = cache.connect();
  for (int i = 0; i < 3000; ++i) {
    const std::string target = "/" + std::to_string(i) + "-20000";
    ASSERT_EQ(client.ask(get(target)).body.size(), 20'000u);
  }
  // One segment's objects are the grain: 8 MiB of 20 kB objects are about 420 heads.
  EXPECT_LT(cache.store().generation_count(), 1000u);
  EXPECT_GT(cache.store().generation_count(), 0u);
}

TEST(FullDevice, TurnsIntoPassThrough) {
  const TemporaryFolder folder;
  if (::mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=12m") != 0) {
    GTEST_SKIP() << "mounting a small tmpfs is not allowed here: " << std::strerror(errno);
  }
  {
    ScriptedOrigin origin(sized);
    CacheUnderTest cache(origin.port(), small_tier(64 * kMiB, folder.path()));
    for (int i = 0; i < 12; ++i) {
      const std::string target = "/" + std::to_string(i) + "-" + std::to_string(3 * kMiB);
      for (int again = 0; again < 2; ++again) {
        const ClientAnswer answer = cache.ask(get(target));
        EXPECT_TRUE(answer.complete() && answer.body == body_of(target)) << target;
      }
    }
    struct statvfs space {};
    ::statvfs(folder.path().c_str(), &space);
    EXPECT_LE((space.f_blocks - space.f_bfree) * space.f_bsize, 12 * kMiB);
  }
  ::umount(folder.path().c_str());
}

// As with a medium that fails: the mapping has no bytes behind it any more.
TEST(BrokenSegment, IsForgottenAfterOneFailedRead) {
  const TemporaryFolder folder;
  ScriptedOrigin origin(sized);
  CacheUnderTest cache(origin.port(), small_tier(64 * kMiB, folder.path()));
  const std::string target = "/x-500000";
  EXPECT_TRUE(cache.ask(get(target)).body == body_of(target));
  ASSERT_TRUE(cache.wait_stored(target));
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    if (entry.path().filename() != "nezha.lock") std::filesystem::resize_file(entry.path(), 0);
  // A reset, where a part was under way already; otherwise a miss. Never a clean short end.
  const ClientAnswer first = cache.ask(get(target));
  EXPECT_TRUE(!first.complete() || first.body == body_of(target));
  const ClientAnswer again = cache.ask(get(target));
  EXPECT_TRUE(again.complete());
  EXPECT_TRUE(again.body == body_of(target));
  EXPECT_EQ(origin.count(), 2u);
}

TEST(TwoProcesses, CannotShareAFolder) {
  const TemporaryFolder folder;
  const config::TierSettings settings{config::Medium::kNvme, folder.path(), 16 * kMiB};
  const auto first = cache::make_medium(settings);
  ASSERT_TRUE(first);
  const auto second = cache::make_medium(settings);
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find(folder.path()), std::string::npos);
  EXPECT_EQ(second.error().remedy, Remedy::kFixInput);
}

}  // namespace
}  // namespace nezha::test
