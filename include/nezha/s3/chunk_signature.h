// Signatures inside an aws-chunked body: each covers its chunk and the signature before it, the first one that of the
// head. After AWS, S3 API reference, "Signature Calculations for the Authorization Header": "Transferring Payload in
// Multiple Chunks" and "Including Trailing Headers". Pure. The body's form is decoded elsewhere (delete_request.h).
// Threads: any.
#pragma once

#include <string>
#include <string_view>

#include "nezha/http/fields.h"
#include "nezha/s3/sigv4.h"

namespace nezha::s3 {

// One body, from its first chunk on. To verify, compare what it says by same_signature() with what was sent, and stop
// at the first difference; to sign, send it.
class ChunkSignatures {
 public:
  // `seed`: the head's signature. Key, date and scope are the head's as well.
  ChunkSignatures(SigningKey key, std::string amz_date, const CredentialScope& scope, std::string seed);

  // chunk-signature of the next chunk, whose bytes have this hash. The empty last chunk is one too.
  std::string chunk(std::string_view data_sha256_hex);
  // x-amz-trailer-signature, after the empty chunk: of canonical_trailer().
  std::string trailer(std::string_view trailer_sha256_hex) const;

 private:
  SigningKey key_;
  std::string date_and_scope_;  // two lines of what is signed
  std::string previous_;
};

// "name:value\n" per field in order of the lower-case names, values trimmed, without x-amz-trailer-signature.
std::string canonical_trailer(const http::Fields& trailer);

}  // namespace nezha::s3
