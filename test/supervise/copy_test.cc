// A tier that was copied, as a volume that begins with a snapshot: another cache on another path serves what it holds.
#include <gtest/gtest.h>

#include <filesystem>

#include "test/support/cache_process.h"
#include "test/support/event.h"
#include "test/support/raw_client.h"
#include "test/support/scripted_origin.h"
#include "test/support/temporary_directory.h"

namespace nezha::test {
namespace {

std::string configuration(const std::filesystem::path& volume, uint16_t origin_port) {
  return "cache: {memory: 64Mi, tiers: [{medium: nvme, path: " + (volume / "nezha").string() + ", size: 64Mi}]}\n" +
         "upstreams: [{name: data, hosts: [data.example], freshness: {mode: immutable}, " +
         "endpoint: \"http://127.0.0.1:" + std::to_string(origin_port) + "\"}]\n";
}

std::string status_of(const CacheProcess& process) { return RawClient(process.port()).ask(get("/x")).cache_status(); }

TEST(Snapshot, ACopiedTierIsWarmElsewhere) {
  ScriptedOrigin origin([](OriginConnection& connection, const RecordedRequest&) {
    connection.send(response(200, "ETag: \"v1\"\r\n", pattern_bytes(3'000'000, 1)));
  });
  const TemporaryDirectory folder;
  const std::filesystem::path first = std::filesystem::path(folder.path()) / "first", second = first.string() + "-copy";
  std::filesystem::create_directories(first);
  {
    CacheProcess process(configuration(first, origin.port()), {}, {"--supervise", "--drain-seconds", "0"});
    process.launch();
    ASSERT_TRUE(process.wait_ready()) << process.log();
    EXPECT_TRUE(eventually([&] { return status_of(process).find("; hit") != std::string::npos; }));
    EXPECT_EQ(process.stop(), 0);
  }
  std::filesystem::copy(first, second, std::filesystem::copy_options::recursive);
  const size_t asked = origin.count();
  CacheProcess process(configuration(second, origin.port()), {}, {});
  process.launch();
  ASSERT_TRUE(process.wait_ready()) << process.log();
  EXPECT_NE(status_of(process).find("; hit"), std::string::npos);
  EXPECT_EQ(origin.count(), asked);
  EXPECT_EQ(process.stop(), 0);
}

}  // namespace
}  // namespace nezha::test
