#include "nezha/http/message.h"

#include <array>
#include <vector>

#include "nezha/base/text.h"

namespace nezha::http {
namespace {

void append_fields(std::string& out, const Fields& fields) {
  fields.for_each([&](std::string_view name, std::string_view value) {
    out.append(name).append(": ").append(value).append("\r\n");
  });
  out += "\r\n";
}

}  // namespace

std::string serialise(const RequestHead& head) {
  std::string out;
  out.reserve(1024);
  out.append(head.method).append(" ").append(head.target).append(" HTTP/1.1\r\n");
  append_fields(out, head.fields);
  return out;
}

std::string serialise(const ResponseHead& head) {
  std::string out;
  out.reserve(1024);
  out.append("HTTP/1.1 ").append(std::to_string(head.status)).append(" ").append(head.reason).append("\r\n");
  append_fields(out, head.fields);
  return out;
}

void remove_hop_by_hop(Fields& fields) {
  static constexpr std::array kAlways = {
      "Connection", "Keep-Alive",          "Proxy-Connection",   "TE",
      "Upgrade",    "Proxy-Authorization", "Proxy-Authenticate", "Transfer-Encoding"};
  // Copied first: the views die with the first removal. Fields a message cannot do without are not ours to drop.
  std::vector<std::string> named;
  for (const auto member : list_members(fields, "Connection")) {
    if (!iequals(member, "Host") && !iequals(member, "Content-Length") && !iequals(member, "close")) {
      named.emplace_back(member);
    }
  }
  for (const auto& name : named) fields.remove(name);
  for (const char* name : kAlways) fields.remove(name);
}

std::string_view reason_of(int status) {
  switch (status) {
    case 100:
      return "Continue";
    case 200:
      return "OK";
    case 206:
      return "Partial Content";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 412:
      return "Precondition Failed";
    case 413:
      return "Content Too Large";
    case 416:
      return "Range Not Satisfiable";
    case 417:
      return "Expectation Failed";
    case 421:
      return "Misdirected Request";
    case 431:
      return "Request Header Fields Too Large";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    case 508:
      return "Loop Detected";
    default:
      return "Status";
  }
}

}  // namespace nezha::http
