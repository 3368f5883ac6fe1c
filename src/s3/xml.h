// What S3's documents need of pugixml. Threads: any.
#pragma once

#include <pugixml.hpp>
#include <string>
#include <string_view>

namespace nezha::s3 {

// Prefixes of namespaces do not count: <s3:Key> is a Key.
inline std::string_view local_name(const pugi::xml_node& node) {
  const std::string_view name = node.name();
  return name.substr(name.find(':') == std::string_view::npos ? 0 : name.find(':') + 1);
}

// All of it: comments and CDATA sections divide a text into several nodes.
inline std::string text_of(const pugi::xml_node& node) {
  std::string out;
  for (const auto& piece : node) {
    if (piece.type() == pugi::node_pcdata || piece.type() == pugi::node_cdata) out += piece.value();
  }
  return out;
}

// White space belongs to a key, also where it is all of it.
inline constexpr unsigned kParseOptions = pugi::parse_default | pugi::parse_ws_pcdata;

}  // namespace nezha::s3
