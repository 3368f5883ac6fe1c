// Reading what a request says about its signature. Every refusal has a constant text: none repeats the request.
#include <algorithm>
#include <array>
#include <charconv>

#include "nezha/base/limits.h"
#include "nezha/base/text.h"
#include "nezha/http/date.h"
#include "nezha/s3/sigv4.h"
#include "src/s3/amz_date.h"
#include "src/s3/canonical_request.h"
#include "src/s3/percent.h"

namespace nezha::s3 {
namespace {

constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256";

// What of a claim is one text wherever it stands.
struct ClaimText {
  std::string_view credential, signed_headers, signature;
};

// The presigned parameters, by position in kNames.
enum ParameterIndex { kAlgorithmAt, kCredentialAt, kDateAt, kExpiresAt, kSignedHeadersAt, kSignatureAt, kRequired };
constexpr std::array<std::string_view, kRequired> kNames = {
    "X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Date", "X-Amz-Expires", "X-Amz-SignedHeaders", "X-Amz-Signature"};

ClaimReading refuse(SignatureFault fault, std::string_view reason) {
  ClaimReading out;
  out.kind = ClaimReading::Kind::kMalformed;
  out.refusal = {fault, reason};
  return out;
}

ClaimReading unsupported() {
  ClaimReading out;
  out.kind = ClaimReading::Kind::kUnsupported;
  return out;
}

bool is_visible(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7F; });
}

bool is_lower_token(char c) {
  return is_unreserved(c) ? c < 'A' || c > 'Z' : std::string_view("!#$%&'*+^`|").find(c) != std::string_view::npos;
}

bool is_hex64(std::string_view text, bool upper_too) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [&](char c) {
           return hex_value(c) >= 0 && (upper_too || c < 'A' || c > 'F');
         });
}

// Each of these gives the reason why the text is malformed, or nothing. An access key id may hold slashes, so the scope
// is taken from the end.
std::string_view read_credential(std::string_view text, SignatureClaim& into) {
  std::array<std::string_view, 4> scope;
  for (size_t i = scope.size(); i-- > 0;) {
    const size_t slash = text.rfind('/');
    if (slash == std::string_view::npos) return "Credential is not ID/DATE/REGION/SERVICE/aws4_request";
    scope[i] = text.substr(slash + 1);
    text = text.substr(0, slash);
  }
  const auto& [date, region, service, terminator] = scope;
  if (text.empty() || region.empty() || service.empty()) return "Credential has an empty part";
  if (!is_visible(text) || !is_visible(region) || !is_visible(service)) return "Credential has an odd character";
  if (terminator != "aws4_request") return "Credential does not end with aws4_request";
  into.access_key_id = AccessKeyId(std::string(text));
  into.scope = {std::string(date), std::string(region), std::string(service)};
  return {};
}

std::string_view read_signed_headers(std::string_view text, SignatureClaim& into) {
  for (const auto name : split(text, ';')) {
    if (name.empty()) return "SignedHeaders has an empty name";
    if (!std::all_of(name.begin(), name.end(), is_lower_token)) return "SignedHeaders is not of lower-case names";
    if (into.signed_headers.size() == limits::kHeadFieldsMax) return "SignedHeaders names too many fields";
    into.signed_headers.emplace_back(name);
  }
  auto sorted = into.signed_headers;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) return "SignedHeaders names a field twice";
  return {};
}

std::string_view read_text(const ClaimText& text, SignatureClaim& into) {
  if (const auto reason = read_credential(text.credential, into); !reason.empty()) return reason;
  if (const auto reason = read_signed_headers(text.signed_headers, into); !reason.empty()) return reason;
  if (!is_hex64(text.signature, false)) return "Signature is not 64 lower-case hexadecimal digits";
  into.signature = text.signature;
  return {};
}

bool take_date(std::optional<std::chrono::sys_seconds> date, SignatureClaim& into) {
  if (!date) return false;
  into.signed_at = *date;
  into.amz_date = format_amz_date(*date);
  return into.amz_date.starts_with(into.scope.date) && into.scope.date.size() == 8;
}

// "Credential=…, SignedHeaders=…, Signature=…", each once.
bool split_authorization(std::string_view text, ClaimText& into) {
  constexpr std::array<std::string_view, 3> kParts = {"Credential", "SignedHeaders", "Signature"};
  const std::array<std::string_view*, 3> places = {&into.credential, &into.signed_headers, &into.signature};
  for (auto part : split(text, ',')) {
    part = trim(part);
    if (part.empty()) continue;
    const size_t equals = part.find('=');
    if (equals == std::string_view::npos) return false;
    const auto which = std::find(kParts.begin(), kParts.end(), trim(part.substr(0, equals)));
    if (which == kParts.end()) return false;
    std::string_view& place = *places[static_cast<size_t>(which - kParts.begin())];
    if (!place.empty()) return false;
    place = trim(part.substr(equals + 1));
  }
  return std::none_of(places.begin(), places.end(), [](const auto* place) { return place->empty(); });
}

// The date beside an Authorization: X-Amz-Date, or else Date in HTTP's or ISO's form.
std::optional<std::chrono::sys_seconds> date_of(const http::Fields& fields) {
  const bool own = fields.has("X-Amz-Date");
  const std::string_view name = own ? "X-Amz-Date" : "Date";
  if (fields.count(name) != 1) return std::nullopt;
  const auto text = trim(*fields.find(name));
  if (const auto date = parse_amz_date(text); date || own) return date;
  const auto date = http::parse_date(text, WallTime{});
  if (!date) return std::nullopt;
  return std::chrono::floor<std::chrono::seconds>(*date);
}

ClaimReading read_header(const http::Fields& fields, std::string_view parts) {
  using enum SignatureFault;
  ClaimReading out;
  SignatureClaim& claim = out.claim;
  ClaimText text;
  if (!split_authorization(parts, text)) {
    return refuse(kHeaderMalformed, "Authorization needs Credential, SignedHeaders and Signature, each once");
  }
  if (const auto reason = read_text(text, claim); !reason.empty()) return refuse(kHeaderMalformed, reason);
  if (claim.scope.service != "s3") return unsupported();
  if (!take_date(date_of(fields), claim)) {
    return refuse(kHeaderMalformed, "X-Amz-Date, or else Date, must be there once and on the day of Credential");
  }
  if (!fields.has("X-Amz-Content-Sha256")) {
    return refuse(kContentSha256Missing, "X-Amz-Content-Sha256 is missing");
  }
  if (fields.count("X-Amz-Content-Sha256") == 1) {
    if (auto payload = parse_payload_hash(trim(*fields.find("X-Amz-Content-Sha256")))) {
      claim.payload = std::move(*payload);
      out.kind = ClaimReading::Kind::kClaim;
      return out;
    }
  }
  return refuse(kContentSha256Malformed, "X-Amz-Content-Sha256 is of no known form, or repeated");
}

const Parameter* find_one(const std::vector<Parameter>& query, std::string_view name) {
  for (const auto& parameter : query) {
    if (iequals(parameter.name, name)) return &parameter;
  }
  return nullptr;
}

bool has_twice(const std::vector<Parameter>& query, std::string_view name) {
  return std::count_if(query.begin(), query.end(), [&](const auto& one) { return iequals(one.name, name); }) > 1;
}

// Of a presigned request: the parameter, or else the field, or else none.
std::optional<PayloadHash> presigned_payload(const http::Fields& fields, const std::vector<Parameter>& query) {
  constexpr std::string_view kName = "X-Amz-Content-Sha256";
  if (has_twice(query, kName) || fields.count(kName) > 1) return std::nullopt;
  if (const auto* parameter = find_one(query, kName)) return parse_payload_hash(parameter->value);
  if (const auto field = fields.find(kName)) return parse_payload_hash(trim(*field));
  return PayloadHash{};
}

ClaimReading read_query(const http::Fields& fields, const std::vector<Parameter>& query) {
  using enum SignatureFault;
  ClaimReading out;
  SignatureClaim& claim = out.claim;
  std::array<std::string_view, kRequired> values;
  for (size_t i = 0; i < kRequired; ++i) {
    const auto* parameter = find_one(query, kNames[i]);
    if (!parameter || has_twice(query, kNames[i])) {
      return refuse(kQueryMalformed,
                    "presigned requests need the parameters X-Amz-Algorithm, -Credential, -Date, -Expires, "
                    "-SignedHeaders and -Signature, each once");
    }
    values[i] = parameter->value;
  }
  if (has_twice(query, "X-Amz-Security-Token")) return refuse(kQueryMalformed, "X-Amz-Security-Token is repeated");
  if (values[kAlgorithmAt] != kAlgorithm) return unsupported();
  const ClaimText text{values[kCredentialAt], values[kSignedHeadersAt], values[kSignatureAt]};
  if (const auto reason = read_text(text, claim); !reason.empty()) return refuse(kQueryMalformed, reason);
  if (claim.scope.service != "s3") return unsupported();
  if (!take_date(parse_amz_date(values[kDateAt]), claim)) {
    return refuse(kQueryMalformed, "X-Amz-Date must be of the form YYYYMMDDThhmmssZ, on the day of X-Amz-Credential");
  }
  const auto expires = parse_decimal(values[kExpiresAt]);
  if (!expires || *expires > static_cast<uint64_t>(kPresignedLifeMax.count())) {
    return refuse(kQueryMalformed, "X-Amz-Expires must be a number of seconds, at most 604800");
  }
  claim.place = SignatureClaim::Place::kQuery;
  claim.expires = std::chrono::seconds(*expires);
  auto payload = presigned_payload(fields, query);
  if (!payload) return refuse(kContentSha256Malformed, "X-Amz-Content-Sha256 is of no known form, or repeated");
  claim.payload = std::move(*payload);
  out.kind = ClaimReading::Kind::kClaim;
  return out;
}

}  // namespace

std::optional<PayloadHash> parse_payload_hash(std::string_view text) {
  using Kind = PayloadHash::Kind;
  std::string copy(text);
  if (text == "UNSIGNED-PAYLOAD") return PayloadHash{Kind::kUnsigned, std::move(copy)};
  if (text == "STREAMING-AWS4-HMAC-SHA256-PAYLOAD") return PayloadHash{Kind::kSignedChunks, std::move(copy)};
  if (text == "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER") {
    return PayloadHash{Kind::kSignedChunksTrailer, std::move(copy)};
  }
  if (text == "STREAMING-UNSIGNED-PAYLOAD-TRAILER") {
    return PayloadHash{Kind::kUnsignedChunksTrailer, std::move(copy)};
  }
  if (is_hex64(text, true)) return PayloadHash{Kind::kSha256, std::move(copy)};
  return std::nullopt;
}

ClaimReading read_claim(const http::RequestHead& head) {
  using enum SignatureFault;
  const auto target = split_target(head.target);
  const auto has = [&](std::string_view name) { return target && find_one(target->query, name); };
  const size_t lines = head.fields.count("Authorization");
  const bool presigned = has("X-Amz-Algorithm") || has("X-Amz-Credential") || has("X-Amz-Signature");
  const bool presigned_v2 = has("AWSAccessKeyId");
  if (lines + presigned + presigned_v2 > 1) return refuse(kTwoSignatures, "signed in more than one way");
  std::string_view after_scheme;
  if (lines == 1) {
    const auto value = trim(*head.fields.find("Authorization"));
    const size_t end = std::min(value.find_first_of(" \t"), value.size());
    if (value.substr(0, end) != kAlgorithm) return unsupported();
    after_scheme = value.substr(end);
  } else if (!presigned) {
    return presigned_v2 ? unsupported() : ClaimReading{};
  }
  if (!target || !target->decodable) return refuse(kUriMalformed, "the request's target cannot be decoded");
  return presigned ? read_query(head.fields, target->query) : read_header(head.fields, after_scheme);
}

}  // namespace nezha::s3
