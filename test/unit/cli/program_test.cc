// The program `nezha` as a shell sees it: arguments, standard input, exit status.
#include <gmock/gmock.h>

#include <filesystem>
#include <string>

#include "test/support/run_program.h"

namespace nezha::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// `arguments` go through a shell, so they may redirect.
test::Outcome run(const std::string& arguments, const std::string& before = "") {
  return test::run_program(before + " " NEZHA_PROGRAM " " + arguments);
}

const std::string kConfig = std::string(NEZHA_SOURCE_DIR) + "/test/golden/inject/config.yaml";
const std::string kPod = std::string(NEZHA_SOURCE_DIR) + "/test/golden/inject/bare-pod/pod.yaml";

TEST(Program, HelpAndVersionSucceed) {
  for (const char* arguments : {"--help", "inject --help", "explain --help"}) {
    const auto outcome = run(arguments);
    EXPECT_EQ(outcome.status, 0) << arguments;
    EXPECT_THAT(outcome.output, HasSubstr("nezha inject --config")) << arguments;
  }
  const auto version = run("--version");
  EXPECT_EQ(version.status, 0);
  EXPECT_THAT(version.output, StartsWith("nezha "));
}

TEST(Program, WrongUsageIsOneLineAndStatusTwo) {
  for (const char* arguments : {"", "nonsense", "inject", "inject --config x", "inject -f x", "explain --nonsense",
                                "inject -c x -f x -o xml", "explain -c x -f x -o json"}) {
    const auto outcome = run(arguments);
    EXPECT_EQ(outcome.status, 2) << arguments;
    EXPECT_THAT(outcome.output, StartsWith("nezha: ")) << arguments;
    EXPECT_EQ(outcome.output.find('\n'), outcome.output.size() - 1) << outcome.output;
  }
}

TEST(Program, AMistypedCommandIsNamed) { EXPECT_THAT(run("explan").output, HasSubstr("\"explan\"")); }

TEST(Program, ReadsStandardInputAndWritesAPodThatItLeavesAlone) {
  const auto once = run("inject -c " + kConfig + " -f - < " + kPod);
  EXPECT_EQ(once.status, 0);
  EXPECT_THAT(once.output, HasSubstr("nezha.io/status"));
  const auto twice =
      run("inject -c " + kConfig + " -f " + kPod + " | " NEZHA_PROGRAM " inject -c " + kConfig + " -f -");
  EXPECT_EQ(twice.output, once.output);
}

TEST(Program, TakesTheConfigurationFromTheEnvironment) {
  const auto outcome = run("explain -f " + kPod, "NEZHA_CONFIG=" + kConfig);
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.output, HasSubstr("Pod/bare (namespace default): accelerated"));
}

TEST(Program, OptionsOfTheNamespaceReachTheDecision) {
  const std::string plain = std::string(NEZHA_SOURCE_DIR) + "/test/golden/inject/not-labelled/pod.yaml";
  EXPECT_THAT(run("explain -c " + kConfig + " -f " + plain).output, HasSubstr("left as it is"));
  const auto outcome =
      run("explain -c " + kConfig + " -f " + plain + " --namespace lab --namespace-labels nezha.io/inject=true");
  EXPECT_THAT(outcome.output, HasSubstr("(namespace lab): accelerated"));
}

}  // namespace
}  // namespace nezha::cli
