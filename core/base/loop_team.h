// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"

// The threads that share loops of kernels with the threads that run them. They differ from an
// OpenMP team in that nobody waits for one that comes late: the parts of a loop are taken one by
// one, and what a sleeping thread would have done is done by the others. So loops of a hundred
// microseconds gain from them, which is what it takes to wake a thread of a virtual machine.

namespace tenon::parallel_internal {

/// Calls `fn(part)` once for each part of [0, parts), on the calling thread and on at most
/// `helpers` others, and returns when all calls are done. The calling thread takes parts too, so
/// that it can do all of them. `part_ns` is a guess of what one part costs; it decides whether
/// threads that sleep are woken. `fn` must throw nothing. Thread-safe.
///
/// A helper has the calling thread's treatment of denormals. It asks for more parts for a while
/// after a loop and then sleeps. Where other threads of the machine want its core it sleeps at
/// once. Then, and when it came too late, it is left alone for a while, but for work of a
/// millisecond and more.
///
/// Source: the halt polling of Linux' KVM, and OpenMP's dynamic schedule.
void RunParts(int parts, int helpers, double part_ns, absl::FunctionRef<void(int part)> fn);

/// The threads that have been started so far. Each lives until the process ends.
int NumHelpers();

}  // namespace tenon::parallel_internal
