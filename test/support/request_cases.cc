#include "test/support/request_cases.h"

#include "nezha/base/limits.h"

namespace nezha::test {
namespace {

using http::Framing;
using namespace std::string_literals;

const std::string kHost = "Host: data.example\r\n";

RequestCase good(std::string name, std::string fields, Framing framing = {}, bool keep_alive = true) {
  return {std::move(name), "GET /x HTTP/1.1\r\n" + kHost + fields + "\r\n", 0, "GET", "/x", framing, keep_alive};
}

RequestCase line(std::string name, std::string method, std::string target, bool served = true) {
  RequestCase out{std::move(name), method + " " + target + " HTTP/1.1\r\n" + kHost + "\r\n", 0, method, target};
  out.served = served;
  return out;
}

RequestCase bad(std::string name, std::string bytes, int status = 400) {
  return {std::move(name), std::move(bytes), status, {}, {}};
}

// A field section that is refused behind an otherwise good request line.
RequestCase bad_fields(std::string name, std::string fields, int status = 400) {
  return bad(std::move(name), "GET /x HTTP/1.1\r\n" + kHost + fields + "\r\n", status);
}

void add_good(std::vector<RequestCase>& out) {
  const Framing chunked{Framing::Kind::kChunked};
  const Framing five{Framing::Kind::kLength, 5};
  out.push_back(good("plain", ""));
  out.push_back(good("no space behind the colon", "Accept:*/*\r\n"));
  out.push_back(good("white space around a value", "Accept: \t */* \t \r\n"));
  out.push_back(good("empty value", "X-Empty:\r\n"));
  out.push_back(good("8-bit value", "X-Name: caf\xc3\xa9 \xff\r\n"));
  out.push_back(good("quoted value with a comma", "X-Q: \"a,b\\\"c\"\r\n"));
  out.push_back(good("token characters in a name", "X-!#$%&'*+.^_`|~9: v\r\n"));
  out.push_back(good("lower-case close", "connection: close\r\n", {}, false));
  out.push_back(good("close in a list", "Connection: x-a, Close\r\n", {}, false));
  out.push_back(good("Content-Length", "Content-Length: 5\r\n", five));
  out.push_back(good("Content-Length 0", "Content-Length: 0\r\n", {Framing::Kind::kLength, 0}));
  out.push_back(good("chunked", "Transfer-Encoding: chunked\r\n", chunked));
  out.push_back(good("chunked in capitals", "TRANSFER-ENCODING: CHUNKED\r\n", chunked));
  out.push_back(line("absolute-form", "GET", "http://data.example/x?y=1"));
  out.push_back(line("awkward target", "GET", "/a%2Fb//c/../d;v=1?x=%zz&y=+&&"));
  out.push_back(line("unknown method", "BREW", "/x"));
  out.push_back(line("lower-case method is a method of its own", "get", "/x"));
  out.push_back(line("asterisk-form is not for a cache", "OPTIONS", "*", false));
  out.push_back(line("CONNECT is not served", "CONNECT", "data.example:443", false));
  RequestCase lines = good("one empty line before", "");
  lines.bytes = "\r\n" + lines.bytes;
  out.push_back(lines);
  RequestCase old{"HTTP/1.0", "GET /x HTTP/1.0\r\n" + kHost + "\r\n", 0, "GET", "/x", {}, false};
  out.push_back(old);
  old.name = "HTTP/1.0 with keep-alive";
  old.bytes = "GET /x HTTP/1.0\r\n" + kHost + "Connection: keep-alive\r\n\r\n";
  old.keep_alive = true;
  out.push_back(old);
}

void add_bad_lines(std::vector<RequestCase>& out) {
  const std::string rest = "\r\n" + kHost + "\r\n";
  out.push_back(bad("bare LF everywhere", "GET /x HTTP/1.1\nHost: data.example\n\n"));
  out.push_back(bad("bare LF behind the request line", "GET /x HTTP/1.1\n" + kHost + "\r\n"));
  out.push_back(bad("two spaces before the target", "GET  /x HTTP/1.1" + rest));
  out.push_back(bad("two spaces behind the target", "GET /x  HTTP/1.1" + rest));
  out.push_back(bad("tab for a space", "GET\t/x HTTP/1.1" + rest));
  out.push_back(bad("space at the start", " GET /x HTTP/1.1" + rest));
  out.push_back(bad("no target", "GET HTTP/1.1" + rest));
  out.push_back(bad("control character in the target", "GET /x\x01y HTTP/1.1" + rest));
  out.push_back(bad("NUL in the target", "GET /x\0y HTTP/1.1"s + rest));
  out.push_back(bad("bare CR in the target", "GET /x\ry HTTP/1.1" + rest));
  out.push_back(bad("separator in the method", "GE(T /x HTTP/1.1" + rest));
  out.push_back(bad("HTTP/0.9", "GET /x\r\n\r\n"));
  out.push_back(bad("HTTP/1.2", "GET /x HTTP/1.2" + rest, 505));
  out.push_back(bad("HTTP/2.0", "GET /x HTTP/2.0" + rest, 505));
  out.push_back(bad("lower-case http", "GET /x http/1.1" + rest));
  out.push_back(bad("the HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505));
  out.push_back(bad("a TLS hello", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"s));
}

void add_bad_fields(std::vector<RequestCase>& out) {
  out.push_back(bad_fields("space before the colon", "Accept : */*\r\n"));
  out.push_back(bad_fields("tab before the colon", "Transfer-Encoding\t: chunked\r\n"));
  out.push_back(bad_fields("no colon", "Accept\r\n"));
  out.push_back(bad_fields("empty name", ": v\r\n"));
  out.push_back(bad_fields("white space before the first name", " Accept: */*\r\n"));
  out.push_back(bad_fields("bare LF in a value", "Accept: a\nX: b\r\n"));
  out.push_back(bad_fields("bare CR in a value", "Accept: a\rX: b\r\n"));
  out.push_back(bad_fields("CR CR LF", "Accept: a\r\r\n"));
  out.push_back(bad_fields("NUL in a value", "Accept: a\0b\r\n"s));
  out.push_back(bad_fields("NUL in a name", "Acc\0ept: a\r\n"s));
  out.push_back(bad_fields("DEL in a value", "Accept: a\x7f\r\n"));
  out.push_back(bad_fields("obs-fold", "X-Folded: a\r\n b\r\n"));
  out.push_back(bad_fields("folded Transfer-Encoding", "Transfer-Encoding:\r\n chunked\r\n"));
  out.push_back(bad_fields("8-bit name", "X-\xc3\xa9: a\r\n"));
  out.push_back(bad_fields("two Hosts", "Host: data.example\r\n"));
  out.push_back(bad_fields("two different Hosts", "Host: other.example\r\n"));
  out.push_back(bad("no Host", "GET /x HTTP/1.1\r\nAccept: */*\r\n\r\n"));
}

void add_bad_framing(std::vector<RequestCase>& out) {
  out.push_back(
      bad_fields("Content-Length and Transfer-Encoding", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"));
  out.push_back(
      bad_fields("Transfer-Encoding and Content-Length", "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"));
  out.push_back(bad_fields("two Content-Lengths", "Content-Length: 5\r\nContent-Length: 6\r\n"));
  out.push_back(bad_fields("a list of Content-Lengths", "Content-Length: 5, 6\r\n"));
  for (const std::string value : {"", "-1", "+5", "5 5", "0x5", "5.", "five", "5;", "18446744073709551616"}) {
    out.push_back(bad_fields("Content-Length \"" + value + "\"", "Content-Length: " + value + "\r\n"));
  }
  for (const std::string value :
       {"", "identity", "gzip", "chunked, identity", "chunkedx", "x chunked", "\"chunked\""}) {
    out.push_back(bad_fields("Transfer-Encoding \"" + value + "\"", "Transfer-Encoding: " + value + "\r\n"));
  }
  out.push_back(bad_fields("gzip, chunked", "Transfer-Encoding: gzip, chunked\r\n", 501));
  out.push_back(
      bad_fields("gzip and chunked in two lines", "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n", 501));
  out.push_back(bad_fields("chunked, chunked", "Transfer-Encoding: chunked, chunked\r\n", 501));
  out.push_back(bad_fields("chunked twice", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"));
  out.push_back(bad_fields("chunked with a vertical tab",
                           "Transfer-Encoding: \x0b"
                           "chunked\r\n"));
  out.push_back(
      bad("Transfer-Encoding in HTTP/1.0", "POST /x HTTP/1.0\r\n" + kHost + "Transfer-Encoding: chunked\r\n\r\n"));
}

void add_too_large(std::vector<RequestCase>& out) {
  out.push_back(bad_fields("one huge field", "X-Big: " + std::string(limits::kHeadBytesMax, 'a') + "\r\n", 431));
  out.push_back(
      bad("a huge target", "GET /" + std::string(limits::kHeadBytesMax, 'a') + " HTTP/1.1\r\n" + kHost + "\r\n", 431));
  std::string many;
  for (size_t i = 0; i < limits::kHeadFieldsMax; ++i) many += "X-" + std::to_string(i) + ": v\r\n";
  out.push_back(bad_fields("too many fields", many, 431));
}

}  // namespace

std::vector<RequestCase> request_cases() {
  std::vector<RequestCase> out;
  add_good(out);
  add_bad_lines(out);
  add_bad_fields(out);
  add_bad_framing(out);
  add_too_large(out);
  return out;
}

std::vector<size_t> fragment_sizes(size_t bytes) {
  std::vector<size_t> sizes;
  if (bytes > 4096) return {1024, 4096, bytes};  // a head that is too large: byte by byte takes long and shows nothing
  for (size_t size = 1; size <= std::min<size_t>(bytes, 64); ++size) sizes.push_back(size);
  for (const size_t size : {100u, 300u}) {
    if (size < bytes) sizes.push_back(size);
  }
  if (sizes.back() != bytes) sizes.push_back(bytes);
  return sizes;
}

}  // namespace nezha::test
