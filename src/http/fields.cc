#include "nezha/http/fields.h"

#include "nezha/base/text.h"

namespace nezha::http {

void Fields::clear() {
  text_.clear();
  entries_.clear();
}

void Fields::add(std::string_view name, std::string_view value) {
  entries_.push_back(
      {static_cast<uint32_t>(text_.size()), static_cast<uint32_t>(name.size()), static_cast<uint32_t>(value.size())});
  text_.append(name);
  text_.append(value);
}

void Fields::remove(std::string_view name) {
  std::erase_if(entries_, [&](const Entry& entry) {
    return iequals(std::string_view(text_).substr(entry.offset, entry.name_size), name);
  });
}

Fields::Field Fields::operator[](size_t index) const {
  const Entry& entry = entries_[index];
  const std::string_view text(text_);
  return {text.substr(entry.offset, entry.name_size), text.substr(entry.offset + entry.name_size, entry.value_size)};
}

std::optional<std::string_view> Fields::find(std::string_view name) const {
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].name_size != name.size()) continue;
    const Field field = (*this)[i];
    if (iequals(field.name, name)) return field.value;
  }
  return std::nullopt;
}

size_t Fields::count(std::string_view name) const {
  size_t total = 0;
  for_each([&](std::string_view field, std::string_view) { total += iequals(field, name); });
  return total;
}

std::string Fields::joined(std::string_view name) const {
  std::string out;
  bool first = true;
  for_each([&](std::string_view field, std::string_view value) {
    if (!iequals(field, name)) return;
    if (!first) out += ", ";
    first = false;
    out += value;
  });
  return out;
}

std::vector<std::string_view> list_members(std::string_view value) {
  std::vector<std::string_view> members;
  bool quoted = false;
  size_t begin = 0;
  for (size_t i = 0; i <= value.size(); ++i) {
    if (i < value.size()) {
      if (quoted && value[i] == '\\') {
        ++i;
        continue;
      }
      if (value[i] == '"') quoted = !quoted;
      if (quoted || value[i] != ',') continue;
    }
    const auto member = trim(value.substr(begin, std::min(i, value.size()) - begin));
    if (!member.empty()) members.push_back(member);
    begin = i + 1;
    if (i >= value.size()) break;
  }
  if (begin < value.size()) {  // a trailing backslash inside an unterminated quoted string skipped the end
    const auto member = trim(value.substr(begin));
    if (!member.empty()) members.push_back(member);
  }
  return members;
}

std::vector<std::string_view> list_members(const Fields& fields, std::string_view name) {
  std::vector<std::string_view> members;
  fields.for_each([&](std::string_view field, std::string_view value) {
    if (!iequals(field, name)) return;
    for (const auto member : list_members(value)) members.push_back(member);
  });
  return members;
}

}  // namespace nezha::http
