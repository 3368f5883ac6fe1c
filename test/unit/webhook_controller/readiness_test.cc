#include "webhook/controller/readiness.h"

#include <gtest/gtest.h>

namespace nezha::webhook {
namespace {

TEST(Readiness, AllConditionsMustHoldAndTheTextSaysWhatIsMissing) {
  Readiness readiness;
  EXPECT_TRUE(readiness.set("certificate", "none loaded yet"));
  EXPECT_TRUE(readiness.set("registration", ""));
  EXPECT_FALSE(readiness.ready());
  EXPECT_EQ(readiness.text(), "not   certificate: none loaded yet\nok    registration\n");
  EXPECT_FALSE(readiness.set("certificate", "none loaded yet"));
  EXPECT_TRUE(readiness.set("certificate", ""));
  EXPECT_TRUE(readiness.ready());
}

TEST(Readiness, NotesWarnWithoutStopping) {
  Readiness readiness;
  readiness.set("certificate", "");
  EXPECT_TRUE(readiness.note("cache", "has no address"));
  EXPECT_TRUE(readiness.ready());
  EXPECT_EQ(readiness.text(), "warn  cache: has no address\nok    certificate\n");
  readiness.note("cache", "");
  EXPECT_EQ(readiness.text(), "ok    certificate\n");
}

}  // namespace
}  // namespace nezha::webhook
