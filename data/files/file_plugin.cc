// SPDX-License-Identifier: Apache-2.0
#include "data/files/file_plugin.h"

#include "absl/strings/ascii.h"
#include "core/device/plugin_library.h"
#include "data/files/local_file.h"

namespace tenon {

namespace {

/// The plugin that has the files of a scheme.
struct SchemePlugin {
  std::string_view scheme, plugin;
};

constexpr SchemePlugin kSchemePlugins[] = {
    {"hdfs", "hdfs"}, {"s3", "s3"}, {"swebhdfs", "hdfs"}, {"webhdfs", "hdfs"}};

std::string_view PluginOf(std::string_view scheme) {
  for (const SchemePlugin& known : kSchemePlugins) {
    if (known.scheme == scheme) return known.plugin;
  }
  return scheme;
}

}  // namespace

const std::vector<std::string>& PluginSchemes() {
  static const auto* const schemes = [] {
    auto* const names = new std::vector<std::string>;
    for (const SchemePlugin& known : kSchemePlugins) names->emplace_back(known.scheme);
    return names;
  }();
  return *schemes;
}

StatusOr<std::unique_ptr<FileSystem>> LoadFiles(const std::string& scheme) {
  const std::string name(PluginOf(scheme));
  const PluginLibrary library = {
      StrCat("the plugin for ", scheme, "://"), StrCat("libtenon_", name, ".so"),
      StrCat("TENON_", absl::AsciiStrToUpper(name), "_PLUGIN"), kFilePluginFunction};
  TENON_ASSIGN_OR_RETURN(const void* const plugin, LoadPlugin(library));
  return static_cast<const FilePlugin*>(plugin)->make(LocalFiles());
}

}  // namespace tenon
