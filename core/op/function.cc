// SPDX-License-Identifier: Apache-2.0
#include "core/op/function.h"

#include <algorithm>

namespace tenon {

const FunctionDefinition* FunctionLibrary::Find(std::string_view name) const {
  const auto found = functions_.find(name);
  return found == functions_.end() ? nullptr : found->second.get();
}

Status FunctionLibrary::Add(std::shared_ptr<const FunctionDefinition> function) {
  const auto [it, added] = functions_.try_emplace(function->name(), function);
  if (added ||
      (it->second->proto == function->proto && it->second->gradient == function->gradient)) {
    return OkStatus();
  }
  return InvalidArgument("Cannot add function '", function->name(),
                         "' because a different function with the same name already exists.");
}

FunctionLibrary FunctionLibrary::Subset(const StringSet& names) const {
  FunctionLibrary subset;
  for (const std::string& name : names) {
    for (auto found = functions_.find(name); found != functions_.end();
         found = functions_.find(found->second->gradient)) {
      if (!subset.functions_.try_emplace(found->first, found->second).second) break;
    }
  }
  return subset;
}

std::vector<const FunctionDefinition*> FunctionLibrary::All() const {
  std::vector<const FunctionDefinition*> all;
  for (const auto& [name, function] : functions_) all.push_back(function.get());
  std::sort(all.begin(), all.end(),
            [](const auto* a, const auto* b) { return a->name() < b->name(); });
  return all;
}

}  // namespace tenon
