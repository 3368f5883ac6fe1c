// Certificates and configuration from files: first load, change, replacement by a link, and what is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "nezha/pki/certificates.h"
#include "test/unit/k8s_client/temporary_file.h"
#include "webhook/certs.h"
#include "webhook/policy_file.h"

namespace nezha::webhook {
namespace {

using ::testing::HasSubstr;

pki::Identity identity() {
  const WallTime start = std::chrono::system_clock::from_time_t(1'800'000'000);
  return pki::make_ca("test", {start, start + std::chrono::hours(1)}).value();
}

TEST(FileCertificate, LoadsAndFollowsTheFiles) {
  const auto first = identity(), second = identity();
  const test::TemporaryFile certificate(first.certificate_pem), key(first.key_pem);
  FileCertificate source(certificate.path(), key.path());
  EXPECT_EQ(source.current(), nullptr);
  EXPECT_TRUE(source.refresh().value());
  const auto loaded = source.current();
  EXPECT_EQ(loaded->certificate_pem, first.certificate_pem);
  EXPECT_FALSE(source.refresh().value()) << "nothing changed";
  certificate.write(second.certificate_pem);
  const auto half = source.refresh();
  ASSERT_FALSE(half) << "the key is still the old one";
  EXPECT_EQ(source.current(), loaded);
  key.write(second.key_pem);
  EXPECT_TRUE(source.refresh().value());
  EXPECT_EQ(source.current()->certificate_pem, second.certificate_pem);
}

TEST(FileCertificate, SamePairKeepsThePointer) {
  const auto pair = identity();
  const test::TemporaryFile certificate(pair.certificate_pem), key(pair.key_pem);
  FileCertificate source(certificate.path(), key.path());
  ASSERT_TRUE(source.refresh());
  const auto loaded = source.current();
  std::filesystem::last_write_time(certificate.path(),
                                   std::filesystem::file_time_type::clock::now() + std::chrono::hours(1));
  EXPECT_TRUE(source.refresh().value());
  EXPECT_EQ(source.current(), loaded);
}

TEST(FileCertificate, FollowsASymbolicLinkAsTheKubeletMovesIt) {
  const auto first = identity(), second = identity();
  const test::TemporaryFile old_certificate(first.certificate_pem), old_key(first.key_pem);
  const test::TemporaryFile new_certificate(second.certificate_pem), new_key(second.key_pem);
  const std::string links = ::testing::TempDir() + "nezha-links-" + std::to_string(::getpid());
  std::filesystem::remove_all(links);
  std::filesystem::create_directory(links);
  const auto point = [&](const std::string& name, const std::string& target) {
    std::filesystem::create_symlink(target, links + "/next");
    std::filesystem::rename(links + "/next", links + "/" + name);
  };
  point("tls.crt", old_certificate.path());
  point("tls.key", old_key.path());
  FileCertificate source(links + "/tls.crt", links + "/tls.key");
  EXPECT_TRUE(source.refresh().value());
  point("tls.crt", new_certificate.path());
  point("tls.key", new_key.path());
  EXPECT_TRUE(source.refresh().value());
  EXPECT_EQ(source.current()->certificate_pem, second.certificate_pem);
  std::filesystem::remove_all(links);
}

TEST(FileCertificate, MissingOrWrongFilesAreNamed) {
  FileCertificate missing("/nonexistent/tls.crt", "/nonexistent/tls.key");
  const auto absent = missing.refresh();
  ASSERT_FALSE(absent);
  EXPECT_THAT(absent.error().message, HasSubstr("/nonexistent/tls.crt"));
  EXPECT_FALSE(missing.refresh().value()) << "told once";
  const test::TemporaryFile garbage("garbage");
  FileCertificate wrong(garbage.path(), garbage.path());
  const auto refused = wrong.refresh();
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr(garbage.path()));
}

TEST(PolicyFile, LoadsFollowsAndKeepsTheLastGood) {
  const test::TemporaryFile file("webhook: {cacheAddress: 10.0.0.1}");
  PolicyStore policies;
  PolicyFile policy(file.path(), std::nullopt, policies);
  EXPECT_TRUE(policy.refresh().value());
  EXPECT_EQ(policies.current()->cache_addresses, std::vector<IpAddress>{IpAddress("10.0.0.1")});
  EXPECT_FALSE(policy.refresh().value());
  file.write("webhook: {cacheAdress: 10.0.0.22}");
  const auto wrong = policy.refresh();
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, HasSubstr(file.path() + ": webhook.cacheAdress"));
  EXPECT_FALSE(policy.refresh().value()) << "told once";
  EXPECT_EQ(policies.current()->cache_addresses, std::vector<IpAddress>{IpAddress("10.0.0.1")});
  file.write("webhook: {cacheAddress: 10.0.0.3} ");
  EXPECT_TRUE(policy.refresh().value());
  EXPECT_EQ(policies.current()->cache_addresses, std::vector<IpAddress>{IpAddress("10.0.0.3")});
}

TEST(PolicyFile, PinnedAddressWinsAndMissingFileIsNamed) {
  const test::TemporaryFile file("webhook: {cacheAddress: 10.0.0.1}");
  PolicyStore policies;
  EXPECT_TRUE(PolicyFile(file.path(), IpAddress("10.9.9.9"), policies).refresh().value());
  EXPECT_EQ(policies.current()->cache_addresses, std::vector<IpAddress>{IpAddress("10.9.9.9")});
  const auto absent = PolicyFile("/nonexistent/config.yaml", std::nullopt, policies).refresh();
  ASSERT_FALSE(absent);
  EXPECT_THAT(absent.error().message, HasSubstr("/nonexistent/config.yaml"));
}

}  // namespace
}  // namespace nezha::webhook
