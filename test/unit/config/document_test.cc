// Aim: whatever text comes in, parsing ends soon with a value or one line that says where and what is wrong.
#include <gtest/gtest.h>

#include <string>

#include "nezha/base/limits.h"
#include "nezha/base/text.h"
#include "nezha/config/parse.h"
#include "test/unit/config/expect.h"

namespace nezha::config {
namespace {

std::string error_for(std::string_view yaml) { return error_of(parse_settings(yaml, "f.yaml")); }

std::string repeated(std::string_view text, size_t bytes) {
  std::string out;
  while (out.size() + text.size() <= bytes) out += text;
  return out;
}

TEST(Document, ErrorsOfTheTextItself) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "f.yaml: the document (line 1): is empty; write at least upstreams: []"},
      {"# only a comment\n", "f.yaml: the document (line 1): is empty; write at least upstreams: []"},
      {"a: [1, 2",
       "f.yaml: the document (line 1): is not valid YAML at column 1 (end of sequence flow not found); check "
       "indentation, quotes and brackets there"},
      {"upstreams:\n  - name: a\n   hosts: [b]\n",
       "f.yaml: the document (line 3): is not valid YAML at column 4 (end of sequence not found); check indentation, "
       "quotes and "
       "brackets there"},
      {"upstreams: []\ncache: {memory: 1Gi, memory: 2Gi}\n",
       "f.yaml: cache.memory (line 2): is given twice in the same map; keep one of them"},
      {"upstreams: []\nupstreams: []\n",
       "f.yaml: upstreams (line 2): is given twice in the same map; keep one of them"},
      {"upstreams: &all []\n",
       "f.yaml: upstreams (line 1): uses a YAML anchor or alias (& or *); they are not supported, repeat the value "
       "(quote "
       "text that starts so)"},
      {"upstreams:\n  - hosts: [&h a.example]\n",
       "f.yaml: upstreams[0].hosts[0] (line 2): uses a YAML anchor or alias (& or *); they are not supported, repeat "
       "the "
       "value (quote text that starts so)"},
      {"cache: !!map {}\n", "f.yaml: cache (line 1): has the YAML tag \"tag:yaml.org,2002:map\"; remove the tag"},
      {"webhook: {sidecarImage: !secret x}\n",
       "f.yaml: webhook.sidecarImage (line 1): has the YAML tag \"!secret\"; remove the tag"},
      {"{[a]: b}\n", "f.yaml: the document (line 1): has a map or list as a key; keys are plain text"},
      {"~: b\n", "f.yaml: the document (line 1): has an empty key; write KEY: VALUE"},
      {"upstreams: []\n---\nupstreams: []\n",
       "f.yaml: the document (line 2): holds a second YAML document; keep one and remove the line ---"},
      {"- a\n- b\n",
       "f.yaml: the document (line 1): is a list; write a map with the keys upstreams, injection, delegation, cache, "
       "webhook, listen, resolver or tls"},
      {"just text",
       "f.yaml: the document (line 1): is a single value; write a map with the keys upstreams, injection, "
       "delegation, cache, webhook, listen, resolver or tls"},
      {"*alias",
       "f.yaml: the document (line 1): is not valid YAML at column 1 (the referenced anchor is not defined); check "
       "indentation, quotes and brackets there"},
  };
  for (const auto& [yaml, wanted] : cases) EXPECT_EQ(error_for(yaml), wanted) << yaml;
}

TEST(Document, RefusesNestingByDepth) {
  const size_t depth = limits::kConfigNestingMax;
  const std::string in_limit = "a: " + std::string(depth - 1, '[') + std::string(depth - 1, ']');
  EXPECT_EQ(error_for(in_limit).find("nested"), std::string::npos);
  const std::string over = "a: " + std::string(depth, '[') + std::string(depth, ']');
  EXPECT_NE(error_for(over).find("(line 1): is nested deeper than 32 levels; flatten it"), std::string::npos)
      << error_for(over);
}

TEST(Document, RefusesTextOverTheSizeLimit) {
  const std::string at_limit = "# " + std::string(limits::kConfigBytesMax - 16, 'x') + "\nupstreams: []";
  ASSERT_EQ(at_limit.size(), limits::kConfigBytesMax);
  EXPECT_EQ(error_for(at_limit), "(no error)");
  EXPECT_EQ(error_for(at_limit + " "), "f.yaml: the document (line 1): has 1048577 bytes; the limit is 1048576");
}

// Each of these is a text made to cost as much as possible; the test is that it ends.
TEST(Document, HostileTextsEnd) {
  const size_t size = limits::kConfigBytesMax / 8;
  for (const std::string_view piece :
       {"[",      "{",  "{a: ", "- ",   "? ",           "a: ", "!",    "&",     "*",    "\"",   "'",
        "|\n",    "#",  "\n",   " ",    "\t",           "a",   "a\n",  "a,",    "\\",   "%",    "---\n",
        "a: b\n", ": ", "[]",   "\xFF", "\xEF\xBB\xBF", "[a",  "- - ", "\"\\x", "&a [", "!<a> "}) {
    const std::string text = repeated(piece, size);
    EXPECT_NE(error_for(text), "(no error)") << piece;
    EXPECT_NE(error_for("upstreams: [" + text.substr(0, size - 64)), "(no error)") << piece;
  }
}

TEST(Document, TheCostliestTextsEndAtFullSize) {
  for (const std::string_view piece : {"{a,", "{:", "a\n", "[:"})
    EXPECT_NE(error_for(repeated(piece, limits::kConfigBytesMax)), "(no error)") << piece;
}

TEST(Document, BillionLaughsIsRefusedAtItsFirstAnchor) {
  EXPECT_NE(error_for("a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\n").find("anchor or alias"), std::string::npos);
}

TEST(Document, ZeroBytesAndControlCharactersStayInsideTheMessage) {
  using namespace std::string_literals;
  const std::string message = error_for("\"up\\nstreams\\e[31m\": []");
  EXPECT_EQ(message.substr(0, message.find(" (line")), "f.yaml: [\"up?streams?[31m\"]");
  EXPECT_NE(error_for("upstreams: [{name: \"a\\0b\", hosts: [a.example]}]"), "(no error)");
}

// yaml-cpp repeats bytes of the text in its own messages, and a message may be cut inside a character.
TEST(Document, MessagesAreUtf8OnOneLineWhateverTheText) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  for (size_t begin = 0; begin < bytes.size(); ++begin) {
    const std::string message = error_for(bytes.substr(begin) + bytes.substr(0, begin));
    for (size_t at = 0; at < message.size(); at += utf8_length(message, at)) {
      ASSERT_NE(utf8_length(message, at), 0U) << message;
      ASSERT_GE(static_cast<unsigned char>(message[at]), 0x20) << message;
    }
  }
  EXPECT_EQ(error_for("upstreams: [{name: a" + std::string(79, 'b') + "ä}]").find("\xC3\""), std::string::npos);
}

TEST(Document, AFullSizedConfigurationIsRead) {
  std::string yaml = "upstreams:\n";
  for (int i = 0; i < 700; ++i) {
    yaml += "  - name: u" + std::to_string(i) + "\n    hosts:\n";
    for (int j = 0; j < 50; ++j) yaml += "      - h" + std::to_string(j) + ".u" + std::to_string(i) + ".example\n";
  }
  ASSERT_GT(yaml.size(), limits::kConfigBytesMax * 7 / 10);
  ASSERT_LT(yaml.size(), limits::kConfigBytesMax);
  EXPECT_EQ(value_of(parse_settings(yaml, "f.yaml")).upstreams.size(), 700U);
}

}  // namespace
}  // namespace nezha::config
