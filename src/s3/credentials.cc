#include "nezha/s3/credentials.h"

#include <openssl/crypto.h>

namespace nezha::s3 {

Hidden::~Hidden() { OPENSSL_cleanse(bytes_.data(), bytes_.size()); }

Hidden& Hidden::operator=(Hidden&& other) noexcept {
  if (this == &other) return *this;
  OPENSSL_cleanse(bytes_.data(), bytes_.size());
  bytes_ = std::move(other.bytes_);
  other.bytes_.clear();
  return *this;
}

}  // namespace nezha::s3
