// ClientHello: made by OpenSSL, cut at every byte, spread over records, and broken.
#include "cache/accept/client_hello.h"

#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <memory>
#include <random>

namespace nezha::cache {
namespace {

using Kind = ClientHello::Kind;

std::string hello_for(const char* name, std::string_view protocols = {}) {
  std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
  std::unique_ptr<SSL, void (*)(SSL*)> session(SSL_new(context.get()), SSL_free);
  BIO* out = BIO_new(BIO_s_mem());
  SSL_set_bio(session.get(), BIO_new(BIO_s_mem()), out);
  if (name) SSL_set_tlsext_host_name(session.get(), name);
  SSL_set_alpn_protos(session.get(), reinterpret_cast<const unsigned char*>(protocols.data()),
                      static_cast<unsigned>(protocols.size()));
  SSL_connect(session.get());
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(out, &bytes);
  return std::string(bytes, static_cast<size_t>(size));
}

// The same handshake message in records of at most this size.
std::string in_records(const std::string& hello, size_t record_bytes) {
  std::string out;
  for (size_t at = 5; at < hello.size(); at += record_bytes) {
    const std::string piece = hello.substr(at, record_bytes);
    out += hello.substr(0, 3);
    out += static_cast<char>(piece.size() >> 8);
    out += static_cast<char>(piece.size() & 0xff);
    out += piece;
  }
  return out;
}

TEST(ClientHello, NamesTheServer) {
  EXPECT_EQ(parse_client_hello(hello_for("data.example")).server_name, "data.example");
  EXPECT_EQ(parse_client_hello(hello_for("DATA.Example")).server_name, "data.example");
  const ClientHello none = parse_client_hello(hello_for(nullptr));
  EXPECT_EQ(none.kind, Kind::kDone);
  EXPECT_EQ(none.server_name, "");
}

TEST(ClientHello, TellsWhetherHttp1IsOffered) {
  EXPECT_TRUE(parse_client_hello(hello_for("data.example")).accepts_http1);
  EXPECT_TRUE(parse_client_hello(hello_for("data.example", "\x02h2\x08http/1.1")).accepts_http1);
  EXPECT_FALSE(parse_client_hello(hello_for("data.example", "\x02h2\x03h-9")).accepts_http1);
}

TEST(ClientHello, EveryPrefixNeedsMore) {
  const std::string hello = hello_for("data.example");
  for (size_t size = 0; size < hello.size(); ++size) {
    EXPECT_EQ(parse_client_hello(std::string_view(hello).substr(0, size)).kind, Kind::kNeedMore) << size;
  }
  EXPECT_EQ(parse_client_hello(hello + "early data").server_name, "data.example");
}

TEST(ClientHello, MayBeSpreadOverRecords) {
  const std::string hello = hello_for("data.example");
  for (size_t size = 1; size < 100; ++size) {
    const std::string spread = in_records(hello, size);
    EXPECT_EQ(parse_client_hello(spread).server_name, "data.example") << size;
    EXPECT_EQ(parse_client_hello(std::string_view(spread).substr(0, spread.size() - 1)).kind, Kind::kNeedMore);
  }
}

TEST(ClientHello, WhatIsNoHelloIsBad) {
  using namespace std::string_literals;
  for (const std::string& bytes :
       {"GET / HTTP/1.1\r\n"s, "\x80\x2e\x01\x03\x01"s, "\x15\x03\x01\x00\x02\x01\x00"s, "\x16\x03\x01\x00\x00"s,
        "\x16\x02\x01\x00\x05\x01\x00\x00\x00\x00"s, "\x16\x03\x01\x00\x04\x02\x00\x00\x00"s,
        "\x16\x03\x01\x00\x04\x01\xff\xff\xff"s, "\x16\x03\x01\x00\x04\x01\x00\x00\x00"s}) {
    EXPECT_EQ(parse_client_hello(bytes).kind, Kind::kBad) << testing::PrintToString(bytes);
  }
}

TEST(ClientHello, NamesThatAreNoHostsAreBad) {
  for (const char* name : {"..", "a_b", "a b", "-a"})
    EXPECT_EQ(parse_client_hello(hello_for(name)).kind, Kind::kBad) << name;
}

TEST(ClientHello, BrokenBytesNeverReadBeyondTheEnd) {
  const std::string hello = hello_for("data.example");
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    std::string broken = hello;
    for (unsigned n = 0; n < 1 + random() % 4; ++n) broken[random() % broken.size()] = static_cast<char>(random());
    parse_client_hello(std::string(broken.substr(0, random() % (broken.size() + 1))));
  }
}

}  // namespace
}  // namespace nezha::cache
