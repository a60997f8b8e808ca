// SPDX-License-Identifier: Apache-2.0
#include "core/device/plugin_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "core/device/plugin_version.h"

namespace tenon {
namespace {

std::string ErrorOfLoader() {
  const char* const text = dlerror();
  return text == nullptr ? "unknown error" : text;
}

/// The folder of this process's executable; empty when the system does not say.
std::string ExecutableFolder() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  if (length <= 0) return "";
  const std::string_view text(path, static_cast<size_t>(length));
  return std::string(text.substr(0, text.rfind('/')));
}

Status CannotLoad(const PluginLibrary& plugin, std::string_view path) {
  return FailedPrecondition(plugin.what, " cannot be loaded: ", ErrorOfLoader(), " (", path,
                            "; this program wants version ", kPluginVersion, ")");
}

/// All symbols are bound at once: one that is missing is found here and not in the middle of a
/// step.
constexpr int kLoad = RTLD_NOW | RTLD_LOCAL;

StatusOr<void*> LoadLibrary(const PluginLibrary& plugin, std::string* path) {
  const char* const given = std::getenv(plugin.variable.c_str());
  if (given != nullptr && *given != '\0') {
    *path = given;
    if (access(given, F_OK) != 0) {
      return NotFound(plugin.what, " is missing: ", plugin.variable, " names ", given,
                      ", where there is no file");
    }
    void* const handle = dlopen(given, kLoad);
    if (handle == nullptr) return CannotLoad(plugin, given);
    return handle;
  }
  const std::string folder = ExecutableFolder();
  std::vector<std::string> places;
  if (!folder.empty()) places = {folder, StrCat(folder, "/../lib")};
  for (const std::string& place : places) {
    *path = StrCat(place, "/", plugin.library);
    if (access(path->c_str(), F_OK) != 0) continue;
    void* const handle = dlopen(path->c_str(), kLoad);
    if (handle == nullptr) return CannotLoad(plugin, *path);
    return handle;
  }
  *path = plugin.library;
  if (void* const handle = dlopen(plugin.library.c_str(), kLoad)) return handle;
  const std::string error = ErrorOfLoader();
  if (!error.starts_with(StrCat(plugin.library, ": cannot open"))) {
    return FailedPrecondition(plugin.what, " cannot be loaded: ", error,
                              " (this program wants version ", kPluginVersion, ")");
  }
  return NotFound(plugin.what, " is missing: ", plugin.library, " is neither in ",
                  Join(places, ", "), " nor where the loader looks; ", plugin.variable,
                  " may name it");
}

}  // namespace

StatusOr<const void*> LoadPlugin(const PluginLibrary& plugin) {
  std::string path;
  TENON_ASSIGN_OR_RETURN(void* const library, LoadLibrary(plugin, &path));
  const auto get_plugin =
      reinterpret_cast<const void* (*)()>(dlsym(library, plugin.function.c_str()));
  if (get_plugin == nullptr) {
    return FailedPrecondition(plugin.what, ", ", path, ", is none: it has no function ",
                              plugin.function);
  }
  const void* const given = get_plugin();
  const std::string_view version = *static_cast<const char* const*>(given);
  if (version != kPluginVersion) {
    return FailedPrecondition(plugin.what, ", ", path, ", is of another version: found ", version,
                              ", wanted ", kPluginVersion);
  }
  return given;
}

}  // namespace tenon
