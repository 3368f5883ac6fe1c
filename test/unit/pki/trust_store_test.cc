// The PKCS#12 trust store, read back with OpenSSL and, where there is a JRE, with Java's own keytool.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/pkcs12.h>

#include <array>
#include <cstdio>
#include <fstream>

#include "nezha/base/freer.h"
#include "nezha/pki/certificates.h"
#include "test/support/temporary_directory.h"

namespace nezha::pki {
namespace {

using std::chrono::hours;
using ::testing::HasSubstr;

const WallTime kStart = std::chrono::system_clock::now();
constexpr const char* kPassword = "changeit";

std::vector<std::string> some_cas(size_t count) {
  std::vector<std::string> out;
  for (size_t i = 0; i < count; ++i)
    out.push_back(make_limited_ca("nezha test", {"a.org"}, {kStart, kStart + hours(100)}).value().certificate_pem);
  return out;
}

using StorePointer = std::unique_ptr<PKCS12, Freer<PKCS12_free>>;

StorePointer parse(const std::string& der) {
  const auto* at = reinterpret_cast<const unsigned char*>(der.data());
  return StorePointer(d2i_PKCS12(nullptr, &at, static_cast<long>(der.size())));
}

TEST(TrustStore, OpensslReadsItWithThePassword) {
  const StorePointer store = parse(make_trust_store(some_cas(3), kPassword).value());
  ASSERT_TRUE(store);
  EXPECT_EQ(PKCS12_verify_mac(store.get(), kPassword, -1), 1);
  EXPECT_EQ(PKCS12_verify_mac(store.get(), "other", -1), 0);
  EVP_PKEY* key = nullptr;
  X509* certificate = nullptr;
  STACK_OF(X509)* cas = nullptr;
  ASSERT_EQ(PKCS12_parse(store.get(), kPassword, &key, &certificate, &cas), 1);
  EXPECT_EQ(key, nullptr);
  EXPECT_EQ(sk_X509_num(cas), 3);
  sk_X509_pop_free(cas, X509_free);
}

TEST(TrustStore, SameCertificatesMakeTheSameBytes) {
  const auto cas = some_cas(2);
  EXPECT_EQ(make_trust_store(cas, kPassword).value(), make_trust_store(cas, kPassword).value());
  EXPECT_NE(make_trust_store(cas, kPassword).value(), make_trust_store({cas[1], cas[0]}, kPassword).value());
}

TEST(TrustStore, GarbageIsRefused) { EXPECT_FALSE(make_trust_store({"garbage"}, kPassword)); }

std::string output_of(const std::string& command) {
  std::string out;
  FILE* const pipe = ::popen((command + " 2>&1").c_str(), "r");
  std::array<char, 4096> buffer{};
  while (pipe != nullptr && std::fgets(buffer.data(), buffer.size(), pipe) != nullptr) out += buffer.data();
  if (pipe != nullptr) ::pclose(pipe);
  return out;
}

TEST(TrustStore, JavaTrustsEachCertificate) {
  if (output_of("command -v keytool").empty()) GTEST_SKIP() << "no JRE here";
  const test::TemporaryDirectory directory;
  const std::string path = directory.path() + "/truststore.p12";
  std::ofstream(path, std::ios::binary) << make_trust_store(some_cas(3), kPassword).value();
  const std::string listed =
      output_of("keytool -J-Duser.language=en -list -storetype PKCS12 -storepass changeit -keystore " + path);
  EXPECT_THAT(listed, HasSubstr("contains 3 entries"));
  // Without the attribute Java lists none of them.
  size_t trusted = 0;
  for (size_t at = 0; (at = listed.find("trustedCertEntry", at)) != std::string::npos; ++at) ++trusted;
  EXPECT_EQ(trusted, 3u) << listed;
}

}  // namespace
}  // namespace nezha::pki
