// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>
#include <utility>

#include "core/base/status.h"

namespace tenon {

/// What the exception that is being handled means: ResourceExhausted when memory or threads are
/// out, Internal otherwise. To be called inside a catch block only.
Status StatusOfException();

/// Runs `fn()`, which gives a Status or StatusOr. Our own code throws nothing, but the standard
/// library does when memory, a container's size or the threads of the system are at their end: such
/// an exception becomes the result. Stands once around each kernel and each handler of a call.
template <typename Fn>
std::invoke_result_t<Fn> CatchExceptions(Fn&& fn) {
  try {
    return std::forward<Fn>(fn)();
  } catch (...) {
    return StatusOfException();
  }
}

}  // namespace tenon
