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
  struct Entry {
    int status;
    std::string_view reason;
  };
  static constexpr std::array kReasons = std::to_array<Entry>({
      {100, "Continue"},
      {200, "OK"},
      {203, "Non-Authoritative Information"},
      {204, "No Content"},
      {206, "Partial Content"},
      {300, "Multiple Choices"},
      {301, "Moved Permanently"},
      {302, "Found"},
      {303, "See Other"},
      {304, "Not Modified"},
      {307, "Temporary Redirect"},
      {308, "Permanent Redirect"},
      {400, "Bad Request"},
      {403, "Forbidden"},
      {404, "Not Found"},
      {405, "Method Not Allowed"},
      {408, "Request Timeout"},
      {410, "Gone"},
      {412, "Precondition Failed"},
      {413, "Content Too Large"},
      {414, "URI Too Long"},
      {416, "Range Not Satisfiable"},
      {417, "Expectation Failed"},
      {421, "Misdirected Request"},
      {431, "Request Header Fields Too Large"},
      {500, "Internal Server Error"},
      {501, "Not Implemented"},
      {502, "Bad Gateway"},
      {503, "Service Unavailable"},
      {504, "Gateway Timeout"},
      {505, "HTTP Version Not Supported"},
      {508, "Loop Detected"},
  });
  for (const auto& entry : kReasons) {
    if (entry.status == status) return entry.reason;
  }
  return "Status";
}

}  // namespace nezha::http
