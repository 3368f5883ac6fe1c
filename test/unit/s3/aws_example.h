// The credentials and the moment of AWS's published examples, and heads from text, for the tests of signatures.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "nezha/http/parser.h"
#include "nezha/s3/sigv4.h"

namespace nezha::test {

inline constexpr std::string_view kSecret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
inline constexpr std::chrono::sys_seconds kSignedAt = std::chrono::sys_days(std::chrono::May / 24 / 2013);

inline s3::Credentials example_credentials(std::string_view token = "", std::string_view secret = kSecret) {
  return {s3::AccessKeyId("AKIAIOSFODNN7EXAMPLE"), s3::SecretKey(secret), s3::SessionToken(token)};
}

// A whole head with its empty line.
inline http::RequestHead parsed_head(const std::string& text) {
  http::RequestHead head;
  const auto step = http::parse_request_head(text, head);
  EXPECT_EQ(step.kind, http::HeadStep::Kind::kDone) << step.reason << "\n" << text;
  return head;
}

// Without Authorization.
inline http::RequestHead example_head(const std::string& method, const std::string& target,
                                      const std::string& more_fields) {
  return parsed_head(method + ' ' + target + " HTTP/1.1\r\nHost: examplebucket.s3.amazonaws.com\r\n" + more_fields +
                     "\r\n");
}

inline std::string authorization(std::string_view signed_headers, std::string_view signature,
                                 std::string_view region = "us-east-1") {
  return "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/" + std::string(region) +
         "/s3/aws4_request, SignedHeaders=" + std::string(signed_headers) + ", Signature=" + std::string(signature);
}

// What is wrong with the head, whoever finds it; kNone when the signature holds.
inline s3::SignatureFault fault_of(const http::RequestHead& head, const s3::Credentials& credentials,
                                   WallTime now = kSignedAt) {
  const auto reading = s3::read_claim(head);
  if (reading.kind == s3::ClaimReading::Kind::kMalformed) {
    EXPECT_FALSE(reading.refusal.valid() || reading.refusal.reason.empty());
    return reading.refusal.fault;
  }
  EXPECT_EQ(reading.kind, s3::ClaimReading::Kind::kClaim) << head.target;
  const auto verdict = s3::verify(head, reading.claim, credentials, now);
  EXPECT_EQ(verdict.valid(), verdict.reason.empty());
  return verdict.fault;
}

}  // namespace nezha::test
