// SPDX-License-Identifier: Apache-2.0
#include "data/files/file_systems.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/files/local_file.h"
#include "data/files/path.h"
#include "data/records/record_file.h"
#include "tests/data/sample_files.h"
#include "tests/testing/memory_files.h"

namespace tenon {
namespace {

using ::testing::HasSubstr;
using testing::MemoryFiles;

TEST(FileSystemsTest, ASchemeIsALetterThenLettersDigitsAndSigns) {
  EXPECT_EQ(SchemeOf("s3://bucket/key"), "s3");
  EXPECT_EQ(SchemeOf("a+b-c.d://x"), "a+b-c.d");
  for (const char* path : {"", "/a/b", "a:b", "dir/s3://x", "3s://x", "://x", "a b://x"}) {
    EXPECT_EQ(SchemeOf(path), "") << path;
  }
}

class SchemesTest : public ::testing::Test {
 protected:
  SchemesTest() {
    auto memory = std::make_unique<MemoryFiles>();
    memory_ = memory.get();
    EXPECT_TRUE(files_.Register("memory", std::move(memory)).ok());
  }

  FileSystems files_{&LocalFiles()};
  FileContext context_{&files_};
  MemoryFiles* memory_;
};

TEST_F(SchemesTest, EachCallGoesToTheFileSystemOfItsPath) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteStringToFile(folder / "f", "local", context_).ok());
  ASSERT_TRUE(WriteStringToFile("memory://a/f", "held", context_).ok());
  EXPECT_EQ(*ReadFileToString("file://" + (folder / "f"), context_), "local");
  EXPECT_EQ(*ReadFileToString("memory://a/f", context_), "held");
  EXPECT_EQ((*memory_)["memory://a/f"], "held");
  EXPECT_EQ(StatFile("memory://a/f", context_)->size, 4);
  EXPECT_EQ(ListFolder("memory://a", context_)->size(), 1u);
  EXPECT_TRUE(RemoveTree("memory://a/f", context_).ok());
  EXPECT_FALSE(FileExists("memory://a/f", context_));
  EXPECT_TRUE(FileExists(folder / "f", context_));
}

TEST_F(SchemesTest, ReadersOfFormatsTakeThem) {
  auto writer =
      RecordWriter::Create("memory://r", Compression::kGzip, WriteMode::kTruncate, context_);
  ASSERT_TRUE(writer.ok() && (*writer)->Write("one").ok() && (*writer)->Close().ok());
  auto reader = RecordReader::Open("memory://r", std::nullopt, context_);
  ASSERT_TRUE(reader.ok()) << reader.status();
  std::string record;
  EXPECT_TRUE(*(*reader)->Read(&record));
  EXPECT_EQ(record, "one");
}

TEST_F(SchemesTest, AnUnknownSchemeIsAnErrorThatNamesTheOnesThereAre) {
  for (const Status& status :
       {ReadFileToString("s3://b/k", context_).status(), RemoveTree("s3://b", context_),
        MakeFolders("s3://b", context_), StatFile("s3://b", context_).status()}) {
    EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
    EXPECT_THAT(
        std::string(Message(status)),
        HasSubstr("no file system for s3://; there are plain paths and file://, memory://"));
  }
}

TEST_F(SchemesTest, NothingIsRenamedFromOneToAnother) {
  (*memory_)["memory://f"] = "x";
  for (const Status& status :
       {RenameFile("memory://f", "f", context_), PublishFile("memory://f", "file://f", context_)}) {
    EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
    EXPECT_THAT(std::string(Message(status)), HasSubstr("two file systems"));
  }
  EXPECT_TRUE(PublishFile("memory://f", "memory://g", context_).ok());
}

TEST_F(SchemesTest, ASchemeIsRegisteredOnce) {
  const auto add = [this](const char* scheme) {
    return files_.Register(scheme, std::make_unique<MemoryFiles>()).code();
  };
  EXPECT_EQ(add("memory"), StatusCode::kAlreadyExists);
  EXPECT_EQ(add("file"), StatusCode::kAlreadyExists);
  EXPECT_EQ(add("no scheme"), StatusCode::kInvalidArgument);
  EXPECT_EQ(add("s3"), StatusCode::kOk);
}

int loads = 0;
bool is_installed = false;

StatusOr<std::unique_ptr<FileSystem>> LoadMemoryFiles(const std::string& scheme) {
  EXPECT_EQ(scheme, "late");
  ++loads;
  if (!is_installed) return NotFound("the library is missing");
  return std::make_unique<MemoryFiles>();
}

TEST(LoadedSchemesTest, AFileSystemIsLoadedWhenItsFirstPathComes) {
  FileSystems files(&LocalFiles(), {"late"}, LoadMemoryFiles);
  const FileContext context{&files};
  EXPECT_EQ(ReadFileToString("s4://x", context).status().code(), StatusCode::kUnimplemented);
  EXPECT_EQ(loads, 0);
  const Status missing = ReadFileToString("late://f", context).status();
  EXPECT_EQ(Message(missing), "cannot open 'late://f': the library is missing");
  EXPECT_EQ(loads, 1);
  is_installed = true;
  EXPECT_TRUE(WriteStringToFile("late://f", "x", context).ok());
  EXPECT_EQ(*ReadFileToString("late://f", context), "x");
  EXPECT_EQ(loads, 2);
}

TEST(ConfinedSchemesTest, NoOtherSchemeIsReachedFromAFolder) {
  const TemporaryFolder folder;
  const auto files = LocalFilesBeneath(folder.path());
  ASSERT_TRUE(files.ok());
  const FileContext confined{files->get()};
  EXPECT_EQ(WriteStringToFile("s3://b/k", "x", confined).code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(MakeFolders("s3://b", confined).code(), StatusCode::kPermissionDenied);
  EXPECT_TRUE(ListFolder(folder.path())->empty());
}

}  // namespace
}  // namespace tenon
