// Aim: a rotation survives a crash after, or just before, any single API write.
// Method: two replicas live through more than a CA's life under a manual clock. The write number N is done (or not)
// and its replica dies without learning it; a new replica takes its place. After every pass each replica that has
// been registered must serve a leaf that the stored registration trusts.
#include <gtest/gtest.h>

#include <array>
#include <optional>

#include "test/unit/webhook_controller/registration_fixture.h"
#include "test/unit/webhook_controller/replica.h"

namespace nezha {
namespace {

using std::chrono::seconds;

constexpr seconds kStep{20};
constexpr int kSteps = 24;  // more than a CA's life of 400 s
constexpr size_t kWritesMax = 30;

struct Crash {
  size_t write;  // counted from 1; 0: none
  bool done;     // the server did it, but the answer never came
};

class Life {
 public:
  explicit Life(const Crash& crash) : crash_(crash) {
    server_.put(test::kSecretPath, R"({"type":"Opaque"})");
    server_.put(test::kRegistrationPath, test::kRegistration);
    server_.set_faults([this](const test::SeenRequest& request) -> std::optional<test::Fault> {
      if (request.method == "GET" || ++writes_ != crash_.write) return std::nullopt;
      crashed_ = true;
      return test::Fault{.status = 500, .body = "", .after = crash_.done};
    });
    for (auto& replica : replicas_) replica.emplace(server_, clock_);
  }

  void run() {
    for (int step = 0; step < kSteps; ++step) {
      for (auto& replica : replicas_) {
        replica->reconcile();
        if (std::exchange(crashed_, false)) replica.emplace(server_, clock_);
        expect_trusted();
      }
      remember_ca();
      clock_.advance(kStep);
    }
  }

  size_t writes() const { return writes_; }
  size_t cas_seen() const { return cas_seen_.size(); }

  // Once nothing crashes any more, a pass each is enough.
  void expect_settled() {
    for (auto& replica : replicas_) EXPECT_EQ(replica->reconcile(), "");
    EXPECT_EQ(replicas_[0]->leaf(), replicas_[1]->leaf());
    EXPECT_TRUE(replicas_[0]->ready() && replicas_[1]->ready());
    EXPECT_EQ(test::stored_cas(server_).size(), 1u);
  }

 private:
  void expect_trusted() {
    const auto cas = test::stored_cas(server_);
    was_registered_ |= !cas.empty();
    if (!was_registered_) return;
    for (const auto& replica : replicas_) {
      const std::string leaf = replica->leaf();
      if (leaf.empty()) continue;  // just started: not ready, gets no calls
      EXPECT_TRUE(test::trusted(leaf, cas, clock_.wall())) << "crash at write " << crash_.write;
    }
  }

  void remember_ca() {
    const auto cas = test::stored_cas(server_);
    cas_seen_.insert(cas.begin(), cas.end());
  }

  const Crash crash_;
  test::FakeApiServer server_;
  test::ManualClock clock_;
  std::array<std::optional<test::Replica>, 2> replicas_;
  size_t writes_ = 0;
  bool crashed_ = false;
  bool was_registered_ = false;
  std::set<std::string> cas_seen_;
};

TEST(TlsRotation, UndisturbedLifeWritesLittle) {
  Life life({0, false});
  life.run();
  life.expect_settled();
  EXPECT_GE(life.cas_seen(), 2u) << "the CA was rotated";
  EXPECT_LE(life.writes(), kWritesMax);
}

TEST(TlsRotation, SurvivesACrashAfterAnyWrite) {
  Life undisturbed({0, false});
  undisturbed.run();
  for (size_t write = 1; write <= undisturbed.writes(); ++write) {
    SCOPED_TRACE(write);
    Life life({write, true});
    life.run();
    life.expect_settled();
    EXPECT_LE(life.writes(), kWritesMax);
  }
}

TEST(TlsRotation, SurvivesACrashBeforeAnyWrite) {
  Life undisturbed({0, false});
  undisturbed.run();
  for (size_t write = 1; write <= undisturbed.writes(); ++write) {
    SCOPED_TRACE(write);
    Life life({write, false});
    life.run();
    life.expect_settled();
    EXPECT_LE(life.writes(), kWritesMax);
  }
}

}  // namespace
}  // namespace nezha
