// The rotation as pure steps: what is due when, and that every state it makes holds together.
#include "webhook/controller/tls_state.h"

#include <gtest/gtest.h>

namespace nezha::webhook {
namespace {

using std::chrono::seconds;

const WallTime kStart = std::chrono::system_clock::from_time_t(1'800'000'000);
const Lifetimes kShort{
    .ca = seconds(3000), .leaf = seconds(900), .settle = seconds(20), .overlap = seconds(60), .backdate = seconds(0)};
const std::vector<std::string> kNames{"w.n.svc", "w"};

class RotationTest : public ::testing::Test {
 protected:
  RotationStep step(seconds after, bool registered = false, bool settled = false) const {
    return rotation_.next_step(state_, kStart + after, registered, settled);
  }
  void apply(RotationStep step, seconds after) {
    auto next = rotation_.apply(step, state_, kStart + after);
    ASSERT_TRUE(next) << next.error().message;
    state_ = std::move(next).value();
    const auto held = rotation_.check(state_);
    EXPECT_TRUE(held) << held.error().message;
  }

  const Rotation rotation_{kNames, kShort};
  TlsState state_ = rotation_.create(kStart, std::nullopt).value();
};

TEST_F(RotationTest, FreshStateHoldsAndNothingIsDue) {
  EXPECT_TRUE(rotation_.check(state_));
  EXPECT_TRUE(pki::check_chain(state_.leaf.certificate_pem, state_.ca.certificate_pem, kNames[0], kStart + seconds(1)));
  EXPECT_EQ(step(seconds(0)), RotationStep::kNone);
  EXPECT_EQ(step(seconds(599)), RotationStep::kNone);
  EXPECT_EQ(trusted_cas(state_), std::vector<std::string>{state_.ca.certificate_pem});
}

TEST_F(RotationTest, LeafIsRenewedAtTwoThirdsFromTheSameCa) {
  EXPECT_EQ(step(seconds(600)), RotationStep::kRenewLeaf);
  const TlsState before = state_;
  apply(RotationStep::kRenewLeaf, seconds(600));
  EXPECT_EQ(state_.ca, before.ca);
  EXPECT_NE(state_.leaf, before.leaf);
  EXPECT_EQ(step(seconds(600)), RotationStep::kNone);
}

TEST_F(RotationTest, CaGoesThroughItsSteps) {
  apply(RotationStep::kRenewLeaf, seconds(1999));
  EXPECT_EQ(step(seconds(1999)), RotationStep::kNone);
  EXPECT_EQ(step(seconds(2000)), RotationStep::kAddNextCa);
  const std::string first = state_.ca.certificate_pem;
  apply(RotationStep::kAddNextCa, seconds(2000));
  ASSERT_TRUE(state_.next_ca);
  const std::string second = state_.next_ca->certificate_pem;
  EXPECT_EQ(trusted_cas(state_), (std::vector<std::string>{first, second}));
  EXPECT_EQ(step(seconds(2001)), RotationStep::kNone) << "not registered yet";
  EXPECT_EQ(step(seconds(2001), true, false), RotationStep::kNone) << "not settled yet";
  EXPECT_EQ(step(seconds(2001), true, true), RotationStep::kPromote);
  apply(RotationStep::kPromote, seconds(2001));
  EXPECT_EQ(state_.ca.certificate_pem, second);
  EXPECT_EQ(state_.previous_ca_pem, first);
  EXPECT_EQ(trusted_cas(state_), (std::vector<std::string>{first, second}));
  EXPECT_EQ(step(seconds(2060)), RotationStep::kNone);
  EXPECT_EQ(step(seconds(2061)), RotationStep::kDropPrevious);
  apply(RotationStep::kDropPrevious, seconds(2061));
  EXPECT_EQ(trusted_cas(state_), std::vector<std::string>{second});
  EXPECT_EQ(step(seconds(2061)), RotationStep::kNone);
}

TEST_F(RotationTest, LeafIsRenewedWhileTheNextCaWaits) {
  apply(RotationStep::kAddNextCa, seconds(2000));
  EXPECT_EQ(step(seconds(2000)), RotationStep::kRenewLeaf);
}

TEST_F(RotationTest, LeafCutToItsCasEndIsNotRenewedInVain) {
  apply(RotationStep::kRenewLeaf, seconds(2500));  // ends with the CA at 3000
  apply(RotationStep::kAddNextCa, seconds(2500));
  EXPECT_EQ(step(seconds(2900)), RotationStep::kNone);
}

TEST_F(RotationTest, AfterALongSleepAnExpiredCaIsReplacedWithoutWaiting) {
  EXPECT_EQ(step(seconds(9000)), RotationStep::kAddNextCa);
  apply(RotationStep::kAddNextCa, seconds(9000));
  EXPECT_EQ(step(seconds(9000)), RotationStep::kNone);
  EXPECT_EQ(step(seconds(9000), true, false), RotationStep::kPromote) << "no use in waiting";
}

TEST_F(RotationTest, NextCaThatExpiredUnusedIsReplaced) {
  apply(RotationStep::kAddNextCa, seconds(2000));
  EXPECT_EQ(step(seconds(9000), true, true), RotationStep::kAddNextCa);
}

TEST_F(RotationTest, OtherNamesNeedANewLeafAtOnce) {
  const Rotation renamed({"other.n.svc"}, kShort);
  EXPECT_EQ(renamed.next_step(state_, kStart, false, false), RotationStep::kRenewLeaf);
}

TEST_F(RotationTest, LostSecretKeepsTheOldCaTrustedForTheOverlap) {
  const std::string old = state_.ca.certificate_pem;
  state_ = rotation_.create(kStart + seconds(10), old).value();
  EXPECT_EQ(trusted_cas(state_), (std::vector<std::string>{old, state_.ca.certificate_pem}));
  EXPECT_EQ(step(seconds(69)), RotationStep::kNone);
  EXPECT_EQ(step(seconds(70)), RotationStep::kDropPrevious);
}

TEST_F(RotationTest, CheckRefusesWhatDoesNotFit) {
  const TlsState other = rotation_.create(kStart, std::nullopt).value();
  TlsState mixed = state_;
  mixed.leaf = other.leaf;
  EXPECT_FALSE(rotation_.check(mixed));
  mixed = state_;
  mixed.ca.key_pem = other.ca.key_pem;
  EXPECT_FALSE(rotation_.check(mixed));
}

}  // namespace
}  // namespace nezha::webhook
