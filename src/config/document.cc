// Builds the Node tree from yaml-cpp's events, so that every limit is checked while the text is read and nothing is
// built for a document that breaks one.
#include "src/config/document.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <exception>
#include <sstream>
#include <unordered_set>

#include "nezha/base/check.h"
#include "nezha/base/limits.h"
#include "nezha/base/text.h"

namespace nezha::config {
namespace {

constexpr size_t kQuotedBytesMax = 80;

bool is_plain_key(std::string_view key) {
  return !key.empty() && key.size() <= kQuotedBytesMax && std::all_of(key.begin(), key.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

// Leaves yaml-cpp at the first event we refuse; caught in parse_document and nowhere else.
struct Refused {
  std::string path;
  int line;
  std::string what;
};

class TreeBuilder final : public YAML::EventHandler {
 public:
  Node take_root() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override { NEZHA_CHECK(open_.empty(), "yaml-cpp left a map or list open"); }

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_extras(mark, "", anchor);
    if (expects_key()) refuse(mark, "has an empty key; write KEY: VALUE");
    add(Node{.kind = Node::Kind::kNull, .line = mark.line + 1});
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { refuse(mark, kNoAnchors); }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_extras(mark, tag, anchor);
    if (expects_key()) return take_key(mark, value);
    add(Node{.kind = Node::Kind::kText, .quoted = tag == "!", .line = mark.line + 1, .text = value});
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, Node::Kind::kList);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, Node::Kind::kMap);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }

 private:
  static constexpr const char* kNoAnchors =
      "uses a YAML anchor or alias (& or *); they are not supported, repeat the value (quote text that starts so)";

  // A map or list whose end has not been read yet.
  struct Open {
    Node node;
    std::unordered_set<std::string> keys;  // kMap: seen so far
    std::string key;                       // kMap: of the value to come
    bool has_key = false;
  };

  bool expects_key() const {
    return !open_.empty() && open_.back().node.kind == Node::Kind::kMap && !open_.back().has_key;
  }

  std::string path() const {
    std::string path;
    for (const Open& level : open_) {
      if (level.node.kind == Node::Kind::kList) {
        path = item_path(path, level.node.children.size());
      } else if (level.has_key) {
        path = child_path(path, level.key);
      }
    }
    return path;
  }

  [[noreturn]] void refuse(const YAML::Mark& mark, std::string what) const {
    throw Refused{path(), mark.line + 1, std::move(what)};
  }

  // yaml-cpp gives plain scalars the tag "?" and quoted ones "!"; anything else was written by the user.
  void refuse_extras(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) const {
    if (anchor != YAML::NullAnchor) refuse(mark, kNoAnchors);
    if (!tag.empty() && tag != "?" && tag != "!") refuse(mark, "has the YAML tag " + quoted(tag) + "; remove the tag");
  }

  void take_key(const YAML::Mark& mark, const std::string& key) {
    Open& map = open_.back();
    map.key = key;
    map.has_key = true;
    if (!map.keys.insert(key).second) refuse(mark, "is given twice in the same map; keep one of them");
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, Node::Kind kind) {
    refuse_extras(mark, tag, anchor);
    if (expects_key()) refuse(mark, "has a map or list as a key; keys are plain text");
    if (open_.size() >= limits::kConfigNestingMax) {
      refuse(mark, "is nested deeper than " + std::to_string(limits::kConfigNestingMax) + " levels; flatten it");
    }
    open_.push_back(Open{.node = Node{.kind = kind, .line = mark.line + 1}, .keys = {}, .key = {}});
  }

  void close() {
    Node node = std::move(open_.back().node);
    open_.pop_back();
    add(std::move(node));
  }

  void add(Node node) {
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = open_.back();
    if (parent.has_key) node.key = std::move(parent.key);
    parent.has_key = false;
    parent.node.children.push_back(std::move(node));
  }

  Node root_;
  std::vector<Open> open_;
};

// Receives the events of a document that should not be there.
class NoDocument final : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override {
    throw Refused{"", mark.line + 1, "holds a second YAML document; keep one and remove the line ---"};
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}
};

Node build_tree(std::string_view yaml) {
  std::istringstream stream{std::string(yaml)};
  YAML::Parser parser(stream);
  TreeBuilder builder;
  if (!parser.HandleNextDocument(builder)) return Node{.line = 1};
  NoDocument rest;
  parser.HandleNextDocument(rest);
  return builder.take_root();
}

}  // namespace

std::string message_at(std::string_view source, std::string_view path, int line, std::string_view what) {
  std::string message(source);
  message += ": ";
  message += path.empty() ? "the document" : path;
  message += " (line " + std::to_string(line) + "): ";
  message += what;
  return message;
}

std::string quoted(std::string_view text) { return '"' + printable(text, kQuotedBytesMax) + '"'; }

std::string child_path(std::string_view path, std::string_view key) {
  std::string out(path);
  if (!is_plain_key(key)) return out + "[" + quoted(key) + "]";
  if (!out.empty()) out += '.';
  out += key;
  return out;
}

std::string item_path(std::string_view path, size_t index) {
  return std::string(path) + "[" + std::to_string(index) + "]";
}

Result<Node> parse_document(std::string_view yaml, std::string_view source) {
  if (yaml.size() > limits::kConfigBytesMax) {
    return fail(Remedy::kFixInput, message_at(source, "", 1,
                                              "has " + std::to_string(yaml.size()) + " bytes; the limit is " +
                                                  std::to_string(limits::kConfigBytesMax)));
  }
  try {
    return build_tree(yaml);
  } catch (const Refused& refused) {
    return fail(Remedy::kFixInput, message_at(source, refused.path, refused.line, refused.what));
  } catch (const YAML::Exception& error) {
    const int line = error.mark.is_null() ? 1 : error.mark.line + 1;
    return fail(Remedy::kFixInput, message_at(source, "", line,
                                              "is not valid YAML at column " +
                                                  std::to_string(error.mark.is_null() ? 1 : error.mark.column + 1) +
                                                  " (" + printable(error.msg, kQuotedBytesMax) +
                                                  "); check indentation, quotes and brackets there"));
  } catch (const std::exception& error) {
    return fail(Remedy::kFixInput,
                message_at(source, "", 1,
                           std::string("cannot be read as YAML (") + printable(error.what(), kQuotedBytesMax) + ")"));
  }
}

}  // namespace nezha::config
