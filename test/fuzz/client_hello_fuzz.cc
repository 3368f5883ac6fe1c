// Fuzz target: any bytes as the start of a TLS connection: an answer that was given does not change with more bytes.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "cache/accept/client_hello.h"
#include "nezha/base/check.h"
#include "nezha/base/text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using nezha::cache::ClientHello;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const ClientHello whole = nezha::cache::parse_client_hello(bytes);
  if (whole.kind == ClientHello::Kind::kDone && !whole.server_name.empty()) {
    NEZHA_CHECK(nezha::is_dns1123_subdomain(whole.server_name), "a name is a host name");
  }
  const ClientHello half = nezha::cache::parse_client_hello(bytes.substr(0, size / 2));
  if (half.kind != ClientHello::Kind::kNeedMore) {
    NEZHA_CHECK(half.kind == whole.kind && half.server_name == whole.server_name, "more bytes change nothing");
  }
  return 0;
}
