// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace tenon::testing {

/// The variable TENON_HOST_MEMORY, while it lives.
class HostMemory {
 public:
  explicit HostMemory(const char* value) {
    if (const char* const given = std::getenv(kName)) before_ = given;
    Set(value);
  }
  ~HostMemory() { Set(before_ ? before_->c_str() : nullptr); }

 private:
  static constexpr char kName[] = "TENON_HOST_MEMORY";
  static void Set(const char* value) { value ? setenv(kName, value, 1) : unsetenv(kName); }
  std::optional<std::string> before_;
};

}  // namespace tenon::testing
