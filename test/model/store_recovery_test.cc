// How long a store takes to be there again, and what its index costs: writes NEZHA_RECORDS records (200,000; half
// heads, half bodies), opens the directory again, and prints both. Only the memory decides the test.
#include <gtest/gtest.h>
#include <malloc.h>

#include <chrono>
#include <cstdlib>
#include <ctime>

#include "nezha/base/text.h"
#include "test/support/store_box.h"
#include "test/support/temporary_directory.h"

namespace nezha::test {
namespace {

constexpr uint64_t kMiB = 1024 * 1024;
constexpr double kBytesPerRecordMax = 64 + sizeof(cache::KeyHash);

uint64_t records_wanted() {
  const char* text = std::getenv("NEZHA_RECORDS");
  return text ? parse_decimal(text).value_or(200'000) : 200'000;
}

uint64_t allocated_bytes() {
  const auto info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
}

cache::CacheKey key_of(uint64_t object) { return {"data.example/objects/" + std::to_string(object), ""}; }

std::unique_ptr<StoreBox> open(const std::string& path) {
  const config::TierSettings settings{config::Medium::kNvme, path, 2048 * kMiB};
  std::vector<cache::Store::TierPlan> plans;
  plans.push_back({cache::make_medium(settings).value(), settings.size_bytes, 0});
  return std::make_unique<StoreBox>(std::move(plans), cache::StoreLimits{kMiB, 1024 * kMiB, kMiB});
}

TEST(Recovery, TimeAndMemory) {
  const TemporaryDirectory directory;
  const uint64_t objects = records_wanted() / 2;
  {
    const auto box = open(directory.path());
    for (uint64_t i = 0; i < objects; ++i) {
      const std::string body = "body of " + std::to_string(i);
      ASSERT_TRUE(box->put(key_of(i), head_of("\"" + std::to_string(i) + "\"", body.size()), body));
    }
  }
  const uint64_t before = allocated_bytes();
  const auto began = std::chrono::steady_clock::now();
  const std::clock_t cpu_began = std::clock();
  const auto box = open(directory.path());
  const auto took = std::chrono::steady_clock::now() - began;
  const double cpu_ms = 1000.0 * static_cast<double>(std::clock() - cpu_began) / CLOCKS_PER_SEC;
  const uint64_t after = allocated_bytes();
  ASSERT_EQ(box->store().generation_count(), objects);
  for (uint64_t i = 0; i < objects; i += objects / 50 + 1)
    EXPECT_EQ(box->read(key_of(i)), "body of " + std::to_string(i));
  const double each = static_cast<double>(after - before) / static_cast<double>(2 * objects);
  std::cout << 2 * objects << " records: open after "
            << std::chrono::duration_cast<std::chrono::milliseconds>(took).count() << " ms (" << cpu_ms
            << " ms of CPU), " << each << " bytes of memory for each" << std::endl;
  EXPECT_LE(each, kBytesPerRecordMax);
}

}  // namespace
}  // namespace nezha::test
