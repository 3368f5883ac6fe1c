// YAML text -> a tree of Nodes that know their lines. The only user of yaml-cpp.
// Reads one document of maps, lists and scalars. Refuses what a configuration does not need and an attacker would
// use: text over the size limit, deep nesting, anchors and aliases, tags, duplicate keys, keys that are not text.
// Does not know the schema. Threads: any.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nezha/base/result.h"

namespace nezha::config {

struct Node {
  enum class Kind { kNull, kText, kList, kMap };
  Kind kind = Kind::kNull;
  bool quoted = false;           // kText: written in quotes, so "true" and "12" are strings
  int line = 0;                  // counted from 1
  std::string key{};             // of this node within its map; empty in a list
  std::string text{};            // kText
  std::vector<Node> children{};  // kList: items; kMap: values, each with its key
};

// Failure: Remedy::kFixInput, one line in the form of every configuration message (parse.h).
[[nodiscard]] Result<Node> parse_document(std::string_view yaml, std::string_view source);

// "SOURCE: PATH (line N): WHAT". An empty path reads "the document".
std::string message_at(std::string_view source, std::string_view path, int line, std::string_view what);

// The text in double quotes, on one line and shortened: safe to put into a message.
std::string quoted(std::string_view text);

// PATH.KEY, or KEY at the top; keys that are not plain words are quoted: matchLabels["nezha.io/inject"].
std::string child_path(std::string_view path, std::string_view key);
std::string item_path(std::string_view path, size_t index);

}  // namespace nezha::config
