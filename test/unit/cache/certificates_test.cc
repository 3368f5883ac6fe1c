// Which certificate answers which host, and what is said about files that are none.
#include "cache/accept/certificates.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "nezha/pki/certificates.h"
#include "test/support/event.h"
#include "test/support/test_clock.h"
#include "test/support/tls_peer.h"

namespace nezha::cache {
namespace {

namespace fs = std::filesystem;

class CertificateFiles : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "nezha-certificates-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return (folder_ / name).string();
  }
  void add(const std::vector<std::string>& names) {
    const auto leaf = pki_.leaf(names);
    const std::string number = std::to_string(settings_.certificates.size());
    settings_.certificates.push_back(
        {write(number + ".crt", leaf.certificate_pem), write(number + ".key", leaf.key_pem)});
  }
  Result<std::unique_ptr<Certificates>> load() { return load_certificates(settings_, clock_, *log_, *metrics_); }

  fs::path folder_;
  test::TestPki pki_;
  config::TlsSettings settings_;
  test::TestClock clock_;
  std::unique_ptr<obs::Log> log_ = obs::make_null_log();
  std::unique_ptr<obs::Metrics> metrics_ = obs::make_metrics();
};

TEST_F(CertificateFiles, AreChosenByExactNameAndByOneLabelOfAWildcard) {
  add({"a.example", "*.Wild.example"});
  add({"b.wild.example", "c.example"});
  const auto certificates = load().value();
  const auto first = certificates->find("a.example");
  const auto second = certificates->find("c.example");
  ASSERT_TRUE(first && second);
  EXPECT_NE(first, second);
  const std::vector<std::pair<std::string, std::shared_ptr<const net::TlsServer>>> table = {
      {"x.wild.example", first},
      {"b.wild.example", first},
      {"wild.example", nullptr},
      {".wild.example", nullptr},
      {"x.y.wild.example", nullptr},
      {"a.example.x", nullptr},
      {"", nullptr},
      {"example", nullptr},
  };
  for (const auto& [host, expected] : table) EXPECT_EQ(certificates->find(host), expected) << host;
}

TEST_F(CertificateFiles, ThatCannotBeUsedStopTheStartInOneLine) {
  const auto leaf = pki_.leaf({"a.example"}), other = pki_.leaf({"a.example"});
  const std::string crt = write("crt", leaf.certificate_pem), key = write("key", leaf.key_pem);
  const std::string text = write("text", "some text"), wrong = write("wrong", other.key_pem);
  const std::string huge = write("huge", std::string(2 * 1024 * 1024, '-')), none = (folder_ / "none").string();
  const std::string nameless = write("nameless", pki_.ca.certificate_pem), ca_key = write("ca.key", pki_.ca.key_pem);
  const std::vector<std::array<std::string, 3>> table = {
      {none, key, none + ": cannot be read (No such file or directory)"},
      {crt, none, none + ": cannot be read (No such file or directory)"},
      {folder_.string(), key, folder_.string() + ": cannot be read (Is a directory)"},
      {huge, key, huge + ": is too large for a PEM file of certificates"},
      {text, key, text + " with " + key + ": no certificate in PEM format"},
      {crt, text, crt + " with " + text + ": no unencrypted private key in PEM format"},
      {crt, wrong, crt + " with " + wrong + ": the private key does not belong to the certificate"},
      {nameless, ca_key, nameless + ": the certificate names no host (subjectAltName)"},
  };
  for (const auto& [certificate, private_key, message] : table) {
    settings_.certificates = {{certificate, private_key}};
    const auto loaded = load();
    ASSERT_FALSE(loaded) << message;
    EXPECT_EQ(loaded.error().message, "tls.certificates[0]: " + message);
    EXPECT_EQ(loaded.error().remedy, Remedy::kFixInput);
  }
}

// A mounted Secret: its files are links through ..data, which is switched to another folder when the Secret changes.
class MountedSecret : public CertificateFiles {
 protected:
  void SetUp() override {
    CertificateFiles::SetUp();
    key_ = pki_.leaf({"key.example"}).key_pem;
    settings_.directory = folder_.string();
  }
  // The Secret holds leaves for these hosts, under one key.
  void hold(const std::vector<std::string>& hosts, const std::string& key) {
    const std::string version = "..version" + std::to_string(++versions_);
    fs::create_directory(folder_ / version);
    write(version + "/tls.key", key);
    const auto now = clock_.wall();
    const pki::Validity validity{now - std::chrono::hours(1), now + std::chrono::hours(1)};
    for (const auto& host : hosts)
      write(version + "/" + host + ".crt", pki::make_leaf_of_key(pki_.ca, key, {host}, validity).value());
    fs::create_directory_symlink(version, folder_ / "..data_tmp");
    fs::rename(folder_ / "..data_tmp", folder_ / "..data");
    for (const auto& host : hosts) link(host + ".crt");
    link("tls.key");
    for (const auto& entry : fs::directory_iterator(folder_))
      if (fs::is_symlink(entry.symlink_status()) && !fs::exists(entry.path())) fs::remove(entry.path());
  }
  void link(const std::string& name) {
    if (!fs::is_symlink(folder_ / name)) fs::create_symlink("..data/" + name, folder_ / name);
  }
  double errors() {
    const std::string text = metrics_->expose(), name = "\nnezha_cache_certificate_errors_total ";
    return std::stod(text.substr(text.find(name) + name.size()));
  }

  std::string key_;
  int versions_ = 0;
};

TEST_F(MountedSecret, HostsComeAndGo) {
  const auto certificates = load().value();  // nothing is there yet
  EXPECT_FALSE(certificates->find("a.example"));
  hold({"a.example", "b.example"}, key_);
  EXPECT_TRUE(test::eventually([&] { return certificates->find("a.example") && certificates->find("b.example"); }));
  const auto before = certificates->find("b.example");
  hold({"b.example", "c.example"}, key_);
  EXPECT_TRUE(test::eventually([&] { return certificates->find("c.example") && !certificates->find("a.example"); }));
  EXPECT_TRUE(test::eventually([&] { return certificates->find("b.example") != before; })) << "a new leaf";
  EXPECT_EQ(errors(), 0);
  EXPECT_TRUE(load().value()->find("b.example")) << "at once, when it is there at the start";
}

TEST_F(MountedSecret, WithAnotherKeyAllAreReadAgain) {
  hold({"a.example"}, key_);
  const auto certificates = load().value();
  const auto before = certificates->find("a.example");
  ASSERT_TRUE(before);
  hold({"a.example"}, pki_.leaf({"key.example"}).key_pem);
  EXPECT_TRUE(test::eventually([&] { return certificates->find("a.example") != before; }));
}

TEST_F(MountedSecret, WhatIsBadLeavesTheLastGoodOneAndTheOthers) {
  hold({"a.example", "b.example"}, key_);
  const auto certificates = load().value();
  const auto before = certificates->find("a.example");
  fs::remove(folder_ / "a.example.crt");
  write("a.example.crt", "no certificate");
  write("d.example.crt", "nor this");
  EXPECT_TRUE(test::eventually([&] { return errors() == 2; }));
  EXPECT_EQ(certificates->find("a.example"), before);
  EXPECT_TRUE(certificates->find("b.example"));
  EXPECT_FALSE(certificates->find("d.example"));
}

TEST_F(MountedSecret, ThatIsMissingIsNoError) {
  settings_.directory = (folder_ / "none").string();
  const auto certificates = load();
  ASSERT_TRUE(certificates);
  EXPECT_FALSE(certificates.value()->find("a.example"));
}

}  // namespace
}  // namespace nezha::cache
