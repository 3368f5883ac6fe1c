// View: a Node together with its place, so that every read can fail with a message that names path and line.
// The schema readers (upstreams.cc, injection.cc, programs.cc, ancestor.cc) are written in terms of Views.
// Views borrow the Node tree and the source name. Threads: any.
#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nezha/base/result.h"
#include "nezha/config/settings.h"
#include "src/config/document.h"

namespace nezha::config {

class View {
 public:
  // The top of a document.
  View(const Node& node, std::string_view source) : node_(&node), source_(source) {}

  const std::string& path() const { return path_; }
  const std::string& key() const { return node_->key; }
  bool is_null() const { return node_->kind == Node::Kind::kNull; }
  bool is_empty_text() const { return node_->kind == Node::Kind::kText && node_->text.empty(); }
  bool is_map() const { return node_->kind == Node::Kind::kMap; }
  bool is_list() const { return node_->kind == Node::Kind::kList; }

  // The failure "source: path (line N): what".
  auto error(std::string_view what) const {
    return fail(Remedy::kFixInput, message_at(source_, path_, node_->line, what));
  }

  // Fails unless this is a map whose keys are all in `known`; the message suggests the nearest one.
  [[nodiscard]] Result<> expect_map(std::initializer_list<std::string_view> known) const;
  // Every member of a map with free keys.
  [[nodiscard]] Result<std::vector<View>> members() const;
  // The items of a list of at most `count_max`.
  [[nodiscard]] Result<std::vector<View>> items(size_t count_max) const;
  // A member of a map; absent when the key is missing or its value is empty.
  std::optional<View> find(std::string_view key) const;
  [[nodiscard]] Result<View> require(std::string_view key, std::string_view example) const;

  // Scalars.
  [[nodiscard]] Result<std::string> scalar() const;             // any non-empty scalar, as written
  [[nodiscard]] Result<std::string> text() const;               // a string; booleans and numbers need quotes
  [[nodiscard]] Result<uint64_t> size_bytes() const;            // at least 1
  [[nodiscard]] Result<std::chrono::seconds> duration() const;  // at least 1 s
  [[nodiscard]] Result<IpAddress> ip() const;
  // "IP:PORT" or "[IPv6]:PORT"; without a port where `port_default` is given. Port 0 only if `zero_allowed`.
  [[nodiscard]] Result<ListenAddress> address(std::optional<uint16_t> port_default, bool zero_allowed) const;
  [[nodiscard]] Result<std::string> absolute_path() const;
  // The index of the text in `words`.
  [[nodiscard]] Result<size_t> one_of(std::initializer_list<std::string_view> words) const;

 private:
  View(const Node& node, std::string_view source, std::string path)
      : node_(&node), source_(source), path_(std::move(path)) {}

  const Node* node_;
  std::string_view source_;
  std::string path_;
};

// Reads each item of a list by `read(View) -> Result<T>`.
template <class T, class Read>
[[nodiscard]] Result<std::vector<T>> read_list(const View& view, size_t count_max, const Read& read) {
  NEZHA_TRY(const auto items, view.items(count_max));
  std::vector<T> out;
  out.reserve(items.size());
  for (const View& item : items) {
    NEZHA_TRY(auto value, read(item));
    out.push_back(std::move(value));
  }
  return out;
}

// "a, b or c".
std::string any_of_words(std::initializer_list<std::string_view> words);

}  // namespace nezha::config
