// Requests to keys, origins and ways through the cache.
#include "cache/classify/classify.h"

#include <gtest/gtest.h>

#include "nezha/http/parser.h"

namespace nezha::cache {
namespace {

using Kind = Classified::Kind;

std::shared_ptr<const Routes> routes() {
  auto settings = std::make_shared<config::Settings>();
  config::Upstream http, s3;
  http.name = UpstreamName("web");
  http.hosts = {HostName("data.example")};
  s3.name = UpstreamName("s3");
  s3.hosts = {HostName("bucket.s3.example")};
  s3.protocol = config::Protocol::kS3;
  s3.endpoint = config::Endpoint{false, "rgw", 8080};
  settings->upstreams = {http, s3};
  return std::make_shared<const Routes>(settings);
}

class Classify : public testing::Test {
 protected:
  std::shared_ptr<const Routes> routes_ = routes();
  Arrival arrival_;
  Classified classify_raw(const std::string& bytes) {
    http::RequestHead head;
    const auto step = http::parse_request_head(bytes, head);
    EXPECT_EQ(step.kind, http::HeadStep::Kind::kDone) << bytes << step.reason;
    return classify(head, *routes_, "nezha-me", arrival_);
  }
  Classified of(const std::string& target, const std::string& fields = "", const std::string& method = "GET",
                const std::string& host = "data.example") {
    return classify_raw(method + " " + target + " HTTP/1.1\r\nHost: " + host + "\r\n" + fields + "\r\n");
  }
  std::string key(const std::string& target, const std::string& host = "data.example") {
    const Classified got = of(target, "", "GET", host);
    return got.key.path + (got.key.query.empty() ? "" : "?" + got.key.query);
  }
};

TEST_F(Classify, KeysKeepTheBytesOfTheTarget) {
  EXPECT_EQ(key("/a%2Fb//c/../d;v?x=1&y=%zz"), "data.example/a%2Fb//c/../d;v?x=1&y=%zz");
  EXPECT_NE(key("/%c3%a9"), key("/%C3%A9"));
  EXPECT_NE(key("/a?b&c"), key("/a?c&b"));
  EXPECT_EQ(key("/a", "DATA.example"), "data.example/a");
  EXPECT_EQ(key("/a", "data.example."), "data.example/a");
  EXPECT_EQ(key("/a", "data.example:80"), "data.example/a");
  EXPECT_EQ(key("/a", "data.example:8080"), "data.example:8080/a");
}

TEST_F(Classify, SignaturesAreNoPartOfTheKey) {
  const std::string v4 =
      "X-Amz-Algorithm=a&X-Amz-Credential=b&X-Amz-Date=c&X-Amz-Expires=d&X-Amz-SignedHeaders=e&"
      "X-Amz-Security-Token=f&X-Amz-Signature=g";
  EXPECT_EQ(key("/o?" + v4), "data.example/o");
  EXPECT_EQ(key("/o?versionId=1&" + v4 + "&partNumber=2"), "data.example/o?versionId=1&partNumber=2");
  EXPECT_EQ(key("/o?response-content-type=a&" + v4), "data.example/o?response-content-type=a");
  EXPECT_EQ(key("/o?AWSAccessKeyId=a&Signature=b&Expires=1"), "data.example/o");
  EXPECT_EQ(key("/o?X-Goog-Algorithm=a&X-Goog-Signature=b"), "data.example/o");
  EXPECT_EQ(key("/o?X-Amz-%53ignature=a"), "data.example/o");
}

// Another server may give such names another meaning; without a signature they are part of the key.
TEST_F(Classify, NamesThatOnlyLookLikeSignaturesStay) {
  EXPECT_EQ(key("/o?Expires=1&Policy=2"), "data.example/o?Expires=1&Policy=2");
  EXPECT_EQ(key("/o?sp=1&se=2"), "data.example/o?sp=1&se=2");
  EXPECT_EQ(key("/o?MySignature=1&Policy=2"), "data.example/o?MySignature=1&Policy=2");
  EXPECT_EQ(key("/o?x-amz-checksum-mode=ENABLED&X-Amz-Signature=1"), "data.example/o?x-amz-checksum-mode=ENABLED");
}

TEST_F(Classify, WhoMayBeAskingMakesARequestPrivate) {
  EXPECT_EQ(of("/x").credentials, Credentials::kNone);
  EXPECT_EQ(of("/x?Expires=1").credentials, Credentials::kNone);
  for (const char* field :
       {"Authorization: a", "Cookie: a=b", "X-Auth-Token: t", "X-Amz-Security-Token: t", "Private-Token: t"}) {
    EXPECT_EQ(of("/x", std::string(field) + "\r\n").credentials, Credentials::kField) << field;
  }
  EXPECT_EQ(of("/x?X-Amz-Signature=a").credentials, Credentials::kSignedUrl);
  EXPECT_EQ(of("/x?AWSAccessKeyId=a&Signature=b&Expires=1").credentials, Credentials::kSignedUrl);
  EXPECT_EQ(of("/x", "Connection: authorization\r\nAuthorization: a\r\n").credentials, Credentials::kField);
}

TEST_F(Classify, MethodsAndBodies) {
  EXPECT_EQ(of("/x").kind, Kind::kLookUp);
  EXPECT_EQ(of("/x", "", "HEAD").kind, Kind::kLookUp);
  EXPECT_TRUE(of("/x", "", "HEAD").head);
  for (const char* method : {"PUT", "POST", "DELETE", "PATCH", "get", "BREW"}) {
    EXPECT_EQ(of("/x", "", method).kind, Kind::kPass) << method;
    EXPECT_TRUE(of("/x", "", method).invalidates) << method;
  }
  for (const char* method : {"OPTIONS", "TRACE"}) {
    EXPECT_EQ(of("/x", "", method).kind, Kind::kPass);
    EXPECT_FALSE(of("/x", "", method).invalidates) << method;
  }
  EXPECT_EQ(of("/x", "", "CONNECT").status, 501);
  EXPECT_EQ(of("/x", "Content-Length: 1\r\n").kind, Kind::kPass);
  EXPECT_EQ(of("/x", "Cache-Control: no-store\r\n").kind, Kind::kPass);
  EXPECT_EQ(of("/x", "X-Amz-Server-Side-Encryption-Customer-Algorithm: AES256\r\n").kind, Kind::kPass);
}

TEST_F(Classify, S3SubResourcesAndListingsAreNotObjects) {
  const auto s3 = [&](const std::string& target) { return of(target, "", "GET", "bucket.s3.example").kind; };
  for (const char* target : {"/?list-type=2", "/?prefix=a", "/?delimiter=/", "/o?acl", "/o?tagging", "/?uploads",
                             "/o?uploadId=1", "/?location", "/o?%61cl", "/?%70refix=a"}) {
    EXPECT_EQ(s3(target), Kind::kPass) << target;
  }
  for (const char* target : {"/o", "/o?versionId=1", "/o?partNumber=1", "/o?response-content-type=a", "/o?aclx"}) {
    EXPECT_EQ(s3(target), Kind::kLookUp) << target;
  }
  EXPECT_EQ(of("/o?acl").kind, Kind::kLookUp) << "on a plain web server it is a query like any other";
}

TEST_F(Classify, BodiesThatNameWhatTheyChange) {
  const auto post = [&](const std::string& target, const std::string& fields = "") {
    return of(target, "Content-Length: 1\r\n" + fields, "POST", "bucket.s3.example");
  };
  for (const char* target : {"/?delete", "/?delete=", "/?x-id=a&delete", "/?%64elete", "/?%64%65%6C%65te="})
    EXPECT_TRUE(post(target).bulk_delete) << target;
  for (const char* target : {"/?deleted", "/?x=delete", "/?%2564elete"}) EXPECT_FALSE(post(target).bulk_delete);
  EXPECT_TRUE(post("/", "Content-Type: multipart/form-data; boundary=x\r\n").form_upload);
  EXPECT_FALSE(post("/", "Content-Type: text/plain\r\n").form_upload);
}

TEST_F(Classify, Ranges) {
  EXPECT_EQ(of("/x", "Range: bytes=1-2\r\n").range, (http::RangeSpec{1, 2}));
  EXPECT_EQ(of("/x", "Range: bytes=1-2,4-5\r\n").ranges.size(), 2u);
  EXPECT_FALSE(of("/x", "Range: lines=1-2\r\n").range);
  EXPECT_FALSE(of("/x", "Range: bytes=1-2\r\n", "HEAD").range) << "RFC 9110 §14.2: only for GET";
}

TEST_F(Classify, Origins) {
  const Classified plain = of("/x", "", "GET", "data.example:8080");
  EXPECT_EQ(plain.origin, (Origin{false, "data.example", 8080, true}));
  const Classified endpoint = of("/x", "", "GET", "bucket.s3.example");
  EXPECT_EQ(endpoint.origin, (Origin{false, "rgw", 8080, false}));
}

TEST_F(Classify, Refusals) {
  EXPECT_EQ(of("/x", "", "GET", "evil.example").status, 421);
  EXPECT_EQ(of("*", "", "OPTIONS").status, 400);
  EXPECT_EQ(of("ftp://data.example/x").status, 400);
  EXPECT_EQ(of("https://data.example/x").status, 400);
  EXPECT_EQ(of("/x#fragment").status, 400);
  EXPECT_EQ(of("/x", "CDN-Loop: nezha-me\r\n").status, 508);
  EXPECT_EQ(of("/x", "CDN-Loop: nezha-other\r\n").kind, Kind::kLookUp);
  EXPECT_EQ(classify_raw("GET http://evil.example/x HTTP/1.1\r\nHost: data.example\r\n\r\n").status, 421);
}

TEST_F(Classify, HttpsIsAnOriginOfItsOwn) {
  arrival_ = {true, "data.example"};
  EXPECT_EQ(key("/a"), "data.example:443+tls/a");
  EXPECT_EQ(key("/a", "data.example:443"), "data.example:443+tls/a");
  EXPECT_EQ(key("/a", "data.example:8443"), "data.example:8443+tls/a");
  EXPECT_EQ(key("https://data.example/a"), "data.example:443+tls/a");
  EXPECT_EQ(of("http://data.example/a").status, 400);
  EXPECT_EQ(of("/a").origin, (Origin{true, "data.example", 443, true, "data.example"}));
  arrival_ = {};
  EXPECT_EQ(key("/a", "data.example:443"), "data.example:443/a");
  EXPECT_EQ(of("https://data.example/a").status, 400);
}

TEST_F(Classify, ReferencesStayWithinTheScheme) {
  const CacheKey tls{"data.example:443+tls/a/b", ""}, plain{"data.example/a/b", ""};
  EXPECT_EQ(path_of_reference(tls, "https://data.example/c"), "data.example:443+tls/c");
  EXPECT_EQ(path_of_reference(tls, "//data.example:443/c"), "data.example:443+tls/c");
  EXPECT_EQ(path_of_reference(tls, "/c"), "data.example:443+tls/c");
  EXPECT_EQ(path_of_reference(tls, "c"), "data.example:443+tls/a/c");
  EXPECT_EQ(path_of_reference(tls, "http://data.example/c"), std::nullopt);
  EXPECT_EQ(path_of_reference(plain, "https://data.example/c"), std::nullopt);
}

TEST_F(Classify, WithAnEndpointBothSchemesShareOneKey) {
  const std::string plain = key("/a", "bucket.s3.example");
  arrival_ = {true, "bucket.s3.example"};
  EXPECT_EQ(key("/a", "bucket.s3.example"), plain);
  EXPECT_EQ(of("/a", "", "GET", "bucket.s3.example").origin, (Origin{false, "rgw", 8080, false}));
}

TEST_F(Classify, ATlsConnectionIsForTheHostItWasOpenedFor) {
  arrival_ = {true, "data.example"};
  EXPECT_EQ(of("/a", "", "GET", "bucket.s3.example").status, 421);
  EXPECT_EQ(of("/a", "", "GET", "data.example.").kind, Kind::kLookUp);
}

}  // namespace
}  // namespace nezha::cache
