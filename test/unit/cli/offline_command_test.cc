// run_inject and run_explain: files, exit status, which text goes where.
#include "cli/offline_command.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace nezha::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class OfflineCommand : public testing::Test {
 protected:
  OfflineCommand() {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::temp_directory_path() / ("nezha-cli-" + std::to_string(::getpid()) + info->name());
    std::filesystem::create_directories(folder_);
    options_.configs = {
        write("c.yaml",
              "upstreams: [{name: u, hosts: [a.example.org]}]\n"
              "injection: [{name: default, selector: {matchLabels: {nezha.io/inject: \"true\"}}, upstreams: [u]}]\n"
              "webhook: {cacheAddress: 10.0.0.1}\n")};
    options_.manifest = write("pod.yaml",
                              "apiVersion: v1\nkind: Pod\nmetadata: {name: p, labels: {nezha.io/inject: \"true\"}}\n"
                              "spec: {containers: []}\n");
  }
  ~OfflineCommand() override { std::filesystem::remove_all(folder_); }

  std::string write(const char* name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }

  std::filesystem::path folder_;
  OfflineOptions options_;
  std::ostringstream out_, err_;
};

TEST_F(OfflineCommand, InjectPrintsTheManifestAndNothingElse) {
  EXPECT_EQ(run_inject(options_, out_, err_), 0);
  EXPECT_THAT(out_.str(), StartsWith("apiVersion: v1\nkind: Pod\n"));
  EXPECT_THAT(out_.str(), HasSubstr("hostAliases"));
  EXPECT_EQ(err_.str(), "");
}

TEST_F(OfflineCommand, OutputFormatFollowsTheInputUnlessAsked) {
  options_.output = Format::kJson;
  EXPECT_EQ(run_inject(options_, out_, err_), 0);
  EXPECT_THAT(out_.str(), StartsWith("{\n  \"apiVersion\": \"v1\""));
  options_.manifest = write("pod.json", out_.str());
  options_.output.reset();
  std::ostringstream again;
  EXPECT_EQ(run_inject(options_, again, err_), 0);
  EXPECT_EQ(again.str(), out_.str());
}

TEST_F(OfflineCommand, ExplainPrintsWords) {
  EXPECT_EQ(run_explain(options_, out_, err_), 0);
  EXPECT_THAT(out_.str(), HasSubstr("Pod/p (namespace default): accelerated"));
}

TEST_F(OfflineCommand, BadInputIsOneLineAndStatusTwo) {
  struct Case {
    std::string manifest, labels;
    const char* message;
  };
  const Case cases[] = {{folder_ / "absent.yaml", "", "cannot read"},
                        {folder_.string(), "", "cannot read"},
                        {write("broken.yaml", "a: [\n"), "", "broken.yaml: line"},
                        {options_.manifest, "nonsense", "--namespace-labels: \"nonsense\" is not key=value"}};
  for (const auto& c : cases) {
    options_.manifest = c.manifest;
    options_.namespace_labels = c.labels;
    std::ostringstream out, err;
    EXPECT_EQ(run_inject(options_, out, err), 2) << c.message;
    EXPECT_EQ(out.str(), "");
    EXPECT_THAT(err.str(), StartsWith("nezha: "));
    EXPECT_THAT(err.str(), HasSubstr(c.message));
    const std::string text = err.str();
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
  }
}

TEST_F(OfflineCommand, StandardInputServesOneFileOnly) {
  options_.configs = {"-"};
  options_.manifest = "-";
  EXPECT_EQ(run_explain(options_, out_, err_), 2);
  EXPECT_THAT(err_.str(), HasSubstr("only one file can be standard input"));
}

TEST_F(OfflineCommand, AManifestWithoutPodsIsPrintedWithAWarning) {
  options_.manifest = write("cm.yaml", "kind: ConfigMap\n");
  EXPECT_EQ(run_inject(options_, out_, err_), 0);
  EXPECT_EQ(out_.str(), "kind: ConfigMap\n");
  EXPECT_THAT(err_.str(), HasSubstr("no pod and no pod template"));
}

}  // namespace
}  // namespace nezha::cli
