// Helpers of the configuration tests: the error message of a text, or its value.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "nezha/base/result.h"

namespace nezha::config {

// The message of a failed result; also checks that the remedy is kFixInput and that the message is one line.
template <class T>
std::string error_of(const Result<T>& result) {
  if (!result.has_error()) return "(no error)";
  EXPECT_EQ(result.error().remedy, Remedy::kFixInput);
  EXPECT_EQ(result.error().message.find('\n'), std::string::npos);
  return result.error().message;
}

// The value of a result that must have one.
template <class T>
T value_of(Result<T> result) {
  EXPECT_FALSE(result.has_error()) << result.error().message;
  return result.has_error() ? T{} : std::move(result).value();
}

}  // namespace nezha::config
