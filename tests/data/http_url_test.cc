// SPDX-License-Identifier: Apache-2.0
#include "data/http/url.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

TEST(UrlTest, EncodesAllButLettersDigitsAndFourSigns) {
  EXPECT_EQ(PercentEncoded("aZ09-_.~"), "aZ09-_.~");
  EXPECT_EQ(PercentEncoded("a b+c%/"), "a%20b%2Bc%25%2F");
  EXPECT_EQ(PercentEncodedPath("a/b c"), "a/b%20c");
  EXPECT_EQ(PercentEncoded("\xc3\xbc"), "%C3%BC");
  EXPECT_EQ(PercentEncoded(std::string_view("\0", 1)), "%00");
}

TEST(UrlTest, DecodesWhatAnEncoderMakes) {
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  EXPECT_EQ(QueryDecoded(PercentEncoded(all)), all);
  EXPECT_EQ(QueryDecoded("a+b%2b"), "a b+");
  for (const char* const odd : {"%", "%4", "%zz", "a%g1"}) EXPECT_EQ(QueryDecoded(odd), odd);
}

TEST(UrlTest, FieldsOfAQueryAreInTheOrderOfTheirNames) {
  EXPECT_EQ(QueryOf({{"uploads", ""}}), "uploads=");
  EXPECT_EQ(QueryOf({{"b", "2 3"}, {"a-b", "/"}, {"a", "x"}}), "a=x&a-b=%2F&b=2%203");
}

TEST(UrlTest, AddressesComeInParts) {
  UrlParts parts;
  ASSERT_TRUE(ParseUrl("http://h:8080/a/b//", "https", &parts));
  EXPECT_EQ(parts.scheme + "|" + parts.host + "|" + parts.port + "|" + parts.path,
            "http|h|8080|/a/b");
  ASSERT_TRUE(ParseUrl("minio.example.com", "https", &parts));
  EXPECT_EQ(parts.scheme + "|" + parts.host + "|" + parts.port + "|" + parts.path,
            "https|minio.example.com||");
  ASSERT_TRUE(ParseUrl("[::1]:9000", "http", &parts));
  EXPECT_EQ(parts.host + "|" + parts.port, "[::1]|9000");
  for (const char* const wrong :
       {"", "http://", "ftp://h", "http://h:port", "http://h:", "http://u@h", "http://h?x=1",
        "http://h/a b", "http://h o", "http://h:123456"}) {
    EXPECT_FALSE(ParseUrl(wrong, "https", &parts)) << wrong;
  }
}

}  // namespace
}  // namespace tenon
