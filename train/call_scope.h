// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "core/build/building.h"

namespace tenon {

/// For a function that builds several nodes: they are in a scope of their own, `name`, or else
/// `default_name`, made unique, and their mistakes are its caller's.
class [[nodiscard]] CallScope {
 public:
  CallScope(const std::string& name, std::string_view default_name,
            const std::source_location& caller)
      : caller_(caller), scope_(UnusedScope(name.empty() ? std::string(default_name) : name)) {}

 private:
  const CalledFrom caller_;
  const NameScope scope_;
};

}  // namespace tenon
