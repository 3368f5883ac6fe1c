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

TEST_F(Check, AConfigMapNeedsAPod) {
  const std::string path = write("listen: {http: ['127.0.0.1:0']}\ncache: {tiers: [{medium: memory, size: 16Mi}]}\n");
  const auto outcome = run("--log-level error --configmap a/b --config " + path);
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.output.find("so this is no pod; run in a pod, or without --configmap\n"), std::string::npos)
      << outcome.output;
}

}  // namespace
}  // namespace nezha::cache
