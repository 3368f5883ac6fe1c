// SHA-256 in the form in which S3 writes it: 64 lower-case hexadecimal digits.
// Threads: sha256_hex() any; a Sha256 is used by one at a time.
#pragma once

#include <memory>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

namespace nezha::s3 {

// Of no bytes: what a request without a body declares.
inline constexpr std::string_view kEmptySha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

std::string sha256_hex(std::string_view bytes);

// Of bytes that come in pieces.
class Sha256 {
 public:
  Sha256();
  void update(std::string_view piece);
  // The hash of all pieces since the last call; the next piece begins another one.
  std::string hex();

 private:
  struct Release {
    void operator()(evp_md_ctx_st* state) const;
  };
  std::unique_ptr<evp_md_ctx_st, Release> state_;
};

}  // namespace nezha::s3
