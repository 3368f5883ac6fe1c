// The text of nezha.io/status, and how the statuses of several runs join.
#include "webhook/status.h"

#include <gmock/gmock.h>

#include "nezha/base/limits.h"

namespace nezha::webhook {
namespace {

using testing::ElementsAre;

TEST(Status, IsCompactJsonWithKeysInOrder) {
  EXPECT_EQ(write_status({{"a", "b"}, "central", {"h.org"}, 3, {"why \"so\""}}),
            R"({"rule":"a,b","mode":"central","hosts":["h.org"],"hostsMore":3,"reasons":["why \"so\""]})");
  EXPECT_EQ(write_status({{}, "central", {}, 0, {}}), R"({"rule":"","mode":"central","hosts":[],"reasons":[]})");
}

TEST(Status, ReadsWhatItWrote) {
  const std::string text = write_status({{"a", "team/b"}, "central", {"h.org", "i.org"}, 3, {"x", "y"}});
  const auto status = read_status(text);
  ASSERT_TRUE(status);
  EXPECT_EQ(write_status(*status), text);
}

TEST(Status, RefusesWhatItCouldNotHaveWritten) {
  for (const char* text : {"", "x", "[]", "{}", R"({"rule":1,"mode":"central","hosts":[],"reasons":[]})",
                           R"({"rule":"a","mode":"central","hosts":"h","reasons":[]})",
                           R"({"rule":"a","mode":"central","hosts":[1],"reasons":[]})"})
    EXPECT_FALSE(read_status(text)) << text;
}

TEST(Status, JoinKeepsEarlierItemsInPlace) {
  const Status joined = join({{"a"}, "central", {"x", "y"}, 0, {"r1"}}, {{"b", "a"}, "central", {"z", "y"}, 0, {"r2"}});
  EXPECT_THAT(joined.rules, ElementsAre("a", "b"));
  EXPECT_THAT(joined.hosts, ElementsAre("x", "y", "z"));
  EXPECT_THAT(joined.reasons, ElementsAre("r1", "r2"));
}

TEST(Status, JoinDoesNotForgetASidecar) {
  EXPECT_EQ(join({{"a"}, "sidecar", {}, 0, {}}, {{"b"}, "central", {}, 0, {}}).mode, "sidecar");
  EXPECT_EQ(join({{"a"}, "central", {}, 0, {}}, {{"b"}, "sidecar", {}, 0, {}}).mode, "sidecar");
}

Status many_hosts(const std::string& prefix, size_t count) {
  Status status{{prefix}, "central", {}, 0, {}};
  for (size_t i = 0; i < count; ++i) status.hosts.push_back(prefix + std::to_string(i));
  return status;
}

TEST(Status, JoinOfEntriesInTurnsSettles) {
  const Status a = many_hosts("a", limits::kStatusHostsMax + 50), b = many_hosts("b", 10);
  Status now = join(join(Status{}, a), b);
  const std::string settled = write_status(now);
  for (const auto& entry : {a, b, b, a}) {
    now = join(*read_status(settled), entry);
    EXPECT_EQ(write_status(now), settled);
  }
  EXPECT_EQ(now.hosts.size(), limits::kStatusHostsMax);
}

}  // namespace
}  // namespace nezha::webhook
