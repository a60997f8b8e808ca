// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/sanitizers.h"

#if TENON_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#endif

namespace tenon {

// gRPC hands an operation from the thread that starts it to the one that ends it under locks that
// ThreadSanitizer cannot see, because the library is built without it. These two tell it: what
// happened before GiveToGrpc(p) happens before what follows TakeFromGrpc(p). In other builds they
// are nothing.

inline void GiveToGrpc([[maybe_unused]] void* p) {
#if TENON_THREAD_SANITIZER
  __tsan_release(p);
#endif
}

inline void TakeFromGrpc([[maybe_unused]] void* p) {
#if TENON_THREAD_SANITIZER
  __tsan_acquire(p);
#endif
}

}  // namespace tenon
