// Certificates: swapped while connections are open, chains, bad pairs.
#include "test/unit/webhook/serve_fixture.h"

namespace nezha::test {
namespace {

std::string certificate_seen(uint16_t port) {
  TlsClient client(port);
  return client.ok() ? client.peer_certificate_pem() : "";
}

TEST_F(ServeTest, NewConnectionsSeeTheNewCertificateAndOldOnesGoOn) {
  start();
  const auto before = certificate_.current();
  TlsClient old(port());
  ASSERT_EQ(old.peer_certificate_pem(), before->certificate_pem);
  ASSERT_EQ(old.post("/mutate", review())->status, 200);
  for (int rotation = 0; rotation < 3; ++rotation) {
    const auto pair = make_key_pair();
    certificate_.set(pair);
    EXPECT_EQ(certificate_seen(port()), pair.certificate_pem);
    EXPECT_EQ(old.post("/mutate", review())->status, 200);
  }
}

TEST_F(ServeTest, WithoutACertificateHandshakesFailUntilThereIsOne) {
  struct None final : webhook::CertificateSource {
    std::shared_ptr<const webhook::KeyPair> current() const override { return nullptr; }
  } none;
  webhook::ServeSettings any = settings();
  webhook::AdmissionServer bare(any, policies_, none, clock_, *metrics_, *log_);
  ASSERT_TRUE(bare.bind());
  std::thread running([&] { bare.run(); });
  EXPECT_FALSE(TlsClient(bare.port()).ok());
  bare.stop();
  running.join();
}

TEST_F(ServeTest, APairThatDoesNotFitLeavesTheLastGoodOneInForce) {
  start();
  const auto good = certificate_.current();
  ASSERT_EQ(certificate_seen(port()), good->certificate_pem);
  const auto a = make_key_pair(), b = make_key_pair();
  for (const auto& bad : {webhook::KeyPair{a.certificate_pem, b.key_pem}, webhook::KeyPair{"text", a.key_pem},
                          webhook::KeyPair{a.certificate_pem, "text"}, webhook::KeyPair{"", ""}}) {
    certificate_.set(bad);
    EXPECT_EQ(certificate_seen(port()), good->certificate_pem);
  }
  certificate_.set(a);
  EXPECT_EQ(certificate_seen(port()), a.certificate_pem);
}

TEST_F(ServeTest, IntermediatesAreSentBehindTheLeaf) {
  std::string ca;
  auto pair = make_key_pair(&ca);
  const std::string leaf = pair.certificate_pem;
  pair.certificate_pem += ca;
  certificate_.set(pair);
  start();
  TlsClient client(port());
  EXPECT_EQ(client.peer_certificate_pem(), leaf);
  EXPECT_EQ(client.certificates_sent(), 2);
}

}  // namespace
}  // namespace nezha::test
