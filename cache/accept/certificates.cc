#include "cache/accept/certificates.h"

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
#include <string>
#include <thread>
#include <vector>

#include "cache/file_mark.h"
#include "nezha/base/limits.h"
#include "nezha/base/text.h"
#include "nezha/pki/certificates.h"

namespace nezha::cache {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kLookEvery{1};
constexpr const char* kKeyOfAll = "tls.key";

using Mark = std::array<FileMark, 2>;

Mark mark_of(const config::TlsSettings::Pair& pair) {
  return {mark_of_file(pair.certificate_path), mark_of_file(pair.key_path)};
}

Result<std::string> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(limits::kCertificateBytesMax + 1, '\0');
  if (!file.read(text.data(), static_cast<std::streamsize>(text.size())) && !file.eof())
    return fail(Remedy::kFixInput, path + ": cannot be read (" + std::strerror(errno) + ")");
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > limits::kCertificateBytesMax)
    return fail(Remedy::kFixInput, path + ": is too large for a PEM file of certificates");
  return text;
}

struct Loaded {
  std::shared_ptr<const net::TlsServer> server;
  std::vector<std::string> names;  // lower case
  pki::Validity validity;
};

Result<Loaded> load(const config::TlsSettings::Pair& pair) {
  NEZHA_TRY(const std::string chain, read_file(pair.certificate_path));
  NEZHA_TRY(const std::string key, read_file(pair.key_path));
  const auto because = [&](const Error& error) {
    return fail(Remedy::kFixInput, pair.certificate_path + " with " + pair.key_path + ": " + error.message);
  };
  auto server = net::make_tls_server(chain, key);
  if (!server) return because(server.error());
  auto info = pki::inspect(chain);
  if (!info) return because(info.error());
  if (info.value().dns_names.empty())
    return fail(Remedy::kFixInput, pair.certificate_path + ": the certificate names no host (subjectAltName)");
  Loaded out{std::move(server.value()), {}, info.value().validity};
  for (const auto& name : info.value().dns_names) out.names.push_back(to_lower(name));
  return out;
}

bool covers(const Loaded& loaded, std::string_view host) {
  const size_t dot = std::min(host.find('.'), host.size());
  return std::any_of(loaded.names.begin(), loaded.names.end(), [&](std::string_view name) {
    // A wildcard stands for one whole label (RFC 9525 §6.3).
    return name == host || (name.starts_with("*.") && dot > 0 && name.substr(1) == host.substr(dot));
  });
}

class FollowedCertificates final : public Certificates {
 public:
  FollowedCertificates(const config::TlsSettings& settings, const Clock& clock, obs::Log& log, obs::Metrics& metrics)
      : directory_(settings.directory),
        clock_(clock),
        log_(log),
        errors_(
            metrics.counter("nezha_cache_certificate_errors_total", "Changed certificate files that were refused")) {
    for (const auto& pair : settings.certificates) entries_.push_back({pair, {}, {}});
  }
  ~FollowedCertificates() override {
    thread_.request_stop();
    wake_.notify_all();
  }

  Result<void> start() {
    for (size_t i = 0; i < entries_.size(); ++i) {
      entries_[i].mark = mark_of(entries_[i].pair);
      auto loaded = load(entries_[i].pair);
      if (!loaded)
        return fail(Remedy::kFixInput, "tls.certificates[" + std::to_string(i) + "]: " + loaded.error().message);
      entries_[i].loaded = std::move(loaded.value());
    }
    look_into_directory();
    if (!entries_.empty() || !directory_.empty())
      thread_ = std::jthread([this](std::stop_token stop) { follow(stop); });
    return ok();
  }

  std::shared_ptr<const net::TlsServer> find(std::string_view host) const override {
    const WallTime now = clock_.wall();
    std::lock_guard lock(mutex_);
    const auto serves = [&](const Entry& entry) {
      const auto& validity = entry.loaded.validity;
      return entry.loaded.server && now >= validity.not_before && now <= validity.not_after &&
             covers(entry.loaded, host);
    };
    for (const auto& entry : entries_)
      if (serves(entry)) return entry.loaded.server;
    for (const auto& [name, entry] : found_)
      if (serves(entry)) return entry.loaded.server;
    return nullptr;
  }

 private:
  struct Entry {
    config::TlsSettings::Pair pair;
    Mark mark;
    Loaded loaded;  // no server: never a good one
  };

  // The thread alone changes entries, so it may read them without the mutex.
  void follow(const std::stop_token& stop) {
    std::mutex unused;
    while (!stop.stop_requested()) {
      {
        std::unique_lock lock(unused);
        wake_.wait_for(lock, stop, kLookEvery, [] { return false; });
      }
      for (auto& entry : entries_) {
        if (stop.stop_requested()) return;
        read_again(entry);
      }
      look_into_directory();
    }
  }

  void read_again(Entry& entry) {
    const Mark mark = mark_of(entry.pair);
    if (mark == entry.mark) return;
    // The mark is from before the files are read: one that changes meanwhile is read again.
    entry.mark = mark;
    auto loaded = load(entry.pair);
    if (!loaded) {
      errors_.add();
      log_.error("certificate refused, the last good one stays in force", {{"reason", loaded.error().message}});
      return;
    }
    log_.info("certificate read", {{"path", entry.pair.certificate_path}});
    std::lock_guard lock(mutex_);
    entry.loaded = std::move(loaded.value());
  }

  void look_into_directory() {
    if (directory_.empty()) return;
    std::set<std::string> seen;
    std::error_code error;
    for (fs::directory_iterator at(directory_, error), end; !error && at != end; at.increment(error)) {
      const std::string name = at->path().filename();
      if (name.ends_with(".crt") && !name.starts_with('.') && seen.size() < limits::kCertificatesMax) seen.insert(name);
    }
    // That nothing was seen does not mean that nothing is there.
    if (error && error != std::errc::no_such_file_or_directory) return;
    {
      std::lock_guard lock(mutex_);
      std::erase_if(found_, [&](const auto& entry) { return !seen.contains(entry.first); });
      const fs::path folder(directory_);
      for (const auto& name : seen) {
        found_.try_emplace(name, Entry{{(folder / name).string(), (folder / kKeyOfAll).string()}, {}, {}});
      }
    }
    for (auto& [name, entry] : found_) read_again(entry);
  }

  const std::string directory_;
  const Clock& clock_;
  obs::Log& log_;
  obs::Counter& errors_;
  mutable std::mutex mutex_;
  std::condition_variable_any wake_;
  std::vector<Entry> entries_;
  std::map<std::string, Entry> found_;  // in the directory, by file name
  std::jthread thread_;
};

}  // namespace

Result<std::unique_ptr<Certificates>> load_certificates(const config::TlsSettings& settings, const Clock& clock,
                                                        obs::Log& log, obs::Metrics& metrics) {
  auto out = std::make_unique<FollowedCertificates>(settings, clock, log, metrics);
  NEZHA_TRY(out->start());
  return std::unique_ptr<Certificates>(std::move(out));
}

}  // namespace nezha::cache
