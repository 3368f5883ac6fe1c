#include "nezha/k8s/configmap_watch.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "nezha/k8s/watch.h"

namespace nezha::k8s {
namespace {

// `data` of a ConfigMap's JSON; values that are no strings cannot occur and are skipped.
ConfigMapWatch::Data data_of(const std::string& text) {
  ConfigMapWatch::Data data;
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return data;
  const auto member = json.find("data");
  if (member == json.end() || !member->is_object()) return data;
  for (const auto& [key, value] : member->items()) {
    if (value.is_string()) data[key] = value.get<std::string>();
  }
  return data;
}

// Snapshots -> changes of the one ConfigMap's data.
class OneConfigMap {
 public:
  explicit OneConfigMap(ConfigMapWatch::OnChange on_change) : on_change_(std::move(on_change)) {}

  void operator()(const Snapshot& snapshot) {
    std::optional<ConfigMapWatch::Data> data;
    if (!snapshot.empty()) data = data_of(snapshot.begin()->second->json);
    if (known_ && data == last_) return;
    known_ = true;
    last_ = data;
    on_change_(std::move(data));
  }

 private:
  ConfigMapWatch::OnChange on_change_;
  std::optional<ConfigMapWatch::Data> last_;
  bool known_ = false;
};

}  // namespace

ConfigMapWatch::ConfigMapWatch(ApiServer server, Namespace name_space, std::string name, OnChange on_change,
                               obs::Log& log) {
  Scope scope{.resource = {"", "v1", "configmaps"},
              .name_space = std::move(name_space),
              .label_selector = {},
              .field_selector = "metadata.name=" + name};
  watch_ = std::make_unique<Watch>(std::move(server), std::move(scope), WatchOptions{},
                                   OneConfigMap(std::move(on_change)), log);
}
ConfigMapWatch::~ConfigMapWatch() = default;
void ConfigMapWatch::stop() { watch_->stop(); }

}  // namespace nezha::k8s
