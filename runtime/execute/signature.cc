// SPDX-License-Identifier: Apache-2.0
#include "runtime/execute/signature.h"

#include "core/base/strings.h"

namespace tenon {

std::string Signature::Key() const {
  // Lengths keep lists apart whatever the names contain: they come from outside.
  std::string key;
  for (const auto* names : {&feeds, &fetches, &targets}) {
    StrAppend(&key, names->size(), ";");
    for (const std::string& name : *names) StrAppend(&key, name.size(), ":", name);
  }
  for (const auto& [from, to] : connections) {
    StrAppend(&key, from.size(), ":", from, to.size(), ":", to);
  }
  return key;
}

}  // namespace tenon
