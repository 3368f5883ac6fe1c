// Manifests in and out: types and order are kept, broken text is refused with its line.
#include "cli/manifest.h"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>

namespace nezha::cli {
namespace {

using testing::HasSubstr;
using Json = nlohmann::ordered_json;

Json one(std::string_view text) {
  auto manifest = read_manifest(text, "x");
  EXPECT_TRUE(manifest) << manifest.error().message;
  EXPECT_EQ(manifest.value().documents.size(), 1u);
  return manifest.value().documents.at(0);
}

TEST(Manifest, QuotedScalarsStayStringsThroughYamlAndJson) {
  const Json read = one("a: \"yes\"\nb: '012'\nc: \"1e3\"\nd: \"null\"\ne: !!str 12\nf: |\n  true\ng: >-\n  5\n");
  EXPECT_EQ(read.dump(), R"({"a":"yes","b":"012","c":"1e3","d":"null","e":"12","f":"true\n","g":"5"})");
  for (const auto format : {Format::kYaml, Format::kJson}) EXPECT_EQ(one(write_manifest({read}, format)), read);
}

TEST(Manifest, KeysKeepTheirOrder) {
  const Json read = one("z: 1\na: 2\nm: {x: 1, b: 2}\n");
  EXPECT_EQ(write_manifest({read}, Format::kYaml), "z: 1\na: 2\nm:\n  x: 1\n  b: 2\n");
}

TEST(Manifest, WritesEveryShape) {
  const Json value = Json::parse(
      R"({"empty":{},"none":[],"null":null,"t":true,"n":-1,"f":0.5,"list":[[1],[],{"a":{"b":[{"c":1},{"d":"x"}]}}],)"
      R"("multi":"a\n\n  b: c\n","tab":"a\tb\n","end":"a\nb","nl":"\n","colon":"a: b","uni":"\u00e9\ud83d\ude00",)"
      R"("ctl":"\u0001"})");
  EXPECT_EQ(one(write_manifest({value}, Format::kYaml)), value) << write_manifest({value}, Format::kYaml);
}

Json random_json(int depth) {
  const int kind = *rc::gen::inRange(0, depth > 0 ? 7 : 5);
  if (kind == 0) return nullptr;
  if (kind == 1) return *rc::gen::arbitrary<bool>();
  if (kind == 2) return *rc::gen::arbitrary<int64_t>();
  if (kind <= 4) {
    std::string text;
    for (const auto part : *rc::gen::container<std::vector<size_t>>(rc::gen::inRange<size_t>(0, 14)))
      text += std::vector<std::string>{
          "a", " ", "\n", ":", "#", "-", "'", "\"", "\\", "1", "\u00e9", "yes", "\t", "{"}[part];
    return text;
  }
  Json value = kind == 5 ? Json::array() : Json::object();
  const int count = *rc::gen::inRange(0, 4);
  for (int i = 0; i < count; ++i) {
    if (kind == 5)
      value.push_back(random_json(depth - 1));
    else
      value[*rc::gen::element<std::string>("a", "b/c", "yes", "1", "- x", "", "k: v", "~")] = random_json(depth - 1);
  }
  return value;
}

RC_GTEST_PROP(Manifest, AnyTreeComesBackFromYaml, ()) {
  const Json value{{"root", random_json(4)}};
  const auto back = read_manifest(write_manifest({value}, Format::kYaml), "x");
  RC_ASSERT(static_cast<bool>(back));
  RC_ASSERT(back.value().documents == std::vector<Json>{value});
}

TEST(Manifest, DocumentsAreSeparatedAndEmptyOnesDropped) {
  const auto read = read_manifest("---\na: 1\n---\n---\n# only a comment\n---\nb: 2\n", "x");
  ASSERT_EQ(read.value().documents.size(), 2u);
  EXPECT_EQ(write_manifest(read.value().documents, Format::kYaml), "a: 1\n---\nb: 2\n");
  EXPECT_EQ(write_manifest(read.value().documents, Format::kJson), "{\n  \"a\": 1\n}\n{\n  \"b\": 2\n}\n");
}

TEST(Manifest, AnchorsAndMergeKeysAreResolved) {
  EXPECT_EQ(one("base: &b {x: 1, y: 2}\nuse: {<<: *b, y: 3}\nlist: [*b]\n").dump(),
            R"({"base":{"x":1,"y":2},"use":{"y":3,"x":1},"list":[{"x":1,"y":2}]})");
}

TEST(Manifest, JsonIsRecognisedAndKeptExact) {
  const auto read = read_manifest(R"( {"b":9007199254740993,"a":"\ud83d\ude00"})", "x");
  EXPECT_EQ(read.value().format, Format::kJson);
  EXPECT_EQ(write_manifest(read.value().documents, Format::kJson),
            "{\n  \"b\": 9007199254740993,\n  \"a\": \"\U0001F600\"\n}\n");
}

struct Broken {
  const char* text;
  const char* message;
};

TEST(Manifest, BrokenTextIsRefusedWithItsLine) {
  const Broken cases[] = {{"a: [1", "x: line"},
                          {"a: 1\nb: 2\na: 3\n", "x: line 3: the key \"a\" stands here twice"},
                          {"a: 1\n? [b]\n: 2\n", "line 2: a key must be"},
                          {"a: .inf\n", "line 1: .inf has no place"},
                          {"a: *nowhere\n", "x: line 1"},
                          {"{\"a\": ]", "x: line 1"},
                          {"<<: 1\n", "<< must bring a mapping"}};
  for (const auto& c : cases) {
    const auto read = read_manifest(c.text, "x");
    if (read)
      ADD_FAILURE() << c.text << " was read";
    else
      EXPECT_THAT(read.error().message, HasSubstr(c.message)) << c.text;
  }
}

TEST(Manifest, AnchorsCannotMultiplyWithoutEnd) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before;
    for (int n = 0; n < 9; ++n) text += ", " + before;
    text += "]\n";
  }
  EXPECT_FALSE(read_manifest(text, "x"));
}

TEST(Manifest, DepthIsLimited) {
  EXPECT_FALSE(read_manifest(std::string(100'000, '['), "x"));
  EXPECT_FALSE(read_manifest(std::string(300, '[') + std::string(300, ']'), "x"));
}

}  // namespace
}  // namespace nezha::cli
