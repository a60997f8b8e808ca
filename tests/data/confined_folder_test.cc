// SPDX-License-Identifier: Apache-2.0
#include "data/files/confined_folder.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "tests/data/sample_files.h"

namespace tenon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A folder with "root", to which files are confined, and "secret" beside it.
class ConfinedFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(root + "/in");
    std::filesystem::create_directories(folder / "beside");
    ASSERT_TRUE(WriteStringToFile(folder / "secret", "s").ok());
    ASSERT_TRUE(WriteStringToFile(root + "/in/f", "content").ok());
    const auto files = FilesOf({FileAccess::Kind::kRoot, root});
    ASSERT_TRUE(files.ok()) << files.status();
    confined.files = *files;
  }
  void Link(const std::string& target, const std::string& name) const {
    std::filesystem::create_symlink(target, root + "/" + name);
  }
  static void ExpectRefused(const Status& status, std::string path) {
    if (path.starts_with("file://")) path = path.substr(7);
    EXPECT_EQ(status.code(), StatusCode::kPermissionDenied) << path << ": " << status;
    EXPECT_THAT(std::string(Message(status)), HasSubstr("'" + path + "'"));
    EXPECT_THAT(std::string(Message(status)), HasSubstr("/root'"));
  }
  void ExpectOutside(const std::string& path) const {
    ExpectRefused(ReadFileToString(path, confined).status(), path);
    ExpectRefused(OpenOutput(path, WriteMode::kAppend, confined).status(), path);
    EXPECT_FALSE(FileExists(path, confined));
  }

  const TemporaryFolder folder;
  const std::string root = folder / "root";
  FileContext confined;
};

TEST_F(ConfinedFilesTest, PathsInsideAreReadAndWritten) {
  EXPECT_EQ(*ReadFileToString("in/f", confined), "content");
  EXPECT_EQ(*ReadFileToString(root + "/in/f", confined), "content");
  EXPECT_EQ(*ReadFileToString("file://" + root + "/in/../in/./f", confined), "content");
  ASSERT_TRUE(MakeFolders("a/b//c/", confined).ok());
  ASSERT_TRUE(MakeFolders(root + "/a/b/d", confined).ok());
  EXPECT_THAT(*ListFolder(root + "/a/b", confined), ElementsAre("c", "d"));
  ASSERT_TRUE(WriteStringToFile("a/b/c/g", "x", confined).ok());
  EXPECT_EQ(*ReadFileToString(root + "/a/b/c/g"), "x");
  ASSERT_TRUE(RenameFile("a/b/c/g", "h", confined).ok());
  EXPECT_THAT(*ListFolder(".", confined), ElementsAre("a", "h", "in"));
  EXPECT_TRUE(RemoveFile("h", confined).ok());
  EXPECT_TRUE(RemoveFile("a/b/c", confined).ok());
  EXPECT_EQ(ReadFileToString("none", confined).status().code(), StatusCode::kNotFound);
  EXPECT_FALSE(MakeFolders("in/f/x", confined).ok());
}

TEST_F(ConfinedFilesTest, PathsOutsideAreRefused) {
  for (const std::string& path :
       {folder / "secret", std::string("../secret"), std::string("in/../../secret"),
        root + "/../secret", root + "beside/f", std::string("/etc/passwd"), std::string("/"),
        "file://" + (folder / "secret")}) {
    ExpectOutside(path);
  }
  ExpectRefused(RenameFile("in/f", "../f", confined), "../f");
  ExpectRefused(RenameFile("../secret", "f", confined), "../secret");
  ExpectRefused(RemoveFile("../secret", confined), "../secret");
  ExpectRefused(MakeFolders("../new", confined), "../new");
  ExpectRefused(ListFolder("..", confined).status(), "..");
  EXPECT_EQ(*ReadFileToString(folder / "secret"), "s");
  EXPECT_EQ(*ReadFileToString(root + "/in/f"), "content");
}

TEST_F(ConfinedFilesTest, LinksThatLeadOutsideAreRefused) {
  Link("../secret", "relative");
  Link(folder / "secret", "absolute");
  Link("..", "above");
  Link(folder / "beside", "in/beside");
  Link(folder / "new", "dangling");
  Link("in/../relative", "twice");
  for (const char* path :
       {"relative", "absolute", "above/secret", "in/beside/f", "dangling", "twice"}) {
    ExpectOutside(path);
  }
  EXPECT_FALSE(FileExists(folder / "new"));
  ExpectRefused(MakeFolders("in/beside/x", confined), "in/beside/x");
}

TEST_F(ConfinedFilesTest, LinksThatStayInsideAreFollowed) {
  Link("in/f", "near");
  Link(root + "/in", "whole");
  Link("../near", "in/back");
  Link("loop", "loop");
  EXPECT_EQ(*ReadFileToString("near", confined), "content");
  EXPECT_EQ(*ReadFileToString("whole/back", confined), "content");
  EXPECT_EQ(ReadFileToString("loop", confined).status().code(), StatusCode::kInvalidArgument);
  // The link goes, not what it leads to.
  ASSERT_TRUE(RemoveFile("near", confined).ok());
  EXPECT_EQ(*ReadFileToString("in/f", confined), "content");
}

TEST_F(ConfinedFilesTest, ALinkPutInTheWayMeanwhileLeadsNowhere) {
  std::filesystem::create_directories(root + "/d");
  ASSERT_TRUE(WriteStringToFile(root + "/d/secret", "mine").ok());
  std::filesystem::create_symlink(folder.path(), root + "/e");
  std::atomic<bool> over{false};
  std::thread swapper([&] {
    while (!over) {
      renameat2(AT_FDCWD, (root + "/d").c_str(), AT_FDCWD, (root + "/e").c_str(), RENAME_EXCHANGE);
    }
  });
  int found = 0;
  // On a busy machine one of the threads may sleep for a while.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  for (int i = 0; i < 3000 || (found == 0 && std::chrono::steady_clock::now() < deadline); ++i) {
    const auto content = ReadFileToString("d/secret", confined);
    if (!content.ok()) continue;
    ++found;
    EXPECT_EQ(*content, "mine");
  }
  over = true;
  swapper.join();
  EXPECT_GT(found, 0);
}

TEST_F(ConfinedFilesTest, HostilePathsAreErrors) {
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += "in/../";
  EXPECT_FALSE(ReadFileToString(deep + "in/f", confined).ok());
  EXPECT_FALSE(ReadFileToString(std::string(1 << 20, 'a'), confined).ok());
  EXPECT_FALSE(ReadFileToString("", confined).ok());
  EXPECT_FALSE(ReadFileToString(std::string("in/f\0x", 6), confined).ok());
  EXPECT_EQ(ReadFileToString((folder / "secret") + std::string("\0x", 2)).status().code(),
            StatusCode::kInvalidArgument);
}

TEST_F(ConfinedFilesTest, NoFilesMeansNone) {
  const auto none = FilesOf({FileAccess::Kind::kNone, ""});
  ASSERT_TRUE(none.ok());
  FileContext context;
  context.files = *none;
  EXPECT_EQ(ReadFileToString(root + "/in/f", context).status().code(),
            StatusCode::kPermissionDenied);
  EXPECT_EQ(WriteStringToFile(root + "/g", "", context).code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(ListFolder(root, context).status().code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(MakeFolders(root + "/g", context).code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(RenameFile(root + "/in/f", root + "/g", context).code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(RemoveFile(root + "/in/f", context).code(), StatusCode::kPermissionDenied);
  EXPECT_TRUE(FileExists(root + "/in/f"));
}

TEST_F(ConfinedFilesTest, ARootThatIsNoFolderIsAnError) {
  EXPECT_EQ(FilesOf({FileAccess::Kind::kRoot, root + "/none"}).status().code(),
            StatusCode::kNotFound);
  EXPECT_FALSE(FilesOf({FileAccess::Kind::kRoot, folder / "secret"}).ok());
  EXPECT_FALSE(FilesOf({FileAccess::Kind::kRoot, ""}).ok());
}

}  // namespace
}  // namespace tenon
