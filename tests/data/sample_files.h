// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "data/files/file.h"

namespace tenon {

/// The path of a file below tests/data. Tests run in the source tree.
inline std::string SamplePath(const std::string& name) {
  const char* source = std::getenv("TENON_SOURCE_DIR");
  return JoinPath(source == nullptr ? "." : source, "tests/data/" + name);
}

inline std::string ContentOf(const std::string& path) {
  StatusOr<std::string> content = ReadFileToString(path);
  EXPECT_TRUE(content.ok()) << content.status();
  return content.ok() ? *std::move(content) : "";
}

/// A folder of its own that goes away with the test.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    path_ = StrCat(::testing::TempDir(), "/tenon_", getpid(), "_", info->test_suite_name(), "_",
                   info->name());
    std::filesystem::create_directories(path_);
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return JoinPath(path_, name); }
  const std::string& path() const { return path_; }
  /// The path of the file `name`, which it writes.
  std::string Write(const std::string& name, std::string_view content) const {
    std::string path = *this / name;
    EXPECT_TRUE(WriteStringToFile(path, content).ok());
    return path;
  }

 private:
  std::string path_;
};

}  // namespace tenon
