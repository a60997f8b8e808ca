// SPDX-License-Identifier: Apache-2.0
//
// Targets as ordinary tests: each of their seeds, and each input that once found something.
#include "tests/fuzz/fuzz_target.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>

#include "core/base/strings.h"

namespace tenon::testing {
namespace {

void RunOn(const FuzzTarget& target, const std::string& data) {
  target.run({reinterpret_cast<const uint8_t*>(data.data()), data.size()});
}

class ReplayTest : public ::testing::Test {
 public:
  ReplayTest(FuzzTarget target, std::string path) : target_(target), path_(std::move(path)) {}
  void TestBody() override {
    std::ifstream file(path_, std::ios::binary);
    ASSERT_TRUE(file) << path_;
    RunOn(target_, std::string(std::istreambuf_iterator<char>(file), {}));
  }

 private:
  const FuzzTarget target_;
  const std::string path_;
};

class SeedsTest : public ::testing::Test {
 public:
  explicit SeedsTest(FuzzTarget target) : target_(target) {}
  void TestBody() override {
    RunOn(target_, "");
    if (target_.seeds == nullptr) return;
    for (const std::string& seed : target_.seeds()) RunOn(target_, seed);
  }

 private:
  const FuzzTarget target_;
};

void Register(const std::string& suite, const std::string& name,
              std::function<::testing::Test*()> make) {
  ::testing::RegisterTest(suite.c_str(), name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                          std::move(make));
}

}  // namespace

bool RegisterFuzzTarget(const FuzzTarget& target) {
  const std::string suite = StrCat("Fuzz_", target.name);
  Register(suite, "SeedsDoNoHarm", [target] { return new SeedsTest(target); });
  // Tests run, and are listed, in the source tree.
  std::error_code missing;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::filesystem::path("tests/fuzz/inputs") / target.name, missing)) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const auto& path : files) {
    Register(suite, path.filename().string(),
             [target, path] { return new ReplayTest(target, path.string()); });
  }
  return true;
}

void MutateAsLibFuzzer(std::string*, size_t) {}

}  // namespace tenon::testing
