// SPDX-License-Identifier: Apache-2.0
#include "ops/cuda/libraries.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace tenon::cuda {
namespace {

namespace fs = std::filesystem;

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// Collects folders that exist, each once.
class Folders {
 public:
  void Add(const fs::path& folder) {
    std::error_code error;
    if (!fs::is_directory(folder, error)) return;
    std::string text = folder.lexically_normal().string();
    if (std::find(found_.begin(), found_.end(), text) == found_.end()) {
      found_.push_back(std::move(text));
    }
  }

  /// Adds the folders of a CUDA toolkit.
  void AddToolkit(const std::string& root) {
    if (root.empty()) return;
    for (const char* part : {"lib64", "lib", "targets/x86_64-linux/lib"})
      Add(fs::path(root) / part);
  }

  /// Adds those of the wheels in `packages`, a folder of Python's: nvidia/cublas/lib,
  /// nvidia/cu13/lib.
  void AddWheels(const fs::path& packages) {
    for (const fs::path& wheel : Entries(packages / "nvidia")) Add(wheel / "lib");
  }

  /// Adds those of an installation of Python, or of a virtual environment.
  void AddPython(const fs::path& prefix) {
    if (prefix.empty()) return;
    for (const fs::path& version : Entries(prefix / "lib")) {
      if (!version.filename().string().starts_with("python3")) continue;
      for (const char* packages : {"site-packages", "dist-packages"}) AddWheels(version / packages);
    }
  }

  std::vector<std::string> Take() { return std::move(found_); }

 private:
  /// In the order of their names, so that every process finds the same.
  static std::vector<fs::path> Entries(const fs::path& folder) {
    std::vector<fs::path> entries;
    std::error_code error;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
      entries.push_back(it->path());
    }
    std::sort(entries.begin(), entries.end());
    return entries;
  }

  std::vector<std::string> found_;
};

/// The folders above the bin of the python3 on PATH: as it is called, which is that of a virtual
/// environment, and where it really is.
std::vector<fs::path> PythonPrefixes() {
  const std::string path = Variable("PATH");
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find(':', begin), path.size());
    const fs::path program = fs::path(path.substr(begin, end - begin)) / "python3";
    begin = end + 1;
    std::error_code error;
    if (!program.is_absolute() || !fs::exists(program, error)) continue;
    std::vector<fs::path> prefixes = {program.parent_path().parent_path()};
    const fs::path real = fs::canonical(program, error);
    if (!error) prefixes.push_back(real.parent_path().parent_path());
    return prefixes;
  }
  return {};
}

}  // namespace

std::vector<std::string> LibraryFolders() {
  Folders folders;
  folders.AddToolkit(Variable("CUDA_HOME"));
  folders.AddToolkit(Variable("CUDA_PATH"));
  folders.AddPython(Variable("VIRTUAL_ENV"));
  folders.AddPython(Variable("CONDA_PREFIX"));
  for (const fs::path& prefix : PythonPrefixes()) folders.AddPython(prefix);
  if (const std::string home = Variable("HOME"); !home.empty()) {
    folders.AddPython(fs::path(home) / ".local");
  }
  folders.AddPython("/usr/local");
  folders.AddWheels("/usr/lib/python3/dist-packages");
  folders.AddToolkit("/usr/local/cuda");
  return folders.Take();
}

Library::Library(std::string_view name, int version) : file_name_(StrCat(name, ".", version)) {}

StatusOr<void*> Library::Open() const {
  constexpr int kLoad = RTLD_NOW | RTLD_LOCAL;
  if (void* const handle = dlopen(file_name_.c_str(), kLoad)) return handle;
  const std::string error = dlerror();
  if (!error.starts_with(StrCat(file_name_, ": cannot open"))) {
    return FailedPrecondition("cannot load ", file_name_, ": ", error);
  }
  const std::vector<std::string> folders = LibraryFolders();
  for (const std::string& folder : folders) {
    const std::string path = StrCat(folder, "/", file_name_);
    std::error_code failed;
    if (!fs::exists(path, failed)) continue;
    if (void* const handle = dlopen(path.c_str(), kLoad)) return handle;
    return FailedPrecondition("cannot load ", file_name_, ": ", dlerror());
  }
  return NotFound(
      "found no ", file_name_, ": neither where the loader looks nor in ",
      folders.empty() ? "CUDA_HOME, VIRTUAL_ENV and the usual places" : Join(folders, ", "));
}

Status Library::Load() {
  MutexLock lock(mu_);
  if (!tried_) {
    tried_ = true;
    handle_ = Open();
  }
  return handle_.status();
}

StatusOr<void*> Library::Find(const char* symbol) {
  TENON_RETURN_IF_ERROR(Load());
  MutexLock lock(mu_);
  if (void* const address = dlsym(*handle_, symbol)) return address;
  return NotFound(file_name_, " has no function ", symbol);
}

}  // namespace tenon::cuda
