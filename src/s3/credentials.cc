#include "nezha/s3/credentials.h"

#include <openssl/crypto.h>

#include <utility>

namespace nezha::s3 {

Hidden::~Hidden() { OPENSSL_cleanse(bytes_.data(), bytes_.size()); }

Hidden& Hidden::operator=(Hidden&& other) noexcept {
  if (this == &other) return *this;
  OPENSSL_cleanse(bytes_.data(), bytes_.size());
  bytes_ = std::exchange(other.bytes_, {});
  return *this;
}

}  // namespace nezha::s3
