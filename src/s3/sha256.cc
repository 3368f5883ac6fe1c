#include "nezha/s3/sha256.h"

#include <openssl/evp.h>
#include <openssl/sha.h>

#include <array>

#include "nezha/base/check.h"
#include "src/s3/percent.h"

namespace nezha::s3 {
namespace {

const unsigned char* bytes_of(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }

}  // namespace

std::string sha256_hex(std::string_view bytes) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(bytes_of(bytes), bytes.size(), digest.data());
  return to_hex(digest);
}

void Sha256::Release::operator()(evp_md_ctx_st* state) const { EVP_MD_CTX_free(state); }

Sha256::Sha256() : state_(EVP_MD_CTX_new()) {
  NEZHA_CHECK(state_ && EVP_DigestInit_ex(state_.get(), EVP_sha256(), nullptr) == 1, "OpenSSL always has SHA-256");
}

void Sha256::update(std::string_view piece) {
  NEZHA_CHECK(EVP_DigestUpdate(state_.get(), piece.data(), piece.size()) == 1, "a hash takes any bytes");
}

std::string Sha256::hex() {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  NEZHA_CHECK(EVP_DigestFinal_ex(state_.get(), digest.data(), nullptr) == 1, "a hash can be ended");
  NEZHA_CHECK(EVP_DigestInit_ex(state_.get(), nullptr, nullptr) == 1, "and begun anew");
  return to_hex(digest);
}

}  // namespace nezha::s3
