// Which addresses a Service gives the aliases.
#include "webhook/controller/cache_service.h"

#include <gtest/gtest.h>

namespace nezha::webhook {
namespace {

std::string ips(const char* json) {
  std::string out;
  for (const IpAddress& address : cluster_ips(json)) out += address.get() + " ";
  return out;
}

TEST(CacheService, ClusterIpsOfBothFamilies) {
  EXPECT_EQ(ips(R"({"spec":{"clusterIP":"10.96.1.2","clusterIPs":["10.96.1.2"]}})"), "10.96.1.2 ");
  EXPECT_EQ(ips(R"({"spec":{"clusterIP":"10.96.1.2","clusterIPs":["10.96.1.2","fd00::2"]}})"), "10.96.1.2 fd00::2 ");
  EXPECT_EQ(ips(R"({"spec":{"clusterIP":"10.96.1.2"}})"), "10.96.1.2 ");
}

TEST(CacheService, NoneIsNoAddressAndGarbageNeither) {
  for (const char* json :
       {R"({"spec":{"clusterIP":"None","clusterIPs":["None"]}})", R"({"spec":{"clusterIP":""}})", R"({"spec":{}})",
        R"({"spec":7})", R"({})", "[]", "garbage", R"({"spec":{"clusterIPs":[7,null]}})",
        R"({"spec":{"clusterIPs":"10.0.0.1"}})", R"({"spec":{"type":"ExternalName","externalName":"x"}})"}) {
    EXPECT_EQ(ips(json), "") << json;
  }
}

}  // namespace
}  // namespace nezha::webhook
