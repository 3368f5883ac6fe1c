// The samples that users are shown are configurations as they stand.
#include <gtest/gtest.h>

#include <cctype>
#include <fstream>
#include <sstream>

#include "nezha/config/parse.h"
#include "test/unit/config/expect.h"

namespace nezha::config {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(std::string(NEZHA_SOURCE_DIR) + "/" + path);
  std::ostringstream out;
  out << file.rdbuf();
  return out.str();
}

TEST(Samples, TheOneOfTheReferenceHasEverySection) {
  const std::string page = text_of("docs/configuration.md");
  const std::string fence = "```yaml\n";
  const size_t begin = page.find(fence);
  ASSERT_NE(begin, std::string::npos);
  const size_t end = page.find("\n```", begin);
  const size_t text = begin + fence.size();
  const Settings settings = value_of(parse_settings(page.substr(text, end + 1 - text), "docs/configuration.md"));
  EXPECT_EQ(settings.upstreams.size(), 3U);
  EXPECT_EQ(settings.injection.size(), 2U);
  EXPECT_EQ(settings.delegation.size(), 2U);
  EXPECT_TRUE(settings.webhook.cache_address);
  EXPECT_EQ(settings.cache.tiers.size(), 2U);
  EXPECT_TRUE(settings.listen.admin);
  EXPECT_EQ(settings.resolver_servers.size(), 1U);
  EXPECT_EQ(settings.tls.certificates.size(), 1U);
}

TEST(Samples, TheOneOfTheCacheStaysGoodWithItsCommentedKeys) {
  std::istringstream lines(text_of("deploy/examples/cache.yaml"));
  std::string with_comments;
  bool body = false;  // the first comment is prose, and so are those that begin in upper case
  for (std::string line; std::getline(lines, line);) {
    body |= !line.starts_with('#');
    const size_t mark = line.find_first_not_of(' ');
    const bool commented = body && mark != std::string::npos && line.compare(mark, 2, "# ") == 0;
    if (commented && std::isupper(static_cast<unsigned char>(line[mark + 2])) == 0) line.erase(mark, 2);
    with_comments += line + "\n";
  }
  (void)value_of(parse_settings(with_comments, "cache.yaml"));
}

}  // namespace
}  // namespace nezha::config
