#include "cache/credentials/approvals.h"

#include <algorithm>

#include "nezha/base/check.h"
#include "nezha/s3/sha256.h"

namespace nezha::cache {
namespace {

constexpr size_t kWordsPerPathMax = 64;

}  // namespace

Approvals::Approvals(size_t count_max) : shard_count_max_(std::max<size_t>(1, count_max / kShards)) {
  for (auto& shard : shards_) shard.ended.fill(SteadyTime::min());
}

Approvals::Subject Approvals::subject(std::string_view reader, std::string_view path,
                                      std::initializer_list<std::string_view> circumstances) {
  std::string text;
  const auto add = [&](std::string_view part) { text.append(std::to_string(part.size())).append(":").append(part); };
  add(reader);
  add(path);
  for (const auto part : circumstances) add(part);
  const std::string hash = s3::sha256_hex(text);
  Subject out;
  NEZHA_CHECK(hash.size() >= out.token.size(), "SHA-256 has 64 digits");
  std::copy_n(hash.begin(), out.token.size(), out.token.begin());
  out.reader = std::hash<std::string_view>()(reader);
  out.path = std::hash<std::string_view>()(path);
  return out;
}

void Approvals::note(const Subject& subject, const std::string& etag, SteadyTime asked_at) {
  Shard& shard = shard_of(subject.path);
  std::lock_guard lock(shard.mutex);
  if (asked_at <= shard.ended_at(subject.path)) return;
  auto& words = shard.words[subject.path];
  const auto known =
      std::find_if(words.begin(), words.end(), [&](const Word& word) { return word.subject.token == subject.token; });
  if (known != words.end()) {
    if (known->etag != etag || known->noted < asked_at) *known = {subject, etag, asked_at};
    return;
  }
  if (words.size() >= kWordsPerPathMax) {
    words.erase(words.begin());
    --shard.count;
  }
  words.push_back({subject, etag, asked_at});
  if (++shard.count <= shard_count_max_) return;
  shard.words.clear();
  shard.count = 0;
}

bool Approvals::holds(const Subject& subject, const std::string& etag, SteadyTime now,
                      std::chrono::seconds age_max) const {
  const Shard& shard = shard_of(subject.path);
  std::lock_guard lock(shard.mutex);
  const auto at = shard.words.find(subject.path);
  return at != shard.words.end() && std::any_of(at->second.begin(), at->second.end(), [&](const Word& word) {
           return word.subject.token == subject.token && word.etag == etag && now - word.noted < age_max;
         });
}

void Approvals::refuse(const Subject& subject, SteadyTime now) {
  Shard& shard = shard_of(subject.path);
  std::lock_guard lock(shard.mutex);
  shard.ended_at(subject.path) = now;
  if (const auto at = shard.words.find(subject.path); at != shard.words.end())
    shard.count -= std::erase_if(at->second, [&](const Word& word) { return word.subject.reader == subject.reader; });
}

void Approvals::end(std::string_view path, SteadyTime now) {
  const size_t hash = std::hash<std::string_view>()(path);
  Shard& shard = shard_of(hash);
  std::lock_guard lock(shard.mutex);
  shard.ended_at(hash) = now;
  if (const auto at = shard.words.find(hash); at != shard.words.end()) {
    shard.count -= at->second.size();
    shard.words.erase(at);
  }
}

void Approvals::end_all(SteadyTime now) {
  for (auto& shard : shards_) {
    std::lock_guard lock(shard.mutex);
    shard.ended.fill(now);
    shard.words.clear();
    shard.count = 0;
  }
}

}  // namespace nezha::cache
