// ConfigMapWatch: absent, present, changed, deleted; unrelated ConfigMaps and unrelated fields are not told.
#include "nezha/k8s/configmap_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <vector>

#include "test/support/fake_api_server.h"

namespace nezha::k8s {
namespace {

using Data = ConfigMapWatch::Data;
constexpr const char* kPath = "/api/v1/namespaces/nezha-system/configmaps/nezha-config";

TEST(ConfigMapWatch, TellsTheDataFromAbsentToDeleted) {
  test::FakeApiServer server;
  const auto log = obs::make_null_log();
  std::mutex mutex;
  std::vector<std::optional<Data>> told;
  const auto await = [&](size_t count) {
    return server.wait_until([&] {
      std::lock_guard lock(mutex);
      return told.size() >= count;
    });
  };
  ConfigMapWatch watch(
      server.address(), Namespace("nezha-system"), "nezha-config",
      [&](std::optional<Data> data) {
        std::lock_guard lock(mutex);
        told.push_back(std::move(data));
      },
      *log);
  ASSERT_TRUE(await(1));
  server.put("/api/v1/namespaces/nezha-system/configmaps/other", R"({"data":{"x":"y"}})");
  server.put(kPath, R"({"data":{"config.yaml":"upstreams: []"}})");
  ASSERT_TRUE(await(2));
  server.put(kPath, R"({"metadata":{"annotations":{"a":"b"}},"data":{"config.yaml":"upstreams: []"}})");
  server.put(kPath, R"({"data":{"config.yaml":"cache: {}","number":7}})");
  ASSERT_TRUE(await(3));
  server.put(kPath, R"({"binaryData":{}})");
  ASSERT_TRUE(await(4));
  server.remove(kPath);
  ASSERT_TRUE(await(5));
  watch.stop();
  EXPECT_THAT(told, ::testing::ElementsAre(std::nullopt, Data{{"config.yaml", "upstreams: []"}},
                                           Data{{"config.yaml", "cache: {}"}}, Data{}, std::nullopt));
  EXPECT_GE(server.count("GET", "fieldSelector=metadata.name%3Dnezha-config"), 2u);
}

}  // namespace
}  // namespace nezha::k8s
