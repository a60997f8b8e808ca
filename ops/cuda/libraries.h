// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/status.h"

namespace tenon::cuda {

/// One of NVIDIA's libraries, which are large and not on every host: loaded when a kernel needs it
/// for the first time. It is looked for where the loader looks, in CUDA's own folders and in the
/// packages of Python that bring it. Thread-safe; lives until the process ends.
///
///   TENON_ASSIGN_OR_RETURN(const auto matmul,
///                          CublasLt().Get<decltype(&cublasLtMatmul)>("cublasLtMatmul"));
class Library {
 public:
  /// `name` as "libcublasLt.so", of the major version whose headers are used.
  Library(std::string_view name, int version);

  /// Loads it unless it is. NotFound, with the places that were looked at, when it is nowhere;
  /// FailedPrecondition, with the loader's reason, when one is there and cannot be loaded. The
  /// first answer stays.
  Status Load();

  /// The function `symbol`. As Load; NotFound when the library lacks it.
  template <typename Function>
  StatusOr<Function> Get(const char* symbol) {
    TENON_ASSIGN_OR_RETURN(void* const address, Find(symbol));
    return reinterpret_cast<Function>(address);
  }

  const std::string& file_name() const { return file_name_; }

 private:
  StatusOr<void*> Find(const char* symbol);
  StatusOr<void*> Open() const;

  const std::string file_name_;  // "libcublasLt.so.13"
  Mutex mu_;
  bool tried_ ABSL_GUARDED_BY(mu_) = false;
  StatusOr<void*> handle_ ABSL_GUARDED_BY(mu_) = nullptr;
};

/// The folders, after those of the loader, where NVIDIA's libraries may be, best first: of
/// CUDA_HOME and CUDA_PATH, of the wheels nvidia-* in VIRTUAL_ENV, CONDA_PREFIX, the installation
/// of the python3 on PATH and the user's own packages, and /usr/local/cuda. Only those that exist.
std::vector<std::string> LibraryFolders();

}  // namespace tenon::cuda
