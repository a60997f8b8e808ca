// SPDX-License-Identifier: Apache-2.0
#include "runtime/collectives/collective_backend.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "core/base/strings.h"
#include "core/device/plugin_library.h"

namespace tenon {

const std::vector<std::string>& CollectiveLibraries() {
  static const auto* const libraries =
      new std::vector<std::string>{"gloo", "openmpi", "mpich", "cuda"};
  return *libraries;
}

StatusOr<const CollectivesPlugin*> LoadCollectives(const std::string& library) {
  const auto& known = CollectiveLibraries();
  if (std::find(known.begin(), known.end(), library) == known.end()) {
    return InvalidArgument("no library of collectives is called '", library,
                           "'; there are: ", Join(known, ", "));
  }
  TENON_ASSIGN_OR_RETURN(const void* const plugin,
                         LoadPlugin({StrCat("the plugin for collectives by ", library),
                                     StrCat("libtenon_", library, ".so"),
                                     StrCat("TENON_", absl::AsciiStrToUpper(library), "_PLUGIN"),
                                     kCollectivesPluginFunction}));
  return static_cast<const CollectivesPlugin*>(plugin);
}

StatusOr<std::unique_ptr<CollectiveBackend>> JoinBy(const std::string& library,
                                                    const RankOptions& options) {
  TENON_ASSIGN_OR_RETURN(const CollectivesPlugin* const plugin, LoadCollectives(library));
  return plugin->join(options);
}

}  // namespace tenon
