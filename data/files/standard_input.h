// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "data/files/file.h"

// The standard input as a file: it comes once, and is kept to be read at any place and again.

namespace tenon {

/// Everything that an open file gave, in a file without a name in $TMPDIR, or in /tmp. Thread-safe.
class KeptBytes {
 public:
  /// Reads `fd` to its end. Errors say where the bytes are kept.
  static StatusOr<std::unique_ptr<KeptBytes>> Read(int fd, const FileContext& context = {});
  ~KeptBytes();
  KeptBytes(const KeptBytes&) = delete;
  KeptBytes& operator=(const KeptBytes&) = delete;

  int64_t size() const { return size_; }
  StatusOr<std::unique_ptr<InputFile>> Open() const;

 private:
  explicit KeptBytes(int fd) : fd_(fd) {}

  const int fd_;
  int64_t size_ = 0;
};

/// Reads the standard input of this process to its end, when nobody has. The first call's result is
/// everyone's: what was read before an error is lost. Thread-safe.
Status KeepStandardInput(const FileContext& context = {});

/// Opens what KeepStandardInput has read. FailedPrecondition when it was not called: other
/// processes have other standard inputs, which none may wait for.
StatusOr<std::unique_ptr<InputFile>> OpenStandardInput();

}  // namespace tenon
