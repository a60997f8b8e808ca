// SPDX-License-Identifier: Apache-2.0
#include "data/files/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "tests/data/sample_files.h"

namespace tenon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(FileTest, WhatIsWrittenIsRead) {
  const TemporaryFolder folder;
  const std::string content("a\0b\n", 4);
  ASSERT_TRUE(WriteStringToFile(folder / "f", content).ok());
  EXPECT_EQ(*ReadFileToString(folder / "f"), content);
  EXPECT_EQ(*ReadFileToString("file://" + (folder / "f")), content);
  EXPECT_THAT(*ListFolder(folder.path()), ElementsAre("f"));
}

TEST(FileTest, AppendingKeepsWhatIsThere) {
  const TemporaryFolder folder;
  for (const char* part : {"one ", "two"}) {
    auto file = OpenOutput(folder / "f", WriteMode::kAppend);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE((*file)->Append(part).ok());
    ASSERT_TRUE((*file)->Close().ok());
  }
  EXPECT_EQ(*ReadFileToString(folder / "f"), "one two");
}

TEST(FileTest, FlushMakesDataVisible) {
  const TemporaryFolder folder;
  auto file = *OpenOutput(folder / "f");
  ASSERT_TRUE(file->Append("x").ok());
  ASSERT_TRUE(file->Flush().ok());
  EXPECT_EQ(*ReadFileToString(folder / "f"), "x");
  ASSERT_TRUE(file->Close().ok());
  EXPECT_EQ(file->Append("y").code(), StatusCode::kFailedPrecondition);
}

TEST(FileTest, ReadAtStopsAtTheEnd) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteStringToFile(folder / "f", "abcdef").ok());
  const auto file = *OpenInput(folder / "f");
  EXPECT_EQ(file->size(), 6);
  char out[8] = {};
  EXPECT_EQ(*file->ReadAt(4, 8, out), 2u);
  EXPECT_STREQ(out, "ef");
  EXPECT_EQ(*file->ReadAt(100, 8, out), 0u);
}

TEST(FileTest, ErrorsNameThePathAndTheReason) {
  const TemporaryFolder folder;
  const Status missing = ReadFileToString(folder / "none").status();
  EXPECT_EQ(missing.code(), StatusCode::kNotFound);
  EXPECT_THAT(std::string(Message(missing)), HasSubstr("/none': No such file or directory"));
  EXPECT_EQ(ReadFileToString(folder.path()).status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(WriteStringToFile(folder / "no/such/folder", "x").code(), StatusCode::kNotFound);
  EXPECT_EQ(ListFolder(folder / "none").status().code(), StatusCode::kNotFound);
}

TEST(FileTest, MakeFoldersMakesThoseAboveAndMayBeRepeated) {
  const TemporaryFolder folder;
  EXPECT_TRUE(MakeFolders(folder / "a/b/c").ok());
  EXPECT_TRUE(MakeFolders(folder / "a/b/c").ok());
  EXPECT_TRUE(FileExists(folder / "a/b/c"));
  ASSERT_TRUE(WriteStringToFile(folder / "f", "").ok());
  EXPECT_FALSE(MakeFolders(folder / "f/x").ok());
}

TEST(FileTest, AnUnknownSchemeIsRefused) {
  const Status status = ReadFileToString("s4://bucket/key").status();
  EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(Message(status)),
              HasSubstr("no file system for s4://; there are plain paths and file://, hdfs://, "
                        "s3://, swebhdfs://, webhdfs://"));
  EXPECT_FALSE(FileExists("s4://bucket/key"));
}

TEST(FileTest, WhatIsAtAPathIsTold) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteStringToFile(folder / "f", "four").ok());
  ASSERT_EQ(symlink((folder / "f").c_str(), (folder / "link").c_str()), 0);
  const auto file = StatFile(folder / "link");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->kind, FileInfo::Kind::kFile);
  EXPECT_EQ(file->size, 4);
  EXPECT_TRUE(IsSameFile(folder / "f", folder / "link"));
  EXPECT_FALSE(IsSameFile(folder / "f", folder.path()));
  EXPECT_FALSE(IsSameFile(folder / "none", folder / "none"));
  EXPECT_TRUE(IsRegularFile(folder / "f"));
  EXPECT_TRUE(IsFolder(folder.path()));
  EXPECT_FALSE(IsFolder(folder / "f"));
  EXPECT_EQ(StatFile("/dev/null")->kind, FileInfo::Kind::kOther);
  EXPECT_EQ(StatFile(folder / "none").status().code(), StatusCode::kNotFound);
}

TEST(FileTest, AFileGetsOlder) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteStringToFile(folder / "f", "").ok());
  EXPECT_LT(*AgeOfFile(folder / "f"), std::chrono::minutes(1));
  const timeval times[2] = {{1000000000, 0}, {1000000000, 0}};
  ASSERT_EQ(utimes((folder / "f").c_str(), times), 0);
  EXPECT_GT(*AgeOfFile(folder / "f"), std::chrono::hours(24 * 365));
  EXPECT_FALSE(AgeOfFile(folder / "none").ok());
}

TEST(FileTest, AFolderIsRemovedWithAllThatIsInItAndLinksAreNotFollowed) {
  const TemporaryFolder folder;
  ASSERT_TRUE(MakeFolders(folder / "tree/a/b").ok());
  ASSERT_TRUE(WriteStringToFile(folder / "tree/a/f", "x").ok());
  ASSERT_TRUE(WriteStringToFile(folder / "kept", "x").ok());
  ASSERT_EQ(symlink(folder.path().c_str(), (folder / "tree/a/b/up").c_str()), 0);
  EXPECT_TRUE(RemoveTree(folder / "tree").ok());
  EXPECT_FALSE(FileExists(folder / "tree"));
  EXPECT_TRUE(FileExists(folder / "kept"));
  EXPECT_TRUE(RemoveTree(folder / "kept").ok());
  EXPECT_EQ(RemoveTree(folder / "kept").code(), StatusCode::kNotFound);
}

TEST(FileTest, AFolderIsPublishedUnderItsName) {
  const TemporaryFolder folder;
  ASSERT_TRUE(MakeFolders(folder / "new").ok());
  ASSERT_TRUE(WriteStringToFile(folder / "new/f", "x").ok());
  ASSERT_TRUE(PublishFile(folder / "new", folder / "named").ok());
  EXPECT_EQ(*ReadFileToString(folder / "named/f"), "x");
  EXPECT_FALSE(FileExists(folder / "new"));
}

TEST(FileTest, APathIsMadeRelativeByItsWords) {
  EXPECT_EQ(RelativePath("a/b/m-1", "a/b"), "m-1");
  EXPECT_EQ(RelativePath("a/m-1", "a/b"), "../m-1");
  EXPECT_EQ(RelativePath("./m-1", "."), "m-1");
}

TEST(FileTest, OnlyRegularFilesAreOpened) {
  const TemporaryFolder folder;
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  for (const std::string& path : {folder / "pipe", std::string("/dev/zero")}) {
    const Status status = ReadFileToString(path).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(Message(status)), HasSubstr("not a regular file"));
    EXPECT_FALSE(OpenOutput(path).ok());
  }
}

TEST(FileTest, AFileLargerThanTheMemoryLimitIsRefusedBeforeItIsRead) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteStringToFile(folder / "sparse", "x").ok());
  ASSERT_EQ(truncate((folder / "sparse").c_str(), int64_t{1} << 42), 0);
  const Status status = ReadFileToString(folder / "sparse").status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(Message(status)), HasSubstr("/sparse'"));
}

TEST(FileTest, ReadingEndsWhenItIsCancelled) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteStringToFile(folder / "f", "x").ok());
  Cancellation cancellation;
  cancellation.Cancel(Cancelled("enough"));
  FileContext context;
  context.cancellation = &cancellation;
  EXPECT_EQ(ReadFileToString(folder / "f", context).status().code(), StatusCode::kCancelled);
}

TEST(FileTest, PathsAreTakenApartAndJoined) {
  EXPECT_EQ(FolderOf("a/b/c"), "a/b");
  EXPECT_EQ(FolderOf("/c"), "/");
  EXPECT_EQ(FolderOf("c"), "");
  EXPECT_EQ(NameOf("a/b/c"), "c");
  EXPECT_EQ(NameOf("c"), "c");
  EXPECT_EQ(JoinPath("a", "b"), "a/b");
  EXPECT_EQ(JoinPath("a/", "b"), "a/b");
  EXPECT_EQ(JoinPath("", "b"), "b");
  EXPECT_NE(TemporaryName("a"), TemporaryName("a"));
}

}  // namespace
}  // namespace tenon
