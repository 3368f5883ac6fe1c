#include "cache/index/head_record.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "nezha/base/limits.h"

namespace nezha::cache {
namespace {

constexpr uint32_t kHeadVersion = 1;
constexpr int64_t kTimeMsMax = 9'000'000'000'000;  // fits the clock's nanoseconds

class Writer {
 public:
  template <class T>
  void number(T value) {
    static_assert(std::is_integral_v<T>);
    char raw[sizeof value];
    std::memcpy(raw, &value, sizeof value);
    out_.append(raw, sizeof raw);
  }
  void text(std::string_view value) {
    number(static_cast<uint32_t>(value.size()));
    out_.append(value);
  }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

// Reads until something does not fit; from then on it gives zeros and says so.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : left_(bytes) {}
  template <class T>
  T number() {
    T value{};
    if (left_.size() < sizeof value) return fail_with(value);
    std::memcpy(&value, left_.data(), sizeof value);
    left_.remove_prefix(sizeof value);
    return value;
  }
  std::string_view text() {
    const auto size = number<uint32_t>();
    if (size > left_.size()) return fail_with(std::string_view());
    const std::string_view value = left_.substr(0, size);
    left_.remove_prefix(size);
    return value;
  }
  bool good() const { return good_; }
  bool at_end() const { return left_.empty(); }

 private:
  template <class T>
  T fail_with(T value) {
    good_ = false;
    left_ = {};
    return value;
  }
  std::string_view left_;
  bool good_ = true;
};

int64_t seconds(http::Seconds value) { return value.count(); }

enum Flags : uint8_t { kHasTotal = 1, kExplicit = 2, kHeuristic = 4 };

}  // namespace

std::string encode_head(const StoredHead& head) {
  Writer out;
  out.number(kHeadVersion);
  out.number(static_cast<uint16_t>(head.status));
  out.number(static_cast<uint8_t>(head.credentials));
  const int flags = (head.total_bytes ? kHasTotal : 0) | (head.lifetime.explicit_ ? kExplicit : 0) |
                    (head.lifetime.heuristic ? kHeuristic : 0);
  out.number(static_cast<uint8_t>(flags));
  out.number(head.total_bytes.value_or(0));
  out.number(static_cast<int64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(head.response_time.time_since_epoch()).count()));
  out.number(seconds(head.lifetime.fresh_for));
  out.number(seconds(head.lifetime.initial_age));
  out.text(head.key.path);
  out.text(head.key.query);
  out.number(static_cast<uint32_t>(head.selecting.size()));
  for (const auto& [name, value] : head.selecting) out.text(name), out.text(value);
  out.number(static_cast<uint32_t>(head.fields.size()));
  head.fields.for_each([&](std::string_view name, std::string_view value) { out.text(name), out.text(value); });
  return out.take();
}

Result<StoredHeadPtr> decode_head(std::string_view bytes, uint64_t generation) {
  const auto damaged = [] { return fail(Remedy::kGiveUp, "a stored head is damaged or of another version"); };
  Reader in(bytes);
  if (in.number<uint32_t>() != kHeadVersion) return damaged();
  auto head = std::make_shared<StoredHead>();
  head->generation = generation;
  head->status = in.number<uint16_t>();
  const auto credentials = in.number<uint8_t>();
  const auto flags = in.number<uint8_t>();
  const auto total_bytes = in.number<uint64_t>();
  if (credentials > static_cast<uint8_t>(Credentials::kSignedUrl) || head->status < 200 || head->status > 599)
    return damaged();
  head->credentials = static_cast<Credentials>(credentials);
  if (flags & kHasTotal) head->total_bytes = total_bytes;
  const int64_t response_ms = std::clamp<int64_t>(in.number<int64_t>(), 0, kTimeMsMax);
  head->response_time = WallTime(std::chrono::milliseconds(response_ms));
  head->lifetime.explicit_ = (flags & kExplicit) != 0;
  head->lifetime.heuristic = (flags & kHeuristic) != 0;
  head->lifetime.fresh_for = http::Seconds(in.number<int64_t>());
  head->lifetime.initial_age = http::Seconds(in.number<int64_t>());
  head->key.path = in.text();
  head->key.query = in.text();
  for (uint32_t left = in.number<uint32_t>(); left > 0 && in.good(); --left) {
    const auto name = in.text();
    head->selecting.emplace_back(name, in.text());
  }
  for (uint32_t left = in.number<uint32_t>(); left > 0 && in.good(); --left) {
    const auto name = in.text();
    const auto value = in.text();
    if (in.good()) head->fields.add(name, value);
  }
  if (!in.good() || !in.at_end()) return damaged();
  complete(*head);
  return StoredHeadPtr(std::move(head));
}

}  // namespace nezha::cache
