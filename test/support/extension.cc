#include "test/support/extension.h"

#include "webhook/annotations.h"

namespace nezha::test {
namespace {

using Json = nlohmann::json;

// Takes what is ours out of `after`, beside `before`; what remains must be equal.
void strip_annotations(const Json& before, Json& after) {
  if (!after.contains("metadata")) return;
  auto& metadata = after["metadata"];
  const Json before_metadata = before.value("metadata", Json());
  const Json annotations =
      before_metadata.is_object() && before_metadata.contains("annotations") ? before_metadata["annotations"] : Json();
  if (metadata.is_object() && metadata.contains("annotations") && metadata["annotations"].is_object()) {
    auto& now = metadata["annotations"];
    const bool had_status = annotations.is_object() && annotations.contains(webhook::kStatusAnnotation);
    if (had_status)
      now[webhook::kStatusAnnotation] = annotations[webhook::kStatusAnnotation];
    else
      now.erase(webhook::kStatusAnnotation);
    if (now.empty() && annotations.is_null()) {
      if (before_metadata.is_object() && before_metadata.contains("annotations"))
        now = nullptr;
      else
        metadata.erase("annotations");
    }
  }
  if (metadata.is_object() && metadata.empty() && before_metadata.is_null()) {
    if (before.contains("metadata"))
      metadata = nullptr;
    else
      after.erase("metadata");
  }
}

void strip_hostnames(const Json& before, Json& after) {
  const Json was = before.value("hostnames", Json());
  auto& now = after["hostnames"];
  if (was.is_array() && now.size() >= was.size())
    now.erase(now.begin() + static_cast<long>(was.size()), now.end());
  else if (was.is_null() && before.contains("hostnames"))
    now = nullptr;
  else if (was.is_null())
    after.erase("hostnames");
}

void strip_aliases(const Json& before, Json& after) {
  if (!after.contains("hostAliases")) return;
  const Json was = before.contains("hostAliases") ? before["hostAliases"] : Json();
  auto& now = after["hostAliases"];
  if (was.is_null()) {
    if (before.contains("hostAliases"))
      now = nullptr;
    else
      after.erase("hostAliases");
    return;
  }
  if (now.size() < was.size()) return;
  now.erase(now.begin() + static_cast<long>(was.size()), now.end());
  for (size_t i = 0; i < was.size(); ++i)
    if (was[i] != now[i]) strip_hostnames(was[i], now[i]);
}

}  // namespace

testing::AssertionResult is_extension(const Json& before, const Json& after) {
  Json stripped = after;
  strip_annotations(before, stripped);
  if (stripped.contains("spec") && before.contains("spec")) strip_aliases(before["spec"], stripped["spec"]);
  if (stripped == before) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "differs beyond what Nezha adds:\n" << Json::diff(before, stripped).dump(2);
}

}  // namespace nezha::test
