// The command line of nezha-cache as a shell sees it: what --check accepts, and one line for what a start would refuse.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "test/support/run_program.h"
#include "test/support/temporary_directory.h"

namespace nezha::cache {
namespace {

test::Outcome run(const std::string& arguments) {
  return test::run_program("env -u KUBERNETES_SERVICE_HOST timeout 60 " NEZHA_CACHE_PROGRAM " " + arguments);
}

class Check : public testing::Test {
 protected:
  std::string write(const std::string& text) const {
    std::string path = folder_.path() + "/cache.yaml";
    std::ofstream(path) << text;
    return path;
  }
  void expect_refused(const std::string& arguments, const std::string& message) const {
    const auto outcome = run(arguments);
    EXPECT_EQ(outcome.status, 2) << arguments;
    EXPECT_EQ(outcome.output, "nezha-cache: " + message + "\n");
  }

  const test::TemporaryDirectory folder_;
};

TEST_F(Check, AcceptsTheExample) {
  const std::string example = NEZHA_SOURCE_DIR "/deploy/examples/cache.yaml";
  const auto outcome = run("--check --config " + example);
  EXPECT_EQ(outcome.output, example + ": ok\n");
  EXPECT_EQ(outcome.status, 0);
}

TEST_F(Check, RefusesWhatTheStartRefuses) {
  std::string path = write("cache:\n  tiers:\n  - {medium: nvme, path: /t, size: 1Mi}\n");
  expect_refused("--check --config " + path,
                 path + ": cache.tiers[0].size (line 3): is too small for a tier; write at least 16Mi");
  path = write("tls: {certificates: [{certificate: /nope, key: /nope.key}]}\n");
  for (const char* flags : {"--check ", "--log-level error "}) {
    expect_refused(flags + ("--config " + path),
                   path + ": tls.certificates[0]: /nope: cannot be read (No such file or directory)");
  }
  path = write("{}\n");
  expect_refused("--check --config " + path + " --configmap x", "--configmap: \"x\" is not NAMESPACE/NAME");
}

TEST_F(Check, SaysWhyAFileCannotBeRead) {
  const std::string none = folder_.path() + "/none";
  expect_refused("--config " + none, none + ": cannot be read (No such file or directory); give a file with --config");
  expect_refused("--config " + folder_.path(),
                 folder_.path() + ": cannot be read (Is a directory); give a file with --config");
}

TEST_F(Check, NamesAnUnknownArgumentFirst) {
  expect_refused("--bogus", "unknown argument \"--bogus\"; --help lists the flags");
  expect_refused("", "--config is required; --help lists the flags");
}

TEST_F(Check, AVariableCanHoldTheConfiguration) {
  const auto with = [](const std::string& text, const std::string& arguments) {
    return test::run_program("env 'SOME_CONFIG=" + text + "' timeout 60 " NEZHA_CACHE_PROGRAM " " + arguments);
  };
  const auto good = with("{\"cache\":{\"memory\":67108864}}", "--check --config-env SOME_CONFIG");
  EXPECT_EQ(good.output, "SOME_CONFIG: ok\n");
  EXPECT_EQ(good.status, 0);
  const auto bad = with("{\"cache\":{\"memory\":0}}", "--config-env SOME_CONFIG");
  EXPECT_EQ(bad.output,
            "nezha-cache: SOME_CONFIG: cache.memory (line 1): \"0\" is no space at all; write a size above zero or "
            "remove the key\n");
  EXPECT_EQ(bad.status, 2);
  expect_refused("--config-env NO_SUCH_CONFIG", "--config-env: the environment has no variable NO_SUCH_CONFIG; set it");
  expect_refused("--config a --config-env B", "--config and --config-env exclude each other; --help lists the flags");
}

// Runs the cache from a variable, as a sidecar does, and probes it before, meanwhile and after.
TEST_F(Check, AProbeTellsWhetherTheCacheIsReady) {
  const std::string config =
      "{\"listen\":{\"http\":[\"127.0.0.1:0\"],\"admin\":\"127.0.0.1:0\"},\"cache\":{\"tiers\":[{\"medium\":\"memory\","
      "\"size\":16777216}],\"memory\":67108864}}";
  const std::string log = folder_.path() + "/log";
  // The port is the system's choice and stands in the log; looks every tenth of a second find it.
  const auto outcome = test::run_program(
      "export SOME_CONFIG='" + config + "'; timeout 60 " NEZHA_CACHE_PROGRAM " --config-env SOME_CONFIG 2> " + log +
      " & cache=$!; for i in $(seq 600); do port=$(sed -n 's/.*admin port port=\\([0-9]*\\).*/\\1/p' " + log +
      "); [ -n \"$port\" ] && break; sleep 0.1; done; " NEZHA_CACHE_PROGRAM
      " --probe $port; echo $?; kill $cache; "
      "wait $cache; echo $?; " NEZHA_CACHE_PROGRAM " --probe $port; echo $?");
  EXPECT_EQ(outcome.output, "0\n0\n1\n");
}

TEST_F(Check, AConfigMapNeedsAPod) {
  const std::string path = write("listen: {http: ['127.0.0.1:0']}\ncache: {tiers: [{medium: memory, size: 16Mi}]}\n");
  const auto outcome = run("--log-level error --configmap a/b --config " + path);
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.output.find("so this is no pod; run in a pod, or without --configmap\n"), std::string::npos)
      << outcome.output;
}

}  // namespace
}  // namespace nezha::cache
