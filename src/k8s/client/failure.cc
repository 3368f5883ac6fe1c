#include "src/k8s/client/failure.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace nezha::k8s {
namespace {

constexpr size_t kQuotedBytesMax = 500;

// The `message` of a Status object, or the beginning of whatever came, on one line.
std::string reason_in(std::string_view body) {
  const auto json = nlohmann::json::parse(body, nullptr, false);
  std::string text(body.substr(0, kQuotedBytesMax));
  if (json.is_object()) {
    const auto message = json.find("message");
    if (message != json.end() && message->is_string()) text = message->get<std::string>().substr(0, kQuotedBytesMax);
  }
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20; }, ' ');
  return text;
}

}  // namespace

Remedy remedy_of_status(int status) {
  if (status == 404) return Remedy::kAbsent;
  if (status == 403) return Remedy::kGiveUp;
  if (status == 401 || status == 408 || status == 409 || status == 410 || status == 429) return Remedy::kRetryLater;
  return status >= 400 && status < 500 ? Remedy::kFixInput : Remedy::kRetryLater;
}

Error error_of_answer(std::string_view call, int status, std::string_view body) {
  std::string message(call);
  message += ": " + std::to_string(status) + " " + reason_in(body);
  if (status == 401) message += " (the token file's content was not accepted)";
  if (status == 403) message += " (grant this in the Role or ClusterRole of the service account)";
  return Error{remedy_of_status(status), std::move(message)};
}

bool is_already_exists(std::string_view body) {
  const auto json = nlohmann::json::parse(body, nullptr, false);
  if (!json.is_object()) return false;
  const auto reason = json.find("reason");
  return reason != json.end() && *reason == "AlreadyExists";
}

}  // namespace nezha::k8s
