// AWS Signature Version 4 as S3 has it: what a request claims, whether the claim holds, and signing of our own
// requests. Pure: no clock, no I/O, and no body: what the head declares of the body (PayloadHash) is the caller's to
// compare with what arrives, by sha256.h or chunk_signature.h.
//
// A request is valid here when the holder of the secret signed just that, by S3's rules and in the time that they
// allow. Whether that holder may read the object is another question. In doubt a request is refused: the caller may
// still send it on, byte for byte, and let the source answer.
//
// The canonical request (AWS, S3 API reference: "Authenticating Requests (AWS Signature Version 4)"):
//   Path     The raw path's bytes, percent-decoded once, then encoded with upper-case digits, but for letters, digits
//            and - . _ ~ and the slash. Nothing is merged or removed: "//", "." and ".." stay; '+' is a plus. The key
//            `a+b//c d%2Fé`, which travels as /a%2Bb//c%20d%252F%C3%A9, is canonical as it travels, and each other
//            spelling of one key has the same signature. '%' without two hexadecimal digits is refused.
//   Query    The pieces between '&', decoded ('+' is a space), encoded like the path but with '/' as %2F, sorted by
//            encoded name and then value. No '=' is an empty value. Without X-Amz-Signature when presigned.
//   Fields   The lines of a name joined by ','; each trimmed, white space inside collapsed to one blank.
//   Host     As sent. The authority of a target in absolute form takes its place (RFC 9112 §3.2.2).
//
// No text made here holds anything of a secret or a token; reasons are constants. Threads: any.
#pragma once

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nezha/base/clock.h"
#include "nezha/http/message.h"
#include "nezha/s3/credentials.h"

namespace nezha::s3 {

// S3's rules on time.
inline constexpr std::chrono::minutes kClockSkewMax{15};              // either way; of presigned requests: ahead
inline constexpr std::chrono::seconds kPresignedLifeMax{7 * 86'400};  // X-Amz-Expires

// What is wrong with a signature.
enum class SignatureFault {
  kNone,
  kHeaderMalformed,         // Authorization or the date beside it
  kQueryMalformed,          // the presigned parameters: missing, repeated, of another form
  kTwoSignatures,           // in Authorization and in the query: S3 allows one
  kUriMalformed,            // the target cannot be decoded
  kContentSha256Missing,    // X-Amz-Content-Sha256, without which S3 takes no Authorization
  kContentSha256Malformed,  // not one of PayloadHash
  kContentSha256Mismatch,   // there is no body, but the hash of one
  kUnknownAccessKeyId,      // not that of the credentials
  kSessionToken,            // not that of the credentials, missing, or sent with credentials that have none
  kTimeTooSkewed,           // signed more than kClockSkewMax ago or ahead
  kNotYetValid,             // presigned, more than kClockSkewMax ahead
  kExpired,                 // presigned
  kHeaderNotSigned,         // Host and every X-Amz-* field sent must be signed
  kSignedHeaderAbsent,      // named in SignedHeaders, not sent
  kMismatch,                // all is in order, but this secret signs it otherwise
};

// Status and code with which S3 answers such a request: 403 "SignatureDoesNotMatch".
struct S3Error {
  int status = 0;
  std::string_view code;
};
S3Error s3_error(SignatureFault fault);  // not for kNone

struct [[nodiscard]] Verdict {
  SignatureFault fault = SignatureFault::kMismatch;
  std::string_view reason;  // one line for a person, a constant text; empty when valid
  bool valid() const { return fault == SignatureFault::kNone; }
};

// What X-Amz-Content-Sha256 says of the body.
struct PayloadHash {
  enum class Kind {
    kUnsigned,              // UNSIGNED-PAYLOAD
    kSha256,                // its hash in hexadecimal digits
    kSignedChunks,          // STREAMING-AWS4-HMAC-SHA256-PAYLOAD: aws-chunked, a signature per chunk
    kSignedChunksTrailer,   // STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER: and one over the trailer
    kUnsignedChunksTrailer  // STREAMING-UNSIGNED-PAYLOAD-TRAILER: aws-chunked, unsigned
  };
  Kind kind = Kind::kUnsigned;
  std::string text = "UNSIGNED-PAYLOAD";  // as sent
};
// Nothing for any other text, SigV4A's own kinds included.
std::optional<PayloadHash> parse_payload_hash(std::string_view text);

// What a request says about its signature, well formed and not yet believed.
struct SignatureClaim {
  enum class Place { kHeader, kQuery };
  Place place = Place::kHeader;
  AccessKeyId access_key_id;  // visible ASCII
  CredentialScope scope;      // its service is "s3"
  std::string amz_date;       // "20130524T000000Z", on scope.date
  std::chrono::sys_seconds signed_at;
  std::chrono::seconds expires{0};          // kQuery: 0 to kPresignedLifeMax after signed_at
  std::vector<std::string> signed_headers;  // lower case, in the order sent, none twice
  std::string signature;                    // 64 lower-case hexadecimal digits; the seed of a signed aws-chunked body
  PayloadHash payload;                      // kQuery: unsigned, unless a field or parameter says otherwise
};

struct [[nodiscard]] ClaimReading {
  enum class Kind {
    kNone,         // no signature known here; that does not make the request public
    kUnsupported,  // signed in a way that cannot be checked here (V2, SigV4A, other services, other schemes)
    kMalformed,    // S3 would refuse it: `refusal` says why
    kClaim
  };
  Kind kind = Kind::kNone;
  Verdict refusal;
  SignatureClaim claim;
};

// Reads Authorization ("AWS4-HMAC-SHA256 Credential=…, SignedHeaders=…, Signature=…", any order, any blanks between),
// or the presigned parameters (X-Amz-Algorithm and so on, names in any case of letters). Any head may be given.
ClaimReading read_claim(const http::RequestHead& head);

// The key that signs within one scope: derived from a secret, good for a day. Overwrites its memory when it ends.
class SigningKey {
 public:
  SigningKey(const SecretKey& secret, const CredentialScope& scope);
  SigningKey(const SigningKey&) = default;
  SigningKey& operator=(const SigningKey&) = default;
  ~SigningKey();
  // HMAC-SHA256, 64 lower-case hexadecimal digits.
  std::string sign(std::string_view string_to_sign) const;

 private:
  std::array<unsigned char, 32> bytes_;
};

// Whether the head is what the owner of the secret signed, and when. `claim` is what read_claim() found in this very
// head, `credentials` those of its access key id. The signature is compared in constant time.
Verdict verify(const http::RequestHead& head, const SignatureClaim& claim, const Credentials& credentials,
               WallTime now);
// The same, for a caller who keeps keys: `key` must be that of credentials.secret_key and claim.scope.
Verdict verify(const http::RequestHead& head, const SignatureClaim& claim, const Credentials& credentials,
               const SigningKey& key, WallTime now);

// The fields to set() in the head so that it is signed: X-Amz-Date, X-Amz-Content-Sha256, X-Amz-Security-Token if the
// credentials have one, Authorization. The head is as it will be sent, with a Host, no signature in its target and no
// token of its own. Each of its fields is signed but those that may change on the way (hop by hop, User-Agent, Via and
// the like). A target that cannot be decoded is a broken invariant.
http::Fields sign(const http::RequestHead& head, const Credentials& credentials, std::string_view region,
                  const PayloadHash& payload, WallTime now);

// In constant time for texts of the same length.
bool same_signature(std::string_view a, std::string_view b);

}  // namespace nezha::s3
