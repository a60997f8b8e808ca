// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tenon::cuda {

/// A shared library of NVIDIA's, opened when something of it is first asked for: a program that
/// uses none of it needs none. Thread-safe; stays open.
class Library {
 public:
  /// The function of that name, null when the library or the function is missing.
  template <typename F>
  F Get(const char* name) const {
    return reinterpret_cast<F>(Find(name));
  }

 private:
  void* Find(const char* name) const;
};

const Library& CublasLt();

}  // namespace tenon::cuda
