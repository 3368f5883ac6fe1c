#include "cli/cluster_status.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "nezha/base/text.h"
#include "nezha/k8s/pod.h"
#include "webhook/annotations.h"
#include "webhook/status.h"

namespace nezha::cli {
namespace {

using Json = nlohmann::json;

constexpr const char* kMissed =
    "missed: no webhook answered when it was created, or no rule was for it; it reads from the real servers";
constexpr const char* kUnreadable = "its annotation nezha.io/status is not Nezha's";

// By every registration (charts/nezha).
const std::set<std::string> kNeverConsidered{"kube-system", "kube-public", "kube-node-lease"};

using Row = std::array<std::string, 6>;  // namespace, pod, mode, rule, hosts, what there is to say

std::string text_at(const Json& object, std::initializer_list<const char*> path) {
  const Json* at = &object;
  for (const char* key : path) {
    if (!at->is_object()) return {};
    const auto found = at->find(key);
    if (found == at->end()) return {};
    at = &*found;
  }
  return at->is_string() ? at->get<std::string>() : std::string();
}

class Reader {
 public:
  Result<ClusterStatus> read(const Json& list) {
    const auto items = list.is_object() ? list.find("items") : list.end();
    if (!list.is_object() || items == list.end() || !items->is_array())
      return fail(Remedy::kFixInput, "no list of objects; make one with: kubectl get namespaces,pods -A -o json");
    for (const Json& item : *items) read_namespace(item);
    if (namespaces_ == 0)
      return fail(Remedy::kFixInput,
                  "the list has no namespaces, which opt in by label; make one with: kubectl get namespaces,pods -A -o "
                  "json");
    for (const Json& item : *items) {
      if (text_at(item, {"kind"}) == "Pod") read_one(item);
    }
    return finish();
  }

 private:
  void read_namespace(const Json& item) {
    if (text_at(item, {"kind"}) != "Namespace") return;
    ++namespaces_;
    if (text_at(item, {"metadata", "labels", webhook::kInjectLabel}) == "true")
      opted_in_.insert(text_at(item, {"metadata", "name"}));
  }

  void read_one(const Json& item) {
    const auto read = k8s::read_pod(item);
    if (!read) return;  // of a kind that no API server stores
    const k8s::Pod& pod = read.value();
    const std::string name_space = text_at(item, {"metadata", "namespace"});
    if (kNeverConsidered.contains(name_space)) return;
    const std::string* inject = pod.label(webhook::kInjectLabel);
    const std::string* annotation = pod.annotation(webhook::kStatusAnnotation);
    const bool asks = inject ? *inject == "true" : opted_in_.contains(name_space);
    if ((!asks && !annotation) || pod.annotation(webhook::kMirrorAnnotation)) return;
    const std::string phase = text_at(item, {"status", "phase"});
    const bool ended = phase == "Succeeded" || phase == "Failed";
    Row row{name_space, pod.name, "-", "-", "0", ""};
    if (annotation)
      describe(*annotation, row);
    else
      row[5] = kMissed;
    if (!annotation && !ended) ++out_.missed;
    if (ended) row[5] = "ended" + (row[5].empty() ? "" : "; " + row[5]);
    ++pods_;
    rows_.push_back(std::move(row));
  }

  void describe(const std::string& annotation, Row& row) {
    const auto status = webhook::read_status(annotation);
    if (!status) {
      row[5] = kUnreadable;
      return;
    }
    const size_t hosts = status->hosts.size() + status->hosts_more;
    if (hosts == 0) ++out_.unaliased;
    row[2] = status->mode;
    row[3] = join(status->rules, ",");
    row[4] = std::to_string(hosts);
    row[5] = join(status->reasons, "; ");
  }

  static std::string join(const std::vector<std::string>& parts, const char* by) {
    std::string out;
    for (const auto& part : parts) out += (out.empty() ? "" : by) + part;
    return out;
  }

  ClusterStatus finish() {
    std::sort(rows_.begin(), rows_.end());
    std::vector<Row> table{{"NAMESPACE", "POD", "MODE", "RULE", "HOSTS", "REMARKS"}};
    table.insert(table.end(), rows_.begin(), rows_.end());
    std::array<size_t, 5> widths{};
    for (const auto& row : table)
      for (size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    if (pods_ > 0) {
      for (const auto& row : table) {
        std::string line;
        for (size_t i = 0; i < widths.size(); ++i) line += row[i] + std::string(widths[i] - row[i].size() + 2, ' ');
        line += row[5];
        out_.text += line.erase(line.find_last_not_of(' ') + 1) + '\n';
      }
      out_.text += '\n';
    }
    out_.text += std::to_string(pods_) + (pods_ == 1 ? " pod" : " pods") + " opted in: " + std::to_string(out_.missed) +
                 " missed, " + std::to_string(out_.unaliased) + " with no host that is read from the cache\n";
    return std::move(out_);
  }

  size_t namespaces_ = 0, pods_ = 0;
  std::set<std::string> opted_in_;
  std::vector<Row> rows_;
  ClusterStatus out_;
};

}  // namespace

Result<ClusterStatus> cluster_status(std::string_view json) {
  const auto list = Json::parse(json, nullptr, false);
  if (list.is_discarded())
    return fail(Remedy::kFixInput, "not JSON; make a list with: kubectl get namespaces,pods -A -o json");
  return Reader().read(list);
}

}  // namespace nezha::cli
