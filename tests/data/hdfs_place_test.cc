// SPDX-License-Identifier: Apache-2.0
#include "data/hdfs/hdfs_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "data/hdfs/hdfs_error.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::IsError;
using testing::kInvalid;

HdfsSettings SettingsOf(std::map<std::string, std::string> values) {
  const auto settings =
      ReadHdfsSettings([&](const std::string& name) { return values[name]; }, "the-login");
  EXPECT_OK(settings);
  return settings.ok() ? *settings : HdfsSettings();
}

std::vector<std::string> NamenodesFor(const std::string& path, const std::string& namenodes = "") {
  const auto place = ParseHdfsPath(path);
  EXPECT_OK(place);
  return SettingsOf({{"TENON_HDFS_NAMENODES", namenodes}}).NamenodesOf(*place);
}

HdfsError ErrorWith(int status, const std::string& body) {
  HttpResponse response;
  response.status = status;
  response.body = body;
  return HdfsErrorOf(response);
}

TEST(HdfsPlaceTest, HasANamenodeAndAPathWithoutEmptyParts) {
  const auto place = ParseHdfsPath("hdfs://nn:8020//a/b c//d/");
  ASSERT_OK(place);
  EXPECT_EQ(place->authority, "nn:8020");
  EXPECT_EQ(place->path, "/a/b c/d");
  EXPECT_EQ(place->Path(), "hdfs://nn:8020/a/b c/d");
  EXPECT_EQ(place->Folder().path, "/a/b c");
  EXPECT_EQ(place->Folder().Folder().Folder().Folder().path, "/");
  EXPECT_EQ(place->In("e").Path(), "hdfs://nn:8020/a/b c/d/e");
  for (const char* const root : {"webhdfs://nn", "webhdfs://nn/"}) {
    EXPECT_EQ(ParseHdfsPath(root)->path, "/") << root;
    EXPECT_EQ(ParseHdfsPath(root)->In("a").path, "/a") << root;
  }
  EXPECT_EQ(ParseHdfsPath("hdfs:///a")->authority, "");
}

TEST(HdfsPlaceTest, WhatCannotBeAPathIsAMistake) {
  for (const char* const path : {"webhdfs:///a", "swebhdfs://", "hdfs://a b/c", "hdfs://u@nn/c",
                                 "hdfs://nn:port/c", "hdfs://nn?x/c"}) {
    EXPECT_THAT(ParseHdfsPath(path), IsError(kInvalid, "names no namenode")) << path;
  }
  EXPECT_THAT(ParseHdfsPath("hdfs://nn/a/../b"), IsError(kInvalid, "no '..' in paths"));
  EXPECT_THAT(ParseHdfsPath("hdfs://nn/./b"), IsError(kInvalid, "no '.' in paths"));
  EXPECT_THAT(ParseHdfsPath(std::string("hdfs://nn/\0", 11)), IsError(kInvalid, "zero byte"));
}

TEST(HdfsSettingsTest, ThePortOfHdfsIsNotThatOfItsWebServer) {
  EXPECT_THAT(NamenodesFor("hdfs://nn/x"), ElementsAre("http://nn:9870"));
  EXPECT_THAT(NamenodesFor("hdfs://nn:8020/x"), ElementsAre("http://nn:9870"));
  EXPECT_THAT(NamenodesFor("webhdfs://nn/x"), ElementsAre("http://nn:9870"));
  EXPECT_THAT(NamenodesFor("webhdfs://nn:50070/x"), ElementsAre("http://nn:50070"));
  EXPECT_THAT(NamenodesFor("webhdfs://[::1]:50070/x"), ElementsAre("http://[::1]:50070"));
  EXPECT_THAT(NamenodesFor("swebhdfs://nn/x"), ElementsAre("https://nn:9871"));
}

TEST(HdfsSettingsTest, NamenodesOfTheEnvironmentAreThoseOfHdfs) {
  const std::string two = "nn1,https://nn2,http://nn3:1/gateway";
  EXPECT_THAT(NamenodesFor("hdfs://cluster/x", two),
              ElementsAre("http://nn1:9870", "https://nn2:9871", "http://nn3:1/gateway"));
  EXPECT_THAT(NamenodesFor("webhdfs://nn/x", two), ElementsAre("http://nn:9870"));
  for (const char* const wrong : {"://", "nn1,,nn2", "ftp://nn", "nn:x"}) {
    const auto settings = ReadHdfsSettings(
        [&](const std::string& name) { return name == "TENON_HDFS_NAMENODES" ? wrong : ""; }, "");
    EXPECT_THAT(settings, IsError(kInvalid, "TENON_HDFS_NAMENODES has '")) << wrong;
  }
}

TEST(HdfsSettingsTest, TheUserIsThatOfHadoopOrOfTheAccount) {
  EXPECT_EQ(SettingsOf({}).user, "the-login");
  EXPECT_EQ(SettingsOf({{"HADOOP_USER_NAME", "u"}}).user, "u");
  EXPECT_EQ(SettingsOf({{"TENON_HDFS_TOKEN", "t"}}).token, "t");
}

TEST(HdfsErrorTest, IsWhatTheServerSays) {
  const HdfsError error = ErrorWith(
      403,
      R"json({"RemoteException":{"exception":"AccessControlException","javaClassName":"x.y",)json"
      R"json("message":"Permission denied: user=bob\n\tat org.apache.Hadoop(X.java:1)"}})json");
  const HdfsPlace place{"hdfs", "nn", "/f"};
  const Status status = StatusOfHdfs(error, "read", place, "http://nn:9870", {.user = "bob"});
  EXPECT_EQ(status.code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(Message(status),
            "cannot read 'hdfs://nn/f': 403 AccessControlException: Permission denied: user=bob; "
            "the user is 'bob', which HADOOP_USER_NAME changes");
}

TEST(HdfsErrorTest, CodesAreThoseOfOtherFiles) {
  const std::pair<const char*, StatusCode> cases[] = {
      {"FileNotFoundException", StatusCode::kNotFound},
      {"FileAlreadyExistsException", StatusCode::kAlreadyExists},
      {"PathIsNotEmptyDirectoryException", StatusCode::kAlreadyExists},
      {"ParentNotDirectoryException", StatusCode::kFailedPrecondition},
      {"DSQuotaExceededException", StatusCode::kResourceExhausted},
      {"UnsupportedOperationException", StatusCode::kUnimplemented},
      {"IOException", StatusCode::kUnavailable},
  };
  for (const auto& [name, code] : cases) {
    const HdfsError error =
        ErrorWith(403, StrCat(R"({"RemoteException":{"exception":")", name, R"("}})"));
    EXPECT_EQ(StatusOfHdfs(error, "read", {"hdfs", "nn", "/f"}, "", {}).code(), code) << name;
    EXPECT_FALSE(error.IsTransient());
  }
  for (const char* const name : {"StandbyException", "SafeModeException", "RetriableException"}) {
    EXPECT_TRUE(ErrorWith(403, StrCat(R"({"RemoteException":{"exception":")", name, R"("}})"))
                    .IsTransient())
        << name;
  }
}

TEST(HdfsErrorTest, AnyBodyIsTaken) {
  EXPECT_EQ(ErrorWith(200, "").status, 0);
  for (const char* const body : {"", "<html>", "[]", "{}", "{\"RemoteException\":3}",
                                 "{\"RemoteException\":{\"exception\":[],\"message\":{}}}"}) {
    const HdfsError error = ErrorWith(404, body);
    EXPECT_EQ(error.status, 404) << body;
    EXPECT_EQ(error.exception, "") << body;
    const Status status = StatusOfHdfs(error, "read", {"hdfs", "nn", "/f"}, "http://nn:1", {});
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(Message(status)), HasSubstr("http://nn:1 serves no WebHDFS")) << body;
  }
}

}  // namespace
}  // namespace tenon
