// The program `nezha` as a shell sees it: arguments, standard input, exit status.
#include <gmock/gmock.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <string>

namespace nezha::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

struct Outcome {
  int status = -1;
  std::string output;  // standard output and standard error
};

// `arguments` go through a shell, so they may redirect.
Outcome run(const std::string& arguments, const std::string& before = "") {
  const std::string command = before + " " NEZHA_PROGRAM " " + arguments + " 2>&1";
  FILE* pipe = ::popen(command.c_str(), "r");
  Outcome outcome;
  std::array<char, 4096> buffer;
  while (const size_t bytes = std::fread(buffer.data(), 1, buffer.size(), pipe))
    outcome.output.append(buffer.data(), bytes);
  const int status = ::pclose(pipe);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
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
