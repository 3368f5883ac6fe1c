// Aim: whatever bytes reach a log call, one event is one line, and a JSON line is valid JSON with the same text in it.
#include "nezha/obs/log.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace nezha::obs {
namespace {

using namespace std::string_literals;

// What one call writes to standard error.
template <class Call>
std::string captured(LogFormat format, Call call, Level level = Level::kInfo) {
  testing::internal::CaptureStderr();
  call(*make_log(level, format));
  return testing::internal::GetCapturedStderr();
}

nlohmann::json one_json_line(const std::string& text) {
  EXPECT_EQ(text.find('\n'), text.size() - 1) << text;
  return nlohmann::json::parse(text);
}

TEST(Log, JsonLineHasTimeLevelMessageAndFields) {
  const auto line = one_json_line(captured(LogFormat::kJson, [](Log& log) {
    log.warning("upstream is slow", {{"upstream", "datasets"}, {"seconds", "12"}});
  }));
  EXPECT_EQ(line.at("level"), "warning");
  EXPECT_EQ(line.at("message"), "upstream is slow");
  EXPECT_EQ(line.at("upstream"), "datasets");
  EXPECT_EQ(line.at("seconds"), "12");
  EXPECT_EQ(line.at("time").get<std::string>().size(), "2026-01-01T00:00:00.000Z"s.size());
  EXPECT_EQ(line.at("time").get<std::string>().back(), 'Z');
}

TEST(Log, JsonKeepsHostileText) {
  for (const auto& text :
       {"quote \" backslash \\ slash /"s, "line\nfeed\r\n\ttab"s, "nul \0 inside"s, "bell \x07 del \x7f"s,
        "{\"level\":\"error\"}"s, "format {} %s %v %%"s, "grüße 漢字 \U0001F600"s, ""s}) {
    const auto line = one_json_line(captured(LogFormat::kJson, [&](Log& log) { log.info(text, {{text, text}}); }));
    EXPECT_EQ(line.at("message"), text);
    EXPECT_EQ(line.at(text), text);
  }
}

TEST(Log, JsonReplacesBytesThatAreNotUtf8) {
  const std::pair<std::string, std::string> cases[] = {
      {"\xFF", "\uFFFD"},                                // never a lead byte
      {"a\xC3", "a\uFFFD"},                              // cut after the lead byte
      {"\xC0\xAF", "\uFFFD\uFFFD"},                      // overlong slash
      {"\xE0\x80\xAF", "\uFFFD\uFFFD\uFFFD"},            // overlong, three bytes
      {"\xED\xA0\x80", "\uFFFD\uFFFD\uFFFD"},            // surrogate
      {"\xF4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD"},  // above U+10FFFF
      {"\xF0\x9F\x98", "\uFFFD\uFFFD\uFFFD"},            // cut in the middle
      {"\x80z", "\uFFFDz"},                              // continuation without a lead
  };
  for (const auto& [bytes, wanted] : cases)
    EXPECT_EQ(one_json_line(captured(LogFormat::kJson, [&](Log& log) { log.error(bytes); })).at("message"), wanted);
}

TEST(Log, JsonIsValidForEveryPairOfBytes) {
  std::string all;
  for (int high = 0; high < 256; ++high)
    for (int low = 0; low < 256; ++low) all += {static_cast<char>(high), static_cast<char>(low)};
  one_json_line(captured(LogFormat::kJson, [&](Log& log) { log.info("bytes", {{"all", all}}); }));
}

TEST(Log, TextQuotesWhatIsNotAWord) {
  const std::string line = captured(LogFormat::kText, [](Log& log) {
    log.info("pod admitted",
             {{"rule", "default"}, {"empty", ""}, {"why", "two words"}, {"fake", "x level=error\nerror y"}});
  });
  const std::string wanted =
      "Z info pod admitted rule=default empty=\"\" why=\"two words\" fake=\"x level=error\\nerror y\"\n";
  ASSERT_GT(line.size(), wanted.size());
  EXPECT_EQ(line.substr(line.size() - wanted.size()), wanted);
}

TEST(Log, TextMessageCannotBreakItsLine) {
  const std::string line = captured(LogFormat::kText, [](Log& log) { log.info("one\ntwo\x1b[31m"); });
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  EXPECT_EQ(line.find('\x1b'), std::string::npos);
}

TEST(Log, DropsLinesBelowTheLevel) {
  const auto all_levels = [](Log& log) {
    log.debug("d");
    log.info("i");
    log.warning("w");
    log.error("e");
  };
  const auto lines = [&](Level level) {
    const std::string text = captured(LogFormat::kText, all_levels, level);
    return std::count(text.begin(), text.end(), '\n');
  };
  EXPECT_EQ(lines(Level::kDebug), 4);
  EXPECT_EQ(lines(Level::kInfo), 3);
  EXPECT_EQ(lines(Level::kWarning), 2);
  EXPECT_EQ(lines(Level::kError), 1);
}

TEST(Log, NullLogWritesNothing) {
  testing::internal::CaptureStderr();
  make_null_log()->error("nobody hears this");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace nezha::obs
