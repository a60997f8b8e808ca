// SPDX-License-Identifier: Apache-2.0
//
// libtenon_hdfs.so: what a program with Tenon loads at the first path of hdfs://, webhdfs:// or
// swebhdfs://.
#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

#include "core/device/plugin_version.h"
#include "data/files/file_plugin.h"
#include "data/hdfs/hdfs_files.h"
#include "runtime/device/machine_clock.h"

namespace tenon {
namespace {

std::string EnvironmentVariable(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value == nullptr ? "" : value;
}

/// The name of this account; empty where the system has none.
std::string LoginName() {
  std::vector<char> buffer(16384);
  passwd entry;
  passwd* found = nullptr;
  if (getpwuid_r(geteuid(), &entry, buffer.data(), buffer.size(), &found) != 0) return "";
  return found == nullptr ? "" : found->pw_name;
}

StatusOr<std::unique_ptr<FileSystem>> MakeFiles(FileSystem&) {
  return MakeHdfsFiles(EnvironmentVariable, LoginName(), MachineClock());
}

}  // namespace
}  // namespace tenon

extern "C" const tenon::FilePlugin* TenonFilePlugin() {
  static const tenon::FilePlugin plugin = {tenon::kPluginVersion, tenon::MakeFiles};
  return &plugin;
}
