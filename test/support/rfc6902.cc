#include "test/support/rfc6902.h"

#include <vector>

namespace nezha::test {
namespace {

using Json = nlohmann::json;

std::string unescape(const std::string& token) {
  std::string out;
  for (size_t i = 0; i < token.size(); ++i) {
    if (token[i] != '~') {
      out += token[i];
      continue;
    }
    const char next = i + 1 < token.size() ? token[++i] : '\0';
    if (next != '0' && next != '1') throw PatchError("bad escape in " + token);
    out += next == '0' ? '~' : '/';
  }
  return out;
}

std::vector<std::string> tokens_of(const std::string& pointer) {
  std::vector<std::string> tokens;
  if (pointer.empty()) return tokens;
  if (pointer[0] != '/') throw PatchError("pointer without leading slash: " + pointer);
  size_t begin = 1;
  for (;;) {
    const size_t end = pointer.find('/', begin);
    tokens.push_back(unescape(pointer.substr(begin, end == std::string::npos ? end : end - begin)));
    if (end == std::string::npos) return tokens;
    begin = end + 1;
  }
}

// An index without leading zeros, at most `max`.
size_t index_of(const std::string& token, size_t max) {
  if (token.empty() || token.find_first_not_of("0123456789") != std::string::npos || token.size() > 9 ||
      (token.size() > 1 && token[0] == '0'))
    throw PatchError("not an index: " + token);
  const size_t index = std::stoul(token);
  if (index > max) throw PatchError("index out of range: " + token);
  return index;
}

Json& child(Json& parent, const std::string& token) {
  if (parent.is_object() && parent.contains(token)) return parent[token];
  if (parent.is_array() && !parent.empty()) return parent[index_of(token, parent.size() - 1)];
  throw PatchError("nothing at " + token);
}

Json& resolve(Json& document, const std::vector<std::string>& tokens, size_t count) {
  Json* at = &document;
  for (size_t i = 0; i < count; ++i) at = &child(*at, tokens[i]);
  return *at;
}

void add(Json& document, const std::string& pointer, const Json& value) {
  const auto tokens = tokens_of(pointer);
  if (tokens.empty()) {
    document = value;
    return;
  }
  Json& parent = resolve(document, tokens, tokens.size() - 1);
  if (parent.is_object())
    parent[tokens.back()] = value;
  else if (parent.is_array() && tokens.back() == "-")
    parent.push_back(value);
  else if (parent.is_array())
    parent.insert(parent.begin() + static_cast<long>(index_of(tokens.back(), parent.size())), value);
  else
    throw PatchError("the parent of " + pointer + " holds nothing");
}

Json remove(Json& document, const std::string& pointer) {
  const auto tokens = tokens_of(pointer);
  if (tokens.empty()) return std::exchange(document, Json());
  Json& parent = resolve(document, tokens, tokens.size() - 1);
  Json removed = child(parent, tokens.back());
  if (parent.is_object())
    parent.erase(tokens.back());
  else
    parent.erase(index_of(tokens.back(), parent.size() - 1));
  return removed;
}

Json& get(Json& document, const std::string& pointer) {
  const auto tokens = tokens_of(pointer);
  return resolve(document, tokens, tokens.size());
}

const Json& member(const Json& op, const char* key) {
  if (!op.contains(key)) throw PatchError(std::string("operation without ") + key);
  return op[key];
}

void apply(Json& document, const Json& op) {
  const std::string name = member(op, "op"), path = member(op, "path");
  if (name == "add") return add(document, path, member(op, "value"));
  if (name == "remove") return void(remove(document, path));
  if (name == "replace") {
    get(document, path) = member(op, "value");
  } else if (name == "move") {
    const std::string from = member(op, "from");
    if (path.starts_with(from + '/')) throw PatchError("cannot move a value into itself");
    add(document, path, remove(document, from));
  } else if (name == "copy") {
    add(document, path, Json(get(document, member(op, "from"))));
  } else if (name == "test") {
    if (get(document, path) != member(op, "value")) throw PatchError("test failed at " + path);
  } else {
    throw PatchError("unknown operation " + name);
  }
}

}  // namespace

Json apply_rfc6902(Json document, const Json& patch) {
  if (!patch.is_array()) throw PatchError("a patch is a list");
  for (const auto& op : patch) apply(document, op);
  return document;
}

}  // namespace nezha::test
