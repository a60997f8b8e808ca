// SPDX-License-Identifier: Apache-2.0
#include "data/files/confined_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "data/files/file.h"
#include "data/files/local_file.h"
#include "tests/data/sample_files.h"
#include "tests/testing/memory_files.h"

namespace tenon {
namespace {

using ::testing::HasSubstr;
using testing::MemoryFiles;

/// Folders of a file system beside that of this machine, to which files are confined.
class FilesOfRootsTest : public ::testing::Test {
 protected:
  FilesOfRootsTest() {
    auto memory = std::make_unique<MemoryFiles>();
    memory_ = memory.get();
    EXPECT_TRUE(all_.Register("memory", std::move(memory)).ok());
    (*memory_)["memory://b/run/f"] = "inside";
    (*memory_)["memory://b/running/f"] = "beside";
    (*memory_)["memory://b/f"] = "above";
  }

  FileContext Confine(const std::string& roots) {
    auto files = ConfinedFiles(roots, &all_);
    EXPECT_TRUE(files.ok()) << files.status();
    files_ = *std::move(files);
    return FileContext{files_.get()};
  }

  static void ExpectOutside(const std::string& path, const std::string& roots,
                            const FileContext& context) {
    for (const Status& status :
         {ReadFileToString(path, context).status(),
          OpenOutput(path, WriteMode::kTruncate, context).status(),
          StatFile(path, context).status(), ListFolder(path, context).status(),
          MakeFolders(path, context), RenameFile(path, path, context),
          PublishFile(path, path, context), RemoveFile(path, context), RemoveTree(path, context),
          SyncFolder(path, context)}) {
      EXPECT_EQ(status.code(), StatusCode::kPermissionDenied) << path << ": " << status;
      EXPECT_THAT(std::string(Message(status)), HasSubstr("'" + path + "'"));
      EXPECT_THAT(std::string(Message(status)), HasSubstr("'" + roots + "'"));
    }
  }

  FileSystems all_{&LocalFiles()};
  std::unique_ptr<FileSystem> files_;
  MemoryFiles* memory_;
};

TEST_F(FilesOfRootsTest, WhatIsBelowARootIsReadAndWritten) {
  for (const char* root : {"memory://b/run", "memory://b/run/", "memory://b/run//"}) {
    const FileContext context = Confine(root);
    EXPECT_EQ(*ReadFileToString("memory://b/run/f", context), "inside");
    EXPECT_TRUE(MakeFolders("memory://b/run", context).ok());
    EXPECT_TRUE(MakeFolders("", context).ok());
    ASSERT_TRUE(WriteStringToFile("memory://b/run/g", "new", context).ok());
    EXPECT_EQ(*ReadFileToString("memory://b/run/g", context), "new");
    EXPECT_TRUE(RemoveTree("memory://b/run/g", context).ok());
    EXPECT_EQ(context.files->WritesWhole("memory://b/run/g"),
              memory_->WritesWhole("memory://b/run/g"));
  }
}

TEST_F(FilesOfRootsTest, NothingElseIsReached) {
  const std::string root = "memory://b/run";
  const FileContext context = Confine(root);
  for (const std::string path :
       {"memory://b/f", "memory://b", "memory://b/running/f", "memory://b/ru", "memory://c/run/f",
        "memory://b/run/../f", "memory://b/run/..", "memory://b/run/./f",
        "memory://b/run/a/../../f", "Memory://b/run/f", "other://b/run/f", "b/run/f", "f",
        "/etc/passwd", "file:///etc/passwd"}) {
    ExpectOutside(path, root, context);
  }
  EXPECT_EQ(ReadFileToString(std::string("memory://b/run/f\0g", 18), context).status().code(),
            StatusCode::kPermissionDenied);
  EXPECT_EQ(RenameFile("memory://b/run/f", "memory://b/f", context).code(),
            StatusCode::kPermissionDenied);
  EXPECT_EQ((*memory_)["memory://b/f"], "above");
  EXPECT_FALSE(context.files->WritesWhole("memory://b/f"));
}

TEST_F(FilesOfRootsTest, SeveralRootsAreJoinedByCommas) {
  const TemporaryFolder folder;
  const std::string local = folder / "a,b";
  ASSERT_TRUE(MakeFolders(local).ok());
  ASSERT_TRUE(WriteStringToFile(folder / "secret", "s").ok());
  const std::string others = "memory://b/run,memory://c/x,y";
  EXPECT_TRUE(WriteStringToFile("in", "", Confine(others + "," + local)).ok());
  const std::string roots = local + "," + others;
  const FileContext context = Confine(roots);
  ASSERT_TRUE(WriteStringToFile("in", "local", context).ok());
  EXPECT_EQ(*ReadFileToString(local + "/in", context), "local");
  EXPECT_EQ(*ReadFileToString("file://" + local + "/in", context), "local");
  EXPECT_EQ(*ReadFileToString("memory://b/run/f", context), "inside");
  EXPECT_TRUE(WriteStringToFile("memory://c/x,y/f", "", context).ok());
  EXPECT_EQ(ReadFileToString("../secret", context).status().code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(ReadFileToString(folder / "secret", context).status().code(),
            StatusCode::kPermissionDenied);
  ExpectOutside("memory://b/f", roots, context);
  EXPECT_EQ(RenameFile("in", "memory://b/run/in", context).code(), StatusCode::kUnimplemented);
  EXPECT_TRUE(RenameFile("memory://b/run/f", "memory://c/x,y/f", context).ok());
}

TEST_F(FilesOfRootsTest, ARootThatNamesNoFolderIsAnError) {
  const TemporaryFolder folder;
  const auto code = [&](const std::string& roots) {
    return ConfinedFiles(roots, &all_).status().code();
  };
  EXPECT_EQ(code(""), StatusCode::kInvalidArgument);
  EXPECT_EQ(code("memory://"), StatusCode::kInvalidArgument);
  EXPECT_EQ(code("memory:///"), StatusCode::kInvalidArgument);
  EXPECT_EQ(code("memory://b/../c"), StatusCode::kInvalidArgument);
  EXPECT_EQ(code("memory://b,/,memory://c,file:///etc"), StatusCode::kInvalidArgument);
  EXPECT_EQ(code("s4://b"), StatusCode::kUnimplemented);
  EXPECT_EQ(code(folder / "none,memory://b"), StatusCode::kNotFound);
  EXPECT_EQ(code((folder / "") + ",s4://b"), StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace tenon
