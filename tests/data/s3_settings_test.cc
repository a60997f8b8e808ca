// SPDX-License-Identifier: Apache-2.0
#include "data/s3/s3_settings.h"

#include <gtest/gtest.h>

#include <map>

#include "data/s3/s3_xml.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using testing::IsError;
using testing::kInvalid;

Environment EnvironmentOf(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const std::string& name) {
    const auto it = values.find(name);
    return it == values.end() ? "" : it->second;
  };
}

std::string UrlWith(std::map<std::string, std::string> values, const S3Place& place) {
  const auto settings = ReadS3Settings(EnvironmentOf(std::move(values)), {});
  EXPECT_OK(settings);
  return settings.ok() ? settings->UrlOf(place) : "";
}

TEST(S3PathTest, HasABucketAndAKey) {
  const auto place = ParseS3Path("s3://bucket/a/b c");
  ASSERT_OK(place);
  EXPECT_EQ(place->bucket, "bucket");
  EXPECT_EQ(place->key, "a/b c");
  EXPECT_EQ(place->Path(), "s3://bucket/a/b c");
  EXPECT_EQ(place->FolderPrefix(), "a/b c/");
  for (const char* const root : {"s3://bucket", "s3://bucket/"}) {
    EXPECT_EQ(ParseS3Path(root)->FolderPrefix(), "") << root;
  }
  EXPECT_THAT(ParseS3Path("s3://"), IsError(kInvalid, "names no bucket"));
  EXPECT_THAT(ParseS3Path("s3:///key"), IsError(kInvalid, "names no bucket"));
  EXPECT_THAT(ParseS3Path("s3://a@b.c/key"), IsError(kInvalid, "cannot be the name of a bucket"));
  EXPECT_THAT(ParseS3Path("s3://ab/key"), IsError(kInvalid, "cannot be the name of a bucket"));
  EXPECT_THAT(ParseS3Path(std::string("s3://abc/\0", 10)), IsError(kInvalid, "zero byte"));
  EXPECT_THAT(ParseS3Path("s3://abc/" + std::string(1025, 'x')), IsError(kInvalid, "1024 bytes"));
}

TEST(S3SettingsTest, BucketsAreHostsAtAwsWhereTheyCanBe) {
  const S3Place place{"my-bucket", "a/b c"};
  EXPECT_EQ(UrlWith({}, place), "https://my-bucket.s3.us-east-1.amazonaws.com/a/b%20c");
  EXPECT_EQ(UrlWith({{"AWS_DEFAULT_REGION", "eu-west-1"}}, place),
            "https://my-bucket.s3.eu-west-1.amazonaws.com/a/b%20c");
  EXPECT_EQ(UrlWith({{"AWS_REGION", "cn-north-1"}, {"AWS_DEFAULT_REGION", "eu-west-1"}}, place),
            "https://my-bucket.s3.cn-north-1.amazonaws.com.cn/a/b%20c");
  EXPECT_EQ(UrlWith({}, {"with.dots", "k"}), "https://s3.us-east-1.amazonaws.com/with.dots/k");
  EXPECT_EQ(UrlWith({}, {"Old_Name", ""}), "https://s3.us-east-1.amazonaws.com/Old_Name/");
}

TEST(S3SettingsTest, BucketsArePathsElsewhere) {
  const S3Place place{"bucket", "k"};
  EXPECT_EQ(UrlWith({{"S3_ENDPOINT", "h:9000"}, {"S3_USE_HTTPS", "0"}}, place),
            "http://h:9000/bucket/k");
  EXPECT_EQ(UrlWith({{"S3_ENDPOINT", "h.example"}}, place), "https://h.example/bucket/k");
  EXPECT_EQ(UrlWith({{"AWS_ENDPOINT_URL", "http://b"}, {"S3_ENDPOINT", "c"}}, place),
            "http://b/bucket/k");
  EXPECT_EQ(
      UrlWith({{"AWS_ENDPOINT_URL_S3", "http://a/x/"}, {"AWS_ENDPOINT_URL", "http://b"}}, place),
      "http://a/x/bucket/k");
}

TEST(S3SettingsTest, MistakesNameTheVariable) {
  EXPECT_THAT(ReadS3Settings(EnvironmentOf({{"S3_USE_HTTPS", "maybe"}}), {}),
              IsError(kInvalid, "S3_USE_HTTPS is 'maybe', wanted 1 or 0"));
  EXPECT_THAT(ReadS3Settings(EnvironmentOf({{"AWS_ENDPOINT_URL", "gopher://x"}}), {}),
              IsError(kInvalid, "AWS_ENDPOINT_URL is 'gopher://x'"));
  EXPECT_THAT(ReadS3Settings(EnvironmentOf({{"AWS_REGION", "evil.example/"}}), {}),
              IsError(kInvalid, "the region 'evil.example/' has '.'"));
  const auto settings = ReadS3Settings(EnvironmentOf({{"S3_VERIFY_SSL", "false"}}), {});
  ASSERT_OK(settings);
  EXPECT_FALSE(settings->verify_certificates);
}

TEST(S3XmlTest, ReadsAPage) {
  const auto page = ParseListing(
      "<?xml version='1.0'?><ListBucketResult xmlns='http://s3.amazonaws.com/doc/2006-03-01/'>"
      "<EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>"
      "<NextContinuationToken>a&amp;b</NextContinuationToken>"
      "<Contents><Key>a+b%2Bc%25</Key></Contents><Contents><Key>%C3%BC</Key></Contents>"
      "<CommonPrefixes><Prefix>d/</Prefix></CommonPrefixes></ListBucketResult>");
  ASSERT_OK(page);
  EXPECT_EQ(page->keys, (std::vector<std::string>{"a b+c%", "\xc3\xbc"}));
  EXPECT_EQ(page->prefixes, (std::vector<std::string>{"d/"}));
  EXPECT_EQ(page->next, "a&b");
}

TEST(S3XmlTest, WhatIsNoListingIsAnError) {
  for (const char* const text :
       {"", "<", "no xml", "<html><body>log in</body></html>", "<ListBucketResult><Contents>",
        "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>"}) {
    EXPECT_EQ(ParseListing(text).status().code(), StatusCode::kDataLoss) << text;
  }
}

TEST(S3XmlTest, PartsAreNumberedFromOne) {
  EXPECT_EQ(CompletionXml({"\"x\"", "<y>"}),
            "<?xml version=\"1.0\"?><CompleteMultipartUpload>"
            "<Part><PartNumber>1</PartNumber><ETag>\"x\"</ETag></Part>"
            "<Part><PartNumber>2</PartNumber><ETag>&lt;y&gt;</ETag></Part>"
            "</CompleteMultipartUpload>");
}

}  // namespace
}  // namespace tenon
