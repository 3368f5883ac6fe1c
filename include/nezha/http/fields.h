// Fields: the header section of one message, in wire order, names and values byte for byte as received.
// One text block and a table of offsets: no allocation per field, cleared and reused from message to message.
// Look-ups ignore case (RFC 9110 §5.1). Repeated fields stay separate lines.
// Threads: a value. Views returned are valid until the next non-const call or destruction.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nezha::http {

class Fields {
 public:
  struct Field {
    std::string_view name;
    std::string_view value;
  };

  void clear();
  void add(std::string_view name, std::string_view value);
  void remove(std::string_view name);  // every line of that name
  void set(std::string_view name, std::string_view value) { remove(name), add(name, value); }

  size_t size() const { return entries_.size(); }
  Field operator[](size_t index) const;
  bool has(std::string_view name) const { return find(name).has_value(); }
  // The first line of that name.
  std::optional<std::string_view> find(std::string_view name) const;
  size_t count(std::string_view name) const;
  // All lines of that name joined by ", " (RFC 9110 §5.3); empty when there is none.
  std::string joined(std::string_view name) const;
  // Calls visit(name, value) for every line in order.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (size_t i = 0; i < entries_.size(); ++i) {
      const Field field = (*this)[i];
      visit(field.name, field.value);
    }
  }
  // Bytes held, for accounting.
  size_t memory_bytes() const { return text_.capacity() + entries_.capacity() * sizeof(Entry); }

 private:
  struct Entry {
    uint32_t offset;
    uint32_t name_size;
    uint32_t value_size;
  };
  std::string text_;
  std::vector<Entry> entries_;
};

// The comma-separated members of a list-valued field, over all its lines, trimmed, empty ones dropped.
// Quoted strings are kept whole. Views borrow from `fields`.
std::vector<std::string_view> list_members(const Fields& fields, std::string_view name);
std::vector<std::string_view> list_members(std::string_view value);

}  // namespace nezha::http
