#include "nezha/pki/base64.h"

#include <openssl/evp.h>

#include <algorithm>

namespace nezha::pki {
namespace {

bool in_alphabet(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '/';
}

}  // namespace

std::string base64_encode(std::string_view bytes) {
  std::string out(4 * ((bytes.size() + 2) / 3) + 1, '\0');  // OpenSSL adds a NUL
  const int size =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                      reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  out.resize(static_cast<size_t>(size));
  return out;
}

Result<std::string> base64_decode(std::string_view text) {
  const size_t padding = text.size() - std::min(text.find_last_not_of('=') + 1, text.size());
  const std::string_view digits = text.substr(0, text.size() - padding);
  if (text.size() % 4 != 0 || padding > 2 || !std::all_of(digits.begin(), digits.end(), in_alphabet)) {
    return fail(Remedy::kFixInput, "not Base64");
  }
  std::string out(3 * (text.size() / 4), '\0');
  if (text.empty()) return out;
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                   reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
  if (size < 0) return fail(Remedy::kFixInput, "not Base64");
  out.resize(static_cast<size_t>(size) - padding);
  return out;
}

}  // namespace nezha::pki
