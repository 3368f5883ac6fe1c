#include "cache/accept/client_hello.h"

#include <cstdint>
#include <optional>

#include "nezha/base/text.h"

namespace nezha::cache {
namespace {

constexpr size_t kHelloBytesMax = 65'536;
constexpr uint8_t kHandshakeRecord = 22, kClientHelloType = 1, kHostNameType = 0;
constexpr uint16_t kServerNameExtension = 0, kAlpnExtension = 16;

ClientHello bad() { return {.kind = ClientHello::Kind::kBad, .server_name = {}}; }

// Takes numbers and length-prefixed pieces from the front; any shortage sticks.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : bytes_(bytes) {}
  bool good() const { return good_; }
  bool empty() const { return bytes_.empty(); }
  size_t number(size_t width) {
    const auto piece = take(width);
    size_t value = 0;
    for (const char c : piece) value = value << 8 | static_cast<uint8_t>(c);
    return value;
  }
  std::string_view take(size_t size) {
    if (size > bytes_.size()) good_ = false;
    if (!good_) return {};
    const auto piece = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return piece;
  }
  std::string_view prefixed(size_t width) { return take(number(width)); }

 private:
  std::string_view bytes_;
  bool good_ = true;
};

// The handshake message, joined from its records. Nothing when more bytes are needed; `broken` for no handshake.
std::optional<std::string> join_records(std::string_view bytes, bool& broken) {
  std::string message;
  while (!bytes.empty()) {
    if (static_cast<uint8_t>(bytes[0]) != kHandshakeRecord || (bytes.size() > 1 && bytes[1] != 3)) {
      broken = true;
      return std::nullopt;
    }
    if (bytes.size() < 5) return std::nullopt;
    const size_t size = static_cast<size_t>(static_cast<uint8_t>(bytes[3])) << 8 | static_cast<uint8_t>(bytes[4]);
    if (size == 0 || size > 16'384) {
      broken = true;
      return std::nullopt;
    }
    message.append(bytes.substr(5, size));
    if (message.size() >= 4) {
      const size_t wanted =
          4 + (static_cast<size_t>(static_cast<uint8_t>(message[1])) << 16 |
               static_cast<size_t>(static_cast<uint8_t>(message[2])) << 8 | static_cast<uint8_t>(message[3]));
      broken = static_cast<uint8_t>(message[0]) != kClientHelloType || wanted > kHelloBytesMax;
      if (broken) return std::nullopt;
      if (message.size() >= wanted) return message.substr(0, wanted);
    }
    if (bytes.size() < 5 + size) return std::nullopt;
    bytes.remove_prefix(5 + size);
  }
  return std::nullopt;
}

// False when the extension is broken.
bool read_server_name(std::string_view extension, std::string& into) {
  Cursor list(Cursor(extension).prefixed(2));
  while (!list.empty() && list.good()) {
    const size_t type = list.number(1);
    const auto name = list.prefixed(2);
    if (!list.good()) break;
    if (type != kHostNameType) continue;
    into = to_lower(name);
    return is_dns1123_subdomain(into);
  }
  return false;
}

// RFC 7301 §3.1. A broken list is left to whoever speaks TLS with this client.
bool offers_http1(std::string_view extension) {
  Cursor list(Cursor(extension).prefixed(2));
  while (!list.empty() && list.good()) {
    if (list.prefixed(1) == "http/1.1") return true;
  }
  return false;
}

}  // namespace

ClientHello parse_client_hello(std::string_view bytes) {
  bool broken = false;
  const auto message = join_records(bytes, broken);
  if (broken || (!message && bytes.size() > kHelloBytesMax)) return bad();
  if (!message) return {};
  Cursor hello(std::string_view(*message).substr(4));
  hello.take(2 + 32);  // legacy_version, random
  hello.prefixed(1);   // session id
  hello.prefixed(2);   // cipher suites
  hello.prefixed(1);   // compression methods
  if (!hello.good()) return bad();
  ClientHello out{.kind = ClientHello::Kind::kDone, .server_name = {}};
  if (hello.empty()) return out;
  Cursor extensions(hello.prefixed(2));
  if (!hello.good()) return bad();
  while (!extensions.empty()) {
    const size_t type = extensions.number(2);
    const auto extension = extensions.prefixed(2);
    if (!extensions.good()) return bad();
    if (type == kServerNameExtension && out.server_name.empty() && !read_server_name(extension, out.server_name))
      return bad();
    if (type == kAlpnExtension) out.accepts_http1 = offers_http1(extension);
  }
  return out;
}

}  // namespace nezha::cache
