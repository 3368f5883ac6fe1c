// The command line: defaults, forms of addresses, and one clear line for what is wrong.
#include "webhook/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

namespace nezha::webhook {
namespace {

using ::testing::HasSubstr;

Result<std::variant<Options, int>> parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "nezha-webhook");
  return parse_options(static_cast<int>(arguments.size()), arguments.data());
}

Options good(std::vector<const char*> arguments) {
  auto parsed = parse(std::move(arguments));
  EXPECT_TRUE(parsed) << parsed.error().message;
  return std::get<Options>(parsed.value());
}

std::string wrong(std::vector<const char*> arguments) {
  const auto parsed = parse(std::move(arguments));
  if (parsed) return "(accepted)";
  EXPECT_EQ(parsed.error().remedy, Remedy::kFixInput);
  EXPECT_EQ(parsed.error().message.find('\n'), std::string::npos);
  return parsed.error().message;
}

class OptionsTest : public ::testing::Test {
 protected:
  void SetUp() override { ::unsetenv("POD_NAMESPACE"); }
};

TEST_F(OptionsTest, Defaults) {
  const Options options = good({"--namespace", "nezha-system"});
  EXPECT_EQ(options.listen, (config::ListenAddress{"0.0.0.0", 8443}));
  EXPECT_EQ(options.admin, (config::ListenAddress{"0.0.0.0", 9181}));
  EXPECT_EQ(options.name_space, Namespace("nezha-system"));
  EXPECT_EQ(options.webhook_configuration, "nezha");
  EXPECT_EQ(options.drain, std::chrono::seconds(10));
  EXPECT_TRUE(options.delegation);
}

TEST_F(OptionsTest, NamespaceFromTheEnvironment) {
  ::setenv("POD_NAMESPACE", "from-pod", 1);
  EXPECT_EQ(good({}).name_space, Namespace("from-pod"));
  EXPECT_EQ(good({"--namespace", "given"}).name_space, Namespace("given"));
}

TEST_F(OptionsTest, FormsOfValues) {
  const Options options =
      good({"--namespace", "n", "--listen", "[::]:443", "--admin", "127.0.0.1:0", "--cache-address", "FD00::1",
            "--log-format", "json", "--log-level", "debug", "--delegation", "false", "--drain-seconds", "0"});
  EXPECT_EQ(options.listen, (config::ListenAddress{"::", 443}));
  EXPECT_EQ(options.admin, (config::ListenAddress{"127.0.0.1", 0}));
  EXPECT_EQ(options.cache_address, IpAddress("fd00::1"));
  EXPECT_EQ(options.log_format, obs::LogFormat::kJson);
  EXPECT_EQ(options.log_level, obs::Level::kDebug);
  EXPECT_FALSE(options.delegation);
  EXPECT_EQ(options.drain.count(), 0);
}

TEST_F(OptionsTest, StandaloneNeedsNoNamespaceButCertificates) {
  EXPECT_EQ(good({"--config", "c", "--certificate", "a", "--key", "b"}).config, "c");
  EXPECT_TRUE(good({"--config", "c", "--check"}).check);
  EXPECT_THAT(wrong({"--config", "c"}), HasSubstr("--certificate"));
}

TEST_F(OptionsTest, WhatIsWrongIsNamed) {
  EXPECT_THAT(wrong({}), HasSubstr("POD_NAMESPACE"));
  EXPECT_THAT(wrong({"--namespace", "n", "--listen", "8443"}), HasSubstr("--listen"));
  EXPECT_THAT(wrong({"--namespace", "n", "--listen", "host:8443"}), HasSubstr("IP:PORT"));
  EXPECT_THAT(wrong({"--namespace", "n", "--listen", "0.0.0.0:70000"}), HasSubstr("IP:PORT"));
  EXPECT_THAT(wrong({"--namespace", "n", "--cache-address", "cache"}), HasSubstr("no IP address"));
  EXPECT_THAT(wrong({"--namespace", "n", "--nonsense"}), HasSubstr("--help"));
  EXPECT_THAT(wrong({"--namespace", "n", "--log-level", "loud"}),
              "--log-level: loud not in {debug,info,warning,error}; --help lists the flags");
  EXPECT_THAT(wrong({"--namespace", "n", "--drain-seconds", "-1"}), HasSubstr("--drain-seconds"));
  EXPECT_THAT(wrong({"--config", "c", "--certificate", "a"}), HasSubstr("--key"));
  EXPECT_THAT(wrong({"--namespace", "n", "--certificate", "a", "--key", "b"}), HasSubstr("--config"));
  EXPECT_THAT(wrong({"--namespace", "n", "--check"}), HasSubstr("--config"));
}

}  // namespace
}  // namespace nezha::webhook
