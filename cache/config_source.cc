#include "cache/config_source.h"

#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <mutex>
#include <stop_token>
#include <thread>

#include "nezha/base/limits.h"
#include "nezha/base/text.h"
#include "nezha/config/parse.h"
#include "nezha/k8s/configmap_watch.h"

namespace nezha::cache {
namespace {

constexpr std::chrono::seconds kLookEvery{1};
constexpr const char* kDataKey = "config.yaml";

// What changes when a file is written, replaced, or a mounted ConfigMap's link is switched.
struct FileMark {
  timespec modified{};
  ino_t inode = 0;
  off_t size = 0;
  bool operator==(const FileMark& other) const {
    return modified.tv_sec == other.modified.tv_sec && modified.tv_nsec == other.modified.tv_nsec &&
           inode == other.inode && size == other.size;
  }
};

FileMark mark_of(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return {};
  return {info.st_mtim, info.st_ino, info.st_size};
}

class FollowingSource final : public ConfigSource {
 public:
  FollowingSource(std::string path, config::Settings settings, std::optional<ConfigMapName> configmap,
                  RouteStore& routes, obs::Log& log, obs::Metrics& metrics)
      : path_(std::move(path)),
        configmap_(std::move(configmap)),
        routes_(routes),
        log_(log),
        errors_(metrics.counter("nezha_cache_config_errors_total", "Configuration changes that were refused")),
        file_settings_(std::move(settings)) {}

  ~FollowingSource() override {
    watch_.reset();
    thread_.request_stop();
    wake_.notify_all();
  }

  Result<void> start() {
    if (configmap_) {
      auto server = k8s::in_cluster_api_server();
      if (!server) {
        return fail(server.error().remedy,
                    "--configmap: " + server.error().message + "; run in a pod, or without --configmap");
      }
      waiting_ = true;
      watch_ = std::make_unique<k8s::ConfigMapWatch>(
          std::move(server.value()), configmap_->name_space, configmap_->name,
          [this](std::optional<k8s::ConfigMapWatch::Data> data) { on_configmap(std::move(data)); }, log_);
    } else {
      std::lock_guard lock(mutex_);
      publish();
    }
    if (path_.empty()) return ok();
    mark_ = mark_of(path_);
    thread_ = std::jthread([this](std::stop_token stop) { follow_file(stop); });
    return ok();
  }

  std::string not_ready_because() const override {
    std::lock_guard lock(mutex_);
    if (!waiting_) return {};
    return "waiting for the Kubernetes API to answer about ConfigMap " + configmap_->name_space.get() + "/" +
           configmap_->name;
  }

 private:
  void follow_file(std::stop_token stop) {
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
      wake_.wait_for(lock, kLookEvery, [&] { return stop.stop_requested(); });
      const FileMark mark = mark_of(path_);
      if (stop.stop_requested() || mark == mark_) continue;
      mark_ = mark;
      auto loaded = load_config_file(path_);
      if (!loaded) {
        refuse(loaded.error().message);
        continue;
      }
      file_settings_ = std::move(loaded.value());
      if (!waiting_) publish();
    }
  }

  void on_configmap(std::optional<k8s::ConfigMapWatch::Data> data) {
    std::lock_guard lock(mutex_);
    waiting_ = false;
    if (!data) {
      configmap_settings_.emplace();  // deleted or not there yet: no upstreams
      return publish();
    }
    const std::string source = configmap_->name + "/" + kDataKey;
    const auto text = data->find(kDataKey);
    if (text == data->end()) return refuse(source + ": the ConfigMap has no such key");
    auto parsed = config::parse_settings(text->second, source);
    if (!parsed) return refuse(parsed.error().message);
    configmap_settings_ = std::move(parsed.value());
    publish();
  }

  // REQUIRES: mutex_ held.
  void refuse(const std::string& message) {
    errors_.add();
    log_.error("configuration refused, the last good one stays in force", {{"reason", message}});
    if (configmap_ && !configmap_settings_) {
      configmap_settings_.emplace();
      publish();
    }
  }

  void publish() {
    auto settings = std::make_shared<config::Settings>(file_settings_);
    if (configmap_settings_) settings->upstreams = configmap_settings_->upstreams;
    log_.info("configuration in force", {{"upstreams", std::to_string(settings->upstreams.size())}});
    routes_.publish(std::make_shared<const Routes>(std::move(settings)));
  }

  const std::string path_;
  const std::optional<ConfigMapName> configmap_;
  RouteStore& routes_;
  obs::Log& log_;
  obs::Counter& errors_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  config::Settings file_settings_;
  std::optional<config::Settings> configmap_settings_;
  bool waiting_ = false;
  FileMark mark_;
  std::unique_ptr<k8s::ConfigMapWatch> watch_;
  std::jthread thread_;
};

}  // namespace

std::optional<ConfigMapName> parse_configmap_name(std::string_view text) {
  const auto parts = split(text, '/');
  if (parts.size() != 2 || !is_dns1123_subdomain(parts[0]) || !is_dns1123_subdomain(parts[1])) return std::nullopt;
  return ConfigMapName{Namespace(std::string(parts[0])), std::string(parts[1])};
}

Result<config::Settings> load_config_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const auto unreadable = [&] {
    return fail(Remedy::kFixInput, path + ": cannot be read (" + std::strerror(errno) + "); give a file with --config");
  };
  if (!file) return unreadable();
  std::string text;
  text.resize(limits::kConfigBytesMax + 1);
  if (!file.read(text.data(), static_cast<std::streamsize>(text.size())) && !file.eof()) return unreadable();
  text.resize(static_cast<size_t>(file.gcount()));
  return config::parse_settings(text, path);
}

Result<config::Settings> load_config_variable(const std::string& name) {
  const char* text = std::getenv(name.c_str());
  if (!text) return fail(Remedy::kFixInput, "--config-env: the environment has no variable " + name + "; set it");
  return config::parse_settings(text, name);
}

Result<std::unique_ptr<ConfigSource>> follow_configuration(std::string path, config::Settings settings,
                                                           std::optional<ConfigMapName> configmap, RouteStore& routes,
                                                           obs::Log& log, obs::Metrics& metrics) {
  auto source = std::make_unique<FollowingSource>(std::move(path), std::move(settings), std::move(configmap), routes,
                                                  log, metrics);
  NEZHA_TRY(source->start());
  return std::unique_ptr<ConfigSource>(std::move(source));
}

}  // namespace nezha::cache
