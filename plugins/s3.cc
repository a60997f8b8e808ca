// SPDX-License-Identifier: Apache-2.0
//
// libtenon_s3.so: what a program with Tenon loads at the first path of s3://.
#include <cstdlib>

#include "core/device/plugin_version.h"
#include "data/files/file_plugin.h"
#include "data/s3/s3_files.h"
#include "runtime/device/machine_clock.h"

namespace tenon {
namespace {

std::string ReadEnvironment(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value == nullptr ? "" : value;
}

StatusOr<std::unique_ptr<FileSystem>> MakeFiles(FileSystem& local) {
  return MakeS3Files(ReadEnvironment, local, MachineClock());
}

}  // namespace
}  // namespace tenon

extern "C" const tenon::FilePlugin* TenonFilePlugin() {
  static const tenon::FilePlugin plugin = {tenon::kPluginVersion, tenon::MakeFiles};
  return &plugin;
}
