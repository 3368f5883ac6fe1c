#include "cache/credentials/key_ring.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <stop_token>
#include <thread>
#include <utility>

#include "cache/file_mark.h"
#include "nezha/base/text.h"

namespace nezha::cache {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kLookEvery{1};
constexpr size_t kFileBytesMax = 1024 * 1024;  // that of a whole Secret
constexpr std::array<const char*, 5> kFiles = {"accessKeyId", "secretAccessKey", "sessionToken", "readers", "region"};

using Mark = std::array<FileMark, kFiles.size()>;

Mark mark_of(const std::string& folder) {
  Mark mark;
  for (size_t i = 0; i < kFiles.size(); ++i) mark[i] = mark_of_file(folder + "/" + kFiles[i]);
  return mark;
}

// Its bytes, empty when there is no such file. They end up in memory that is wiped.
Result<s3::Hidden> read_file(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 && (errno == ENOENT || errno == ENOTDIR)) return s3::Hidden();
  std::ifstream file;
  file.rdbuf()->pubsetbuf(nullptr, 0);  // no copy stays in a buffer of the stream
  file.open(path, std::ios::binary);
  std::vector<char> bytes(kFileBytesMax + 1);
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  const auto size = static_cast<size_t>(file.gcount());
  const bool bad = file.bad() || !file.is_open();
  s3::Hidden out(std::string_view(bytes.data(), bad ? 0 : size));
  ::explicit_bzero(bytes.data(), bytes.size());
  if (bad) return fail(Remedy::kFixInput, path + ": cannot be read (" + std::strerror(errno) + ")");
  if (size > kFileBytesMax) return fail(Remedy::kFixInput, path + ": is too large for a Secret");
  return out;
}

std::string_view stripped(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(" \t\r\n"), text.size());
  return text.substr(begin, text.find_last_not_of(" \t\r\n") + 1 - begin);
}

bool is_one_word(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < '\x7f'; });
}

Result<std::string_view> word_in(const s3::Hidden& file, const std::string& path) {
  const std::string_view text = stripped(file.reveal());
  if (is_one_word(text)) return text;
  return fail(Remedy::kFixInput,
              path + (text.empty() ? ": is missing or empty" : ": is not one word of visible ASCII"));
}

Result<std::vector<s3::Credentials>> readers_in(const s3::Hidden& file, const std::string& path) {
  std::vector<s3::Credentials> out;
  size_t number = 0;
  for (const auto raw : split(file.reveal(), '\n')) {
    ++number;
    const std::string_view line = stripped(raw);
    if (line.empty() || line.starts_with('#')) continue;
    const size_t space = std::min(line.find_first_of(" \t"), line.size());
    const std::string_view id = line.substr(0, space), secret = stripped(line.substr(space));
    if (!is_one_word(id) || !is_one_word(secret)) {
      return fail(Remedy::kFixInput,
                  path + ": line " + std::to_string(number) + " is not ACCESS_KEY_ID SECRET_ACCESS_KEY");
    }
    out.push_back({s3::AccessKeyId(std::string(id)), s3::SecretKey(secret), {}});
  }
  return out;
}

class FollowedKeyRing final : public KeyRing {
 public:
  FollowedKeyRing(std::string directory, obs::Log& log, obs::Metrics& metrics)
      : directory_(std::move(directory)),
        log_(log),
        errors_(metrics.counter("nezha_cache_credentials_errors_total", "Secrets with S3 keys that were refused")) {
    look();
    thread_ = std::jthread([this](std::stop_token stop) { follow(stop); });
  }
  ~FollowedKeyRing() override {
    thread_.request_stop();
    wake_.notify_all();
  }

  std::shared_ptr<const KeySet> find(const std::string& secret) const override {
    std::lock_guard lock(mutex_);
    const auto at = sets_.find(secret);
    if (at != sets_.end()) return at->second;
    if (missed_.insert(secret).second)
      log_.warning("no keys: readers are asked for at the source each time", {{"secret", secret}});
    return nullptr;
  }

 private:
  void follow(const std::stop_token& stop) {
    std::mutex unused;
    for (;;) {
      {
        std::unique_lock lock(unused);
        wake_.wait_for(lock, stop, kLookEvery, [] { return false; });
      }
      if (stop.stop_requested()) return;
      look();
    }
  }

  void look() {
    std::map<std::string, Mark> seen;
    std::error_code error;
    for (fs::directory_iterator at(directory_, error), end; !error && at != end; at.increment(error)) {
      const std::string name = at->path().filename();
      if (!name.starts_with('.')) seen.emplace(name, mark_of(at->path()));
    }
    const bool absent = error == std::errc::no_such_file_or_directory;
    if (error && !absent) return;  // that nothing was seen does not mean that nothing is there
    for (auto& [name, mark] : seen) {
      const auto known = marks_.find(name);
      if (known != marks_.end() && known->second == mark) continue;
      if (!load(name)) mark = {};  // it may have been the reading: again next time
    }
    for (const auto& [name, mark] : marks_) {
      if (seen.contains(name)) continue;
      log_.info("keys are gone", {{"secret", name}});
      std::lock_guard lock(mutex_);
      sets_.erase(name);
    }
    // The marks are from before the files were read: one that changed meanwhile is read again.
    marks_ = std::move(seen);
  }

  bool load(const std::string& name) {
    auto read = read_key_set(directory_ + "/" + name);
    if (!read) {
      if (std::exchange(errors_said_[name], read.error().message) == read.error().message) return false;
      errors_.add();
      log_.error("keys refused, the last good ones stay in force",
                 {{"secret", name}, {"reason", read.error().message}});
      return false;
    }
    errors_said_.erase(name);
    log_.info("keys read", {{"secret", name}, {"readers", std::to_string(read.value().readers.size())}});
    std::lock_guard lock(mutex_);
    missed_.erase(name);
    sets_[name] = std::make_shared<const KeySet>(std::move(read.value()));
    return true;
  }

  const std::string directory_;
  obs::Log& log_;
  obs::Counter& errors_;
  std::map<std::string, Mark> marks_;  // the thread's own
  std::map<std::string, std::string> errors_said_;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const KeySet>> sets_;
  mutable std::set<std::string> missed_;  // a warning for each is enough
  std::condition_variable_any wake_;
  std::jthread thread_;
};

}  // namespace

const s3::Credentials* KeySet::find(const s3::AccessKeyId& id) const {
  if (own.access_key_id == id) return &own;
  const auto at = std::find_if(readers.begin(), readers.end(),
                               [&](const s3::Credentials& reader) { return reader.access_key_id == id; });
  return at == readers.end() ? nullptr : &*at;
}

Result<KeySet> read_key_set(const std::string& folder) {
  const auto path = [&](const char* name) { return folder + "/" + name; };
  NEZHA_TRY(const s3::Hidden id_file, read_file(path("accessKeyId")));
  NEZHA_TRY(const s3::Hidden secret_file, read_file(path("secretAccessKey")));
  NEZHA_TRY(const s3::Hidden token_file, read_file(path("sessionToken")));
  NEZHA_TRY(const s3::Hidden readers_file, read_file(path("readers")));
  NEZHA_TRY(const s3::Hidden region_file, read_file(path("region")));
  NEZHA_TRY(const std::string_view id, word_in(id_file, path("accessKeyId")));
  NEZHA_TRY(const std::string_view secret, word_in(secret_file, path("secretAccessKey")));
  KeySet out;
  out.own = {s3::AccessKeyId(std::string(id)), s3::SecretKey(secret), {}};
  if (!token_file.empty()) {
    NEZHA_TRY(const std::string_view token, word_in(token_file, path("sessionToken")));
    out.own.session_token = s3::SessionToken(token);
  }
  NEZHA_TRY(out.readers, readers_in(readers_file, path("readers")));
  out.region = "us-east-1";
  if (!region_file.empty()) {
    NEZHA_TRY(out.region, word_in(region_file, path("region")));
  }
  return out;
}

std::unique_ptr<KeyRing> follow_key_ring(std::string directory, obs::Log& log, obs::Metrics& metrics) {
  return std::make_unique<FollowedKeyRing>(std::move(directory), log, metrics);
}

}  // namespace nezha::cache
