#include "test/support/s3_source.h"

#include <fstream>

#include "nezha/base/check.h"
#include "nezha/http/conditional.h"
#include "nezha/http/parser.h"
#include "nezha/http/range.h"
#include "nezha/s3/sha256.h"
#include "nezha/s3/sigv4.h"
#include "test/support/raw_client.h"

namespace nezha::test {
namespace {

http::RequestHead parsed(std::string_view text) {
  http::RequestHead head;
  NEZHA_CHECK(http::parse_request_head(text, head).kind == http::HeadStep::Kind::kDone, "a whole request head");
  return head;
}

s3::Credentials credentials(const std::string& id, const std::string& secret) {
  return {s3::AccessKeyId(id), s3::SecretKey(secret), {}};
}

}  // namespace

KeyPair key_pair(const std::string& name) { return {"AKIA" + name, "made-up-secret-of-" + name}; }

std::string signed_get(const KeyPair& keys, std::string_view path, WallTime now, std::string_view fields,
                       std::string_view method) {
  const http::RequestHead head = parsed(get(path, fields, method));
  const s3::PayloadHash no_body{s3::PayloadHash::Kind::kSha256, std::string(s3::kEmptySha256)};
  const auto signature = s3::sign(head, credentials(keys.id, keys.secret), "eu-west-1", no_body, now);
  std::string all(fields);
  signature.for_each(
      [&](std::string_view name, std::string_view value) { all.append(name).append(": ").append(value) += "\r\n"; });
  return get(path, all, method);
}

std::string presigned_get(const KeyPair& keys, std::string_view path, WallTime now) {
  const auto time = std::chrono::system_clock::to_time_t(now);
  char date[20];
  NEZHA_CHECK(std::strftime(date, sizeof date, "%Y%m%dT%H%M%SZ", std::gmtime(&time)) > 0, "the date fits");
  const s3::CredentialScope scope{std::string(date, 8), "eu-west-1"};
  const std::string query = "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=" + keys.id + "%2F" + scope.date +
                            "%2Feu-west-1%2Fs3%2Faws4_request&X-Amz-Date=" + date +
                            "&X-Amz-Expires=3600&X-Amz-SignedHeaders=host";
  const std::string canonical =
      "GET\n" + std::string(path) + "\n" + query + "\nhost:data.example\n\nhost\nUNSIGNED-PAYLOAD";
  const s3::SigningKey key(s3::SecretKey(keys.secret), scope);
  const std::string signature =
      key.sign("AWS4-HMAC-SHA256\n" + std::string(date) + "\n" + scope.text() + "\n" + s3::sha256_hex(canonical));
  return get(std::string(path) + "?" + query + "&X-Amz-Signature=" + signature);
}

bool S3Source::may_read(const RecordedRequest& request) const {
  const http::RequestHead head = parsed(request.head);
  const s3::ClaimReading reading = s3::read_claim(head);
  if (reading.kind != s3::ClaimReading::Kind::kClaim) return false;
  const auto known = secrets_.find(reading.claim.access_key_id.get());
  return known != secrets_.end() &&
         s3::verify(head, reading.claim, credentials(known->first, known->second), clock_.wall()).valid();
}

std::string S3Source::answer(const RecordedRequest& request) const {
  if (!may_read(request)) return response(403, "Content-Type: application/xml\r\n", "<Error/>");
  const std::string target = request.target();
  const auto object = objects_.find(target.substr(0, target.find('?')));
  if (object == objects_.end()) return response(404, "", "");
  const auto& [body, etag] = object->second;
  const std::string fields = "ETag: " + etag + "\r\nAccept-Ranges: bytes\r\n";
  if (request.field("If-None-Match") == etag) return "HTTP/1.1 304 Not Modified\r\nETag: " + etag + "\r\n\r\n";
  if (request.has("If-Match") && request.field("If-Match") != etag) return response(412, "", "");
  const auto ranges = http::parse_range(request.field("Range").value_or(""));
  const auto range = ranges && ranges->size() == 1 ? ranges->front().resolve(body.size()) : std::nullopt;
  if (!range) return response(200, fields, body);
  return response(206, fields + "Content-Range: " + http::format_content_range(*range, body.size()) + "\r\n",
                  std::string_view(body).substr(range->begin, range->size_bytes()));
}

void MountedKeys::write(const KeyPair& own, const std::string& readers) const {
  const std::string folder = directory_.path() + "/keys";
  std::filesystem::create_directories(folder);
  const auto file = [&](const char* name, const std::string& text) {  // replaced, as a mounted Secret's files are
    std::ofstream(folder + "/." + name) << text;
    std::filesystem::rename(folder + "/." + name, folder + "/" + name);
  };
  file("accessKeyId", own.id);
  file("secretAccessKey", own.secret + "\n");
  file("readers", readers);
}

}  // namespace nezha::test
