// What plain scalars mean, and which strings may stand without quotes.
#include "cli/yaml_scalar.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace nezha::cli {
namespace {

struct Case {
  const char* text;
  const char* json;
};

TEST(PlainValue, MeansWhatItMeansToKubectl) {
  const Case cases[] = {{"", "null"},
                        {"~", "null"},
                        {"null", "null"},
                        {"Null", "null"},
                        {"nULL", "\"nULL\""},
                        {"true", "true"},
                        {"Yes", "true"},
                        {"ON", "true"},
                        {"off", "false"},
                        {"No", "false"},
                        {"y", "\"y\""},
                        {"N", "\"N\""},
                        {"oN", "\"oN\""},
                        {"12", "12"},
                        {"-12", "-12"},
                        {"+12", "12"},
                        {"012", "10"},
                        {"0o17", "15"},
                        {"0x1F", "31"},
                        {"0b101", "5"},
                        {"1_000", "1000"},
                        {"0", "0"},
                        {"08", "8.0"},
                        {"1e3", "1000.0"},
                        {"1.50", "1.5"},
                        {".5", "0.5"},
                        {"-.5", "-0.5"},
                        {"1.", "1.0"},
                        {"9223372036854775807", "9223372036854775807"},
                        {"-9223372036854775808", "-9223372036854775808"},
                        {"18446744073709551615", "18446744073709551615"},
                        {"1.2.3", "\"1.2.3\""},
                        {"10.0.0.1", "\"10.0.0.1\""},
                        {"1Gi", "\"1Gi\""},
                        {"-", "\"-\""},
                        {"2024-01-01", "\"2024-01-01\""},
                        {"0x", "\"0x\""},
                        {"e3", "\"e3\""},
                        {"12:30", "\"12:30\""},
                        {"inf", "\"inf\""},
                        {"nan", "\"nan\""}};
  for (const auto& c : cases) EXPECT_EQ(plain_value(c.text).dump(), c.json) << c.text;
  for (const char* text : {".inf", "-.Inf", ".NaN"}) EXPECT_TRUE(plain_value(text).is_discarded()) << text;
}

TEST(PlainString, OnlyWhatNoReaderMistakes) {
  for (const char* text : {"abc", "nezha.io/inject", "/etc/hosts", "example.org/x:1", "a b", "_x", "Always", "a=b,c"})
    EXPECT_TRUE(is_plain_string(text)) << text;
  for (const char* text :
       {"",      "yes",  "No",     "ON", "y",   "N",    "null",       "~",    "True", "012", "1e3", "1",   "-x",  ".5",
        "a: b",  "a:",   "a ",     " a", "# a", "a #b", "*a",         "&a",   "!a",   "@a",  "%a",  "{a}", "[a]", "'a'",
        "\"a\"", "a\nb", "\u00e9", "<<", "=",   "0x1",  "2024-01-01", "a\\b", "|",    ">",   "?",   "`a"})
    EXPECT_FALSE(is_plain_string(text)) << text;
}

}  // namespace
}  // namespace nezha::cli
