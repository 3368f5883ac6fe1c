#include "cache/classify/object_paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nezha::test {
namespace {

using cache::is_under;
using cache::paths_of_object;
using cache::paths_of_write;
using testing::Contains;
using testing::ElementsAre;
using testing::Not;
using testing::UnorderedElementsAre;

config::Upstream upstream_of(std::vector<std::string> hosts, config::Protocol protocol = config::Protocol::kS3) {
  config::Upstream out;
  out.protocol = protocol;
  for (auto& host : hosts) out.hosts.emplace_back(std::move(host));
  return out;
}

TEST(PathsOfWrite, BothStylesAndSchemes) {
  const auto s3 = upstream_of({"s3.test", "team.s3.test", "a.b.s3.test"});
  const auto all =
      UnorderedElementsAre("s3.test/team/k", "s3.test:443+tls/team/k", "team.s3.test/k", "team.s3.test:443+tls/k");
  EXPECT_THAT(paths_of_write("s3.test/team/k", s3), all);
  EXPECT_THAT(paths_of_write("team.s3.test/k", s3), all);
  EXPECT_THAT(paths_of_write("team.s3.test:443+tls/k", s3), all);
  EXPECT_THAT(paths_of_write("a.b.s3.test/k/l", s3), Contains("s3.test/a.b/k/l"));
  EXPECT_THAT(paths_of_write("s3.test/a.b/k//l%2F", s3), Contains("a.b.s3.test/k//l%2F"));
  EXPECT_THAT(paths_of_write("s3.test:9000/team/k", s3),
              UnorderedElementsAre("s3.test:9000/team/k", "team.s3.test:9000/k"));
  EXPECT_THAT(paths_of_write("s3.test/", s3), UnorderedElementsAre("s3.test/", "s3.test:443+tls/"));
  EXPECT_THAT(paths_of_write("s3.test/other/k", s3), Not(Contains("other.s3.test/k"))) << "no host of the upstream";
}

TEST(PathsOfWrite, OtherSpellingsOfTheKey) {
  const auto s3 = upstream_of({"s3.test"});
  const auto all = UnorderedElementsAre("s3.test/team/a+b", "s3.test:443+tls/team/a+b", "s3.test/team/a%2Bb",
                                        "s3.test:443+tls/team/a%2Bb", "s3.test/team/a%2bb",
                                        "s3.test:443+tls/team/a%2bb");
  EXPECT_THAT(paths_of_write("s3.test/team/a+b", s3), all);
  EXPECT_THAT(paths_of_write("s3.test/team/a%2bb", s3), all);
  EXPECT_THAT(paths_of_write("s3.test/team/%61%2Fb", s3), Contains("s3.test/team/a/b"));
}

// `endpoint:` is one server, whatever host, port or scheme the request names.
TEST(PathsOfWrite, BehindAnEndpointAllHostsAreOne) {
  auto s3 = upstream_of({"s3.test", "alias.test", "team.other.test"});
  s3.endpoint = config::Endpoint{false, "rgw", 80};
  for (const std::string path : {"s3.test/team/k", "alias.test/team/k", "team.other.test/k"})
    EXPECT_THAT(paths_of_write("s3.test/team/k", s3), Contains(path));
  for (const std::string path : {"s3.test/team/k", "alias.test/team/k", "team.other.test/k"})
    EXPECT_THAT(paths_of_write("team.other.test/k", s3), Contains(path));
  EXPECT_THAT(paths_of_write("s3.test:9000/team/k", s3), Contains("alias.test/team/k"));
  auto http = upstream_of({"a.test", "b.test"}, config::Protocol::kHttp);
  http.endpoint = s3.endpoint;
  EXPECT_THAT(paths_of_write("a.test/x+y", http), UnorderedElementsAre("a.test/x+y", "b.test/x+y"));
}

TEST(PathsOfWrite, HttpHasOne) {
  EXPECT_THAT(paths_of_write("a.test/x/y", upstream_of({"a.test", "x.a.test"}, config::Protocol::kHttp)),
              ElementsAre("a.test/x/y"));
}

TEST(PathsOfObject, HostsPortsAndSpellings) {
  const s3::ObjectName object{s3::BucketName("team"), s3::ObjectKey("a b")};
  const auto paths = paths_of_object(object, upstream_of({"s3.test", "team.s3.test"}), {80, 8443});
  for (const std::string path : {"s3.test/team/a%20b", "s3.test:443+tls/team/a%20b", "team.s3.test/a%20b",
                                 "s3.test:8443+tls/team/a%20b", "team.s3.test:8443/a%20b"})
    EXPECT_THAT(paths, Contains(path));
  EXPECT_THAT(paths, Not(Contains("s3.test:80/team/a%20b"))) << "a scheme's own port is left out of keys";
}

TEST(IsUnder, IgnoresEncodingSchemeAndPort) {
  EXPECT_TRUE(is_under("s3.test:443+tls/team/a%2Bb/c", "s3.test/team/a+"));
  EXPECT_TRUE(is_under("s3.test/team/x", "s3.test/team/"));
  EXPECT_FALSE(is_under("s3.test/teams/x", "s3.test/team/"));
  EXPECT_FALSE(is_under("t3.test/team/x", "s3.test/team/"));
}

}  // namespace
}  // namespace nezha::test
