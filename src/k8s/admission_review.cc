#include "nezha/k8s/admission_review.h"

#include <openssl/evp.h>

#include <nlohmann/json.hpp>

namespace nezha::k8s {
namespace {

using Json = nlohmann::json;
constexpr const char* kVersion = "admission.k8s.io/v1";
constexpr const char* kKind = "AdmissionReview";

Result<std::string> text(const Json& object, const char* key, const char* path) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return std::string();
  if (!found->is_string()) return fail(Remedy::kFixInput, std::string(path) + key + " is not a string");
  return found->get<std::string>();
}

Result<> check_head(const Json& review) {
  if (!review.is_object()) return fail(Remedy::kFixInput, "not an AdmissionReview: the document is not a JSON object");
  NEZHA_TRY(const auto version, text(review, "apiVersion", ""));
  NEZHA_TRY(const auto kind, text(review, "kind", ""));
  if (kind != kKind) return fail(Remedy::kFixInput, "kind is \"" + kind + "\"; only AdmissionReview is answered");
  if (version != kVersion)
    return fail(Remedy::kFixInput,
                "apiVersion is \"" + version + "\"; set admissionReviewVersions: [v1] (" + kVersion + ")");
  return ok();
}

Result<AdmissionRequest> read_request(const Json& request) {
  AdmissionRequest out;
  NEZHA_TRY(out.uid, text(request, "uid", "request."));
  if (out.uid.empty()) return fail(Remedy::kFixInput, "request.uid is missing");
  NEZHA_TRY(out.operation, text(request, "operation", "request."));
  NEZHA_TRY(out.sub_resource, text(request, "subResource", "request."));
  NEZHA_TRY(auto name_space, text(request, "namespace", "request."));
  out.name_space = Namespace(std::move(name_space));
  const auto resource = request.find("resource");
  if (resource == request.end() || !resource->is_object())
    return fail(Remedy::kFixInput, "request.resource is not an object");
  NEZHA_TRY(out.group, text(*resource, "group", "request.resource."));
  NEZHA_TRY(out.resource, text(*resource, "resource", "request.resource."));
  const auto dry_run = request.find("dryRun");
  out.dry_run = dry_run != request.end() && dry_run->is_boolean() && dry_run->get<bool>();
  return out;
}

std::string base64(const std::string& bytes) {
  std::string out(4 * ((bytes.size() + 2) / 3) + 1, '\0');  // OpenSSL writes a terminating NUL
  const int length =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                      reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  out.resize(static_cast<size_t>(length));
  return out;
}

}  // namespace

Result<AdmissionRequest> parse_review(std::string_view body, size_t nesting_max) {
  NEZHA_TRY(const Document review, parse_json(body, nesting_max));
  NEZHA_TRY(check_head(*review));
  const auto request = review->find("request");
  if (request == review->end() || !request->is_object()) return fail(Remedy::kFixInput, "request is not an object");
  NEZHA_TRY(AdmissionRequest out, read_request(*request));
  const auto object = request->find("object");
  static const Json kNull;
  // The object shares the review's memory: reviews are large and live for one answer.
  out.object = Document(review, object == request->end() ? &kNull : &*object);
  return out;
}

std::string write_review(const AdmissionAnswer& answer) {
  nlohmann::ordered_json response{{"uid", answer.uid}, {"allowed", true}};
  if (!answer.patch.empty()) {
    response["patchType"] = "JSONPatch";
    response["patch"] = base64(write_patch(answer.patch));
  }
  if (!answer.warnings.empty()) response["warnings"] = answer.warnings;
  const nlohmann::ordered_json review{{"apiVersion", kVersion}, {"kind", kKind}, {"response", std::move(response)}};
  return review.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace nezha::k8s
