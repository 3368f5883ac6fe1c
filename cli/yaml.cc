#include "cli/yaml.h"

#include <yaml-cpp/yaml.h>

#include <nlohmann/json.hpp>

#include "cli/yaml_scalar.h"

namespace nezha::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kNestingMax = 200;

// Without anchors a byte of text gives one value at most; with them a file may repeat itself, but not without end.
size_t nodes_max(std::string_view text) { return 10'000 + 4 * text.size(); }

// Thrown and caught within this file: the tree is walked recursively.
struct Refused {
  std::string message;
};

std::string at(const YAML::Node& node, const std::string& what) {
  return "line " + std::to_string(node.Mark().line + 1) + ": " + what;
}

class Converter {
 public:
  explicit Converter(size_t nodes_limit) : nodes_left_(nodes_limit) {}

  Json convert(const YAML::Node& node, size_t depth = 0) {
    if (depth > kNestingMax) throw Refused{at(node, "nested deeper than " + std::to_string(kNestingMax) + " levels")};
    if (nodes_left_-- == 0) throw Refused{"the file has too many values; do its anchors repeat each other?"};
    switch (node.Type()) {
      case YAML::NodeType::Scalar:
        return scalar(node);
      case YAML::NodeType::Sequence:
        return sequence(node, depth);
      case YAML::NodeType::Map:
        return mapping(node, depth);
      default:
        return nullptr;
    }
  }

 private:
  // yaml-cpp marks a plain scalar by the tag "?", a quoted one by "!".
  static Json scalar(const YAML::Node& node) {
    const std::string& text = node.Scalar();
    const std::string& tag = node.Tag();
    if (tag == "!" || tag == "tag:yaml.org,2002:str") return text;
    Json value = plain_value(text);
    if (value.is_discarded()) throw Refused{at(node, text + " has no place in a Kubernetes object")};
    return value;
  }

  Json sequence(const YAML::Node& node, size_t depth) {
    Json list = Json::array();
    for (const auto& item : node) list.push_back(convert(item, depth + 1));
    return list;
  }

  Json mapping(const YAML::Node& node, size_t depth) {
    Json map = Json::object();
    std::vector<Json> merged;
    for (const auto& member : node) {
      const YAML::Node &key = member.first, &value = member.second;
      if (!key.IsScalar()) throw Refused{at(key, "a key must be a single word or string")};
      if (key.Tag() == "?" && key.Scalar() == "<<") {
        merged.push_back(convert(value, depth + 1));
        continue;
      }
      if (map.contains(key.Scalar())) throw Refused{at(key, "the key \"" + key.Scalar() + "\" stands here twice")};
      map[key.Scalar()] = convert(value, depth + 1);
    }
    for (const auto& from : merged) merge(node, from, map);
    return map;
  }

  // `<<:` brings a mapping, or a list of them, whose keys stand behind those of the mapping itself.
  static void merge(const YAML::Node& node, const Json& from, Json& map) {
    if (from.is_array()) {
      for (const auto& item : from) merge(node, item, map);
      return;
    }
    if (!from.is_object()) throw Refused{at(node, "<< must bring a mapping")};
    for (const auto& [key, value] : from.items())
      if (!map.contains(key)) map[key] = value;
  }

  size_t nodes_left_;
};

// A literal block keeps lines as they are; yaml-cpp writes it right when the text ends in exactly one line end.
bool fits_literal(const std::string& text) {
  if (text.size() < 2 || text.back() != '\n' || text[text.size() - 2] == '\n') return false;
  if (text[0] == ' ' || text[0] == '\n') return false;
  for (const char c : text)
    if ((static_cast<unsigned char>(c) < ' ' && c != '\n') || static_cast<unsigned char>(c) >= 0x7F) return false;
  return text.find(" \n") == std::string::npos;
}

void emit(YAML::Emitter& out, const Json& value);

void emit_string(YAML::Emitter& out, const std::string& text) {
  if (is_plain_string(text))
    out << text;
  else if (fits_literal(text))
    out << YAML::Literal << text;
  else
    out << YAML::DoubleQuoted << text;
}

void emit_map(YAML::Emitter& out, const Json& map) {
  out << YAML::BeginMap;
  for (const auto& [key, value] : map.items()) {
    out << YAML::Key;
    if (is_plain_string(key))
      out << key;
    else
      out << YAML::DoubleQuoted << key;
    out << YAML::Value;
    emit(out, value);
  }
  out << YAML::EndMap;
}

void emit(YAML::Emitter& out, const Json& value) {
  if (value.is_string()) return emit_string(out, value.get_ref<const std::string&>());
  if (value.is_object() && !value.empty()) return emit_map(out, value);
  if (value.is_array() && !value.empty()) {
    out << YAML::BeginSeq;
    for (const auto& item : value) emit(out, item);
    out << YAML::EndSeq;
    return;
  }
  if (value.is_object())
    out << YAML::Flow << YAML::BeginMap << YAML::EndMap;
  else if (value.is_array())
    out << YAML::Flow << YAML::BeginSeq << YAML::EndSeq;
  else if (value.is_null())
    out << YAML::Null;
  else if (value.is_boolean())
    out << value.get<bool>();
  else
    out << value.dump();  // JSON's numbers are YAML's
}

}  // namespace

Result<std::vector<Json>> read_yaml(std::string_view text) {
  try {
    std::vector<Json> documents;
    Converter converter(nodes_max(text));
    for (const auto& node : YAML::LoadAll(std::string(text)))
      if (Json document = converter.convert(node); !document.is_null()) documents.push_back(std::move(document));
    return documents;
  } catch (const Refused& refused) {
    return fail(Remedy::kFixInput, refused.message);
  } catch (const YAML::Exception& e) {
    return fail(Remedy::kFixInput, "line " + std::to_string(e.mark.line + 1) + ": not YAML: " + e.msg);
  }
}

std::string write_yaml(const Json& document) {
  YAML::Emitter out;
  emit(out, document);
  return std::string(out.c_str()) + '\n';
}

}  // namespace nezha::cli
