// Aim: a Result carries a value or an Error through NEZHA_TRY, and misuse ends the process instead of going on.
#include "nezha/base/result.h"

#include <gtest/gtest.h>

#include <memory>

#include "nezha/base/check.h"

namespace nezha {
namespace {

Result<int> half(int number) {
  if (number % 2 != 0) return fail(Remedy::kFixInput, std::to_string(number) + " is odd");
  return number / 2;
}

Result<int> quarter(int number) {
  NEZHA_TRY(const int once, half(number));
  return half(once);
}

Result<> only_even(int number) {
  NEZHA_TRY(half(number));
  return ok();
}

TEST(Result, ValuesAndErrorsPassThroughTry) {
  EXPECT_EQ(quarter(12).value(), 3);
  EXPECT_EQ(quarter(6).error().message, "3 is odd");
  EXPECT_EQ(quarter(6).error().remedy, Remedy::kFixInput);
  EXPECT_TRUE(only_even(2));
  EXPECT_FALSE(only_even(1));
}

TEST(Result, CarriesMoveOnlyValues) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(7);
  EXPECT_EQ(*std::move(result).value(), 7);
}

TEST(ResultDeathTest, ReadingTheValueOfAFailureAborts) { EXPECT_DEATH((void)half(1).value(), ""); }

TEST(CheckDeathTest, SaysWhereAndWhat) {
  EXPECT_DEATH(NEZHA_CHECK(1 + 1 == 3, "arithmetic"), "result_test.cc:[0-9]+: check failed: 1 \\+ 1 == 3.*arithmetic");
}

TEST(Check, AHoldingConditionDoesNothing) { NEZHA_CHECK(true, "never printed"); }

}  // namespace
}  // namespace nezha
