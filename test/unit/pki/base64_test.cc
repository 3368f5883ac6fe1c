// Base64 against the vectors of RFC 4648, section 10, and text that is none.
#include "nezha/pki/base64.h"

#include <gtest/gtest.h>

#include <utility>

namespace nezha::pki {
namespace {

TEST(Base64, Rfc4648Vectors) {
  const std::pair<const char*, const char*> kVectors[] = {{"", ""},
                                                          {"f", "Zg=="},
                                                          {"fo", "Zm8="},
                                                          {"foo", "Zm9v"},
                                                          {"foob", "Zm9vYg=="},
                                                          {"fooba", "Zm9vYmE="},
                                                          {"foobar", "Zm9vYmFy"}};
  for (const auto& [plain, encoded] : kVectors) {
    EXPECT_EQ(base64_encode(plain), encoded);
    EXPECT_EQ(base64_decode(encoded).value(), plain);
  }
}

TEST(Base64, EveryByteSurvives) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  EXPECT_EQ(base64_decode(base64_encode(bytes)).value(), bytes);
}

TEST(Base64, RefusesWhatIsNone) {
  for (const char* text : {"Z", "Zg=", "Zg", "====", "Z===", "Zm9v\n", "Zm 9", "Zm9v====", "=m9v", "Zm9-"}) {
    EXPECT_FALSE(base64_decode(text)) << text;
  }
}

}  // namespace
}  // namespace nezha::pki
