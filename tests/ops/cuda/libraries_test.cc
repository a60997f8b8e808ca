// SPDX-License-Identifier: Apache-2.0
#include "ops/cuda/libraries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include "tests/testing/status_matchers.h"

namespace tenon::cuda {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAreArray;
using testing::IsError;

/// A folder for a test, and variables of the environment as it wants them.
class LibrariesTest : public ::testing::Test {
 protected:
  LibrariesTest() {
    std::string name = (fs::temp_directory_path() / "tenon_libraries_XXXXXX").string();
    folder_ = mkdtemp(name.data());
    for (const char* variable : {"CUDA_HOME", "CUDA_PATH", "VIRTUAL_ENV", "CONDA_PREFIX"}) {
      Set(variable, "");
    }
    Set("HOME", folder_.string());
    Set("PATH", "");
  }
  ~LibrariesTest() override {
    for (const auto& [name, value] : before_) {
      if (value) {
        setenv(name.c_str(), value->c_str(), 1);
      } else {
        unsetenv(name.c_str());
      }
    }
    fs::remove_all(folder_);
  }

  void Set(const char* name, const std::string& value) {
    const char* const old = std::getenv(name);
    before_.emplace(name, old == nullptr ? std::optional<std::string>() : old);
    setenv(name, value.c_str(), 1);
  }
  std::string Make(const std::string& path) {
    fs::create_directories(folder_ / path);
    return (folder_ / path).string();
  }
  /// The folders that are the test's own.
  std::vector<std::string> Found() {
    std::vector<std::string> own;
    for (const std::string& folder : LibraryFolders()) {
      if (folder.starts_with(folder_.string())) own.push_back(folder);
    }
    return own;
  }

  fs::path folder_;
  std::map<std::string, std::optional<std::string>> before_;
};

TEST_F(LibrariesTest, AreLookedForInToolkitsAndWheels) {
  const std::string toolkit = Make("toolkit/lib64");
  const std::string blas = Make("venv/lib/python3.11/site-packages/nvidia/cublas/lib");
  const std::string all = Make("venv/lib/python3.11/site-packages/nvidia/cu13/lib");
  Make("venv/lib/python3.11/site-packages/nvidia/nothing");
  Make("venv/lib/ruby/site-packages/nvidia/cublas/lib");
  const std::string own = Make(".local/lib/python3.12/site-packages/nvidia/cudnn/lib");
  Set("CUDA_HOME", (folder_ / "toolkit").string());
  Set("CUDA_PATH", (folder_ / "toolkit/").string());
  Set("VIRTUAL_ENV", (folder_ / "venv").string());
  EXPECT_THAT(Found(), ElementsAreArray({toolkit, all, blas, own}));
}

TEST_F(LibrariesTest, ThePythonOnThePathIsNotStartedButFollowed) {
  const std::string venv = Make("venv/lib/python3.11/site-packages/nvidia/cublas/lib");
  const std::string real = Make("python/lib/python3.11/site-packages/nvidia/cudnn/lib");
  Make("venv/bin");
  Make("python/bin");
  std::ofstream(folder_ / "python/bin/python3.11") << "not a program";
  fs::create_symlink(folder_ / "python/bin/python3.11", folder_ / "venv/bin/python3");
  Set("PATH", StrCat("/nowhere::", (folder_ / "venv/bin").string()));
  EXPECT_THAT(Found(), ElementsAreArray({venv, real}));
}

TEST_F(LibrariesTest, OneThatIsNowhereIsNamedWithThePlaces) {
  const std::string toolkit = Make("toolkit/lib64");
  Set("CUDA_HOME", (folder_ / "toolkit").string());
  Library library("libtenon_has_none.so", 7);
  EXPECT_THAT(library.Load(),
              IsError(StatusCode::kNotFound,
                      StrCat("found no libtenon_has_none.so.7: neither where the loader looks nor "
                             "in ",
                             toolkit)));
  EXPECT_THAT(library.Get<void (*)()>("anything").status(),
              IsError(StatusCode::kNotFound, "found no libtenon_has_none.so.7"));
}

TEST_F(LibrariesTest, OneThatIsNoneSaysWhy) {
  std::ofstream(fs::path(Make("toolkit/lib64")) / "libtenon_broken.so.7") << "text";
  Set("CUDA_HOME", (folder_ / "toolkit").string());
  Library library("libtenon_broken.so", 7);
  EXPECT_THAT(library.Load(),
              IsError(StatusCode::kFailedPrecondition, "cannot load libtenon_broken.so.7: "));
}

TEST_F(LibrariesTest, FunctionsAreFoundByName) {
  Library library("libm.so", 6);
  const auto cosine = library.Get<double (*)(double)>("cos");
  ASSERT_OK(cosine.status());
  EXPECT_EQ((*cosine)(0), 1);
  EXPECT_THAT(library.Get<void (*)()>("no_such_function").status(),
              IsError(StatusCode::kNotFound, "libm.so.6 has no function no_such_function"));
}

}  // namespace
}  // namespace tenon::cuda
