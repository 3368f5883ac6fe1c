// Aim: each small parser accepts exactly its language; the corners are overflow, empty text and look-alikes.
#include "nezha/base/text.h"

#include <gtest/gtest.h>

namespace nezha {
namespace {

TEST(Text, LowerTouchesAsciiOnly) { EXPECT_EQ(to_lower("AbC-Ä9"), "abc-Ä9"); }

TEST(Text, EqualsIgnoringCase) {
  EXPECT_TRUE(iequals("Content-Length", "content-lENGTH"));
  EXPECT_TRUE(iequals("", ""));
  EXPECT_FALSE(iequals("a", "ab"));
  EXPECT_FALSE(iequals("[", "{"));  // differ by the case bit only
}

TEST(Text, TrimsBlanksAndTabsOnly) {
  EXPECT_EQ(trim(" \t a b \t"), "a b");
  EXPECT_EQ(trim(" \t "), "");
  EXPECT_EQ(trim(""), "");
  EXPECT_EQ(trim("\r\na"), "\r\na");
}

TEST(Text, SplitKeepsEmptyPieces) {
  using Pieces = std::vector<std::string_view>;
  EXPECT_EQ(split("a,b", ','), (Pieces{"a", "b"}));
  EXPECT_EQ(split(",a,,", ','), (Pieces{"", "a", "", ""}));
  EXPECT_EQ(split("", ','), (Pieces{""}));
}

TEST(Text, Decimals) {
  EXPECT_EQ(parse_decimal("0"), 0U);
  EXPECT_EQ(parse_decimal("007"), 7U);
  EXPECT_EQ(parse_decimal("18446744073709551615"), UINT64_MAX);
  for (const char* bad : {"", "-1", "+1", " 1", "1 ", "1a", "0x1", "1.0", "18446744073709551616"})
    EXPECT_EQ(parse_decimal(bad), std::nullopt) << bad;
}

TEST(Text, Sizes) {
  EXPECT_EQ(parse_size_bytes("1048576"), 1U << 20);
  EXPECT_EQ(parse_size_bytes("64Mi"), 64U << 20);
  EXPECT_EQ(parse_size_bytes("2G"), 2'000'000'000U);
  EXPECT_EQ(parse_size_bytes("0.5Gi"), 1U << 29);
  EXPECT_EQ(parse_size_bytes("1Ti"), uint64_t{1} << 40);
  EXPECT_EQ(parse_size_bytes("3k"), 3000U);
  EXPECT_EQ(parse_size_bytes("3Ki"), 3072U);
  EXPECT_EQ(parse_size_bytes("0"), 0U);
  for (const char* bad :
       {"", "Gi", "1GB", "1gi", "1K", "1ki", "-1", "1 Gi", "1.2.3", ".", "1e3", "9Ei0", "100Ei", "1m"})
    EXPECT_EQ(parse_size_bytes(bad), std::nullopt) << bad;
}

TEST(Text, Durations) {
  EXPECT_EQ(parse_duration_s("90"), 90);
  EXPECT_EQ(parse_duration_s("30s"), 30);
  EXPECT_EQ(parse_duration_s("5m"), 300);
  EXPECT_EQ(parse_duration_s("24h"), 86400);
  EXPECT_EQ(parse_duration_s("7d"), 604800);
  EXPECT_EQ(parse_duration_s("0"), 0);
  EXPECT_EQ(parse_duration_s("1000000000"), 1'000'000'000);
  for (const char* bad :
       {"", "s", "-5s", "1h30m", "1.5h", "5 m", "1w", "1000000001", "1000000d", "99999999999999999999"})
    EXPECT_EQ(parse_duration_s(bad), std::nullopt) << bad;
}

TEST(Text, Dns1123Subdomains) {
  const std::string label63(63, 'a');
  for (const std::string& good : {std::string("a"), std::string("0"), std::string("a-b.c9"), label63,
                                  label63 + "." + label63 + "." + label63 + "." + std::string(61, 'b')})
    EXPECT_TRUE(is_dns1123_subdomain(good)) << good;
  for (const std::string& bad :
       {std::string(), std::string("."), std::string("a."), std::string(".a"), std::string("a..b"), std::string("-a"),
        std::string("a-"), std::string("A"), std::string("a_b"), std::string("a b"), std::string("ä"), label63 + "a",
        label63 + "." + label63 + "." + label63 + "." + std::string(62, 'b')})
    EXPECT_FALSE(is_dns1123_subdomain(bad)) << bad;
}

TEST(Text, PrintableIsOneLineOfUtf8WithinItsLimit) {
  EXPECT_EQ(printable("plain", 5), "plain");
  EXPECT_EQ(printable("plain", 4), "plai…");
  EXPECT_EQ(printable("", 0), "");
  EXPECT_EQ(printable("a\nb\x1b[m\x7f", 10), "a?b?[m?");
  EXPECT_EQ(printable(std::string("\0", 1), 10), "?");
  EXPECT_EQ(printable("\xFF\xC3", 10), "\uFFFD\uFFFD");
  EXPECT_EQ(printable("ää", 3), "ä…");  // never cut inside a character
}

TEST(Text, Utf8Lengths) {
  const std::pair<std::string_view, size_t> cases[] = {
      {"a", 1},           {"ä", 2},        {"漢", 3},           {"\U0001F600", 4},   {"\x80", 0},
      {"\xC3", 0},        {"\xC0\xAF", 0}, {"\xE0\x80\xAF", 0}, {"\xED\xA0\x80", 0}, {"\xF4\x90\x80\x80", 0},
      {"\xF0\x9F\x98", 0}};
  for (const auto& [text, length] : cases) EXPECT_EQ(utf8_length(text, 0), length) << text;
}

TEST(Text, CanonicalAddresses) {
  EXPECT_EQ(canonical_ip("10.96.0.1"), "10.96.0.1");
  EXPECT_EQ(canonical_ip("FD00:0:0::1"), "fd00::1");
  EXPECT_EQ(canonical_ip("::FFFF:10.0.0.1"), "::ffff:10.0.0.1");
  for (const char* bad :
       {"", "10.96.0", "10.96.0.256", "010.0.0.1", "10.0.0.1 ", "[::1]", "::1%eth0", "1::2::3", "host"})
    EXPECT_EQ(canonical_ip(bad), std::nullopt) << bad;
}

}  // namespace
}  // namespace nezha
