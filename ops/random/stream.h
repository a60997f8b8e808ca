// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/mutex.h"
#include "core/op/function_kernel.h"
#include "core/op/shape_inference.h"
#include "ops/random/philox.h"
#include "ops/state/variables.h"

// Where an op's random words come from: a stream of its own, a seed, or a key and a counter.

namespace tenon {

/// TensorFlow's numbers of algorithms: Philox, and that the device may choose.
inline constexpr int kPhilox = 1, kAutomatic = 3;
/// Blocks that TensorFlow sets aside for each output, of which a run uses few.
inline constexpr uint64_t kReservedPerOutput = 256;

/// The stream of a random kernel, which goes on from run to run.
class Stream : public KernelState {
 public:
  explicit Stream(KernelConstruction& c)
      : next_(Philox::FromSeeds(c.Attr<int64_t>("seed"), c.Attr<int64_t>("seed2"))) {}

  /// The present place; passes over `blocks` for the runs to come.
  Philox Reserve(uint64_t blocks) const {
    MutexLock lock(mu_);
    const Philox place = next_;
    next_.Skip(blocks);
    return place;
  }

 private:
  mutable Mutex mu_;
  mutable Philox next_ ABSL_GUARDED_BY(mu_);
};

/// What an op of two seeds draws from: they are mixed, so that any of their bits counts.
StatusOr<Philox> SeededPlace(const Tensor& seed);

/// Checks the key, the counter and the algorithm, inputs 1 to 3, as far as the host has them on any
/// device.
Status CheckKeyedPlace(const KernelContext& ctx);
/// What an op draws from that has them.
StatusOr<Philox> KeyedPlace(const KernelContext& ctx);

/// What an op draws from whose generator is the variable in input 0, [counter (2), key, ...] of
/// int64, which then goes on by what so many outputs take. The algorithm is input `alg`, or where
/// that is negative the variable's first element, before the others.
StatusOr<Philox> AdvanceGenerator(const KernelContext& ctx, const VariableInput& state, int alg,
                                  uint64_t outputs);

/// Checks that minval and maxval, inputs `first` and `first` + 1, are scalars.
Status CheckBounds(const KernelContext& ctx, int first);
/// Checks that there are integers from minval to below maxval.
template <typename T>
Status CheckOrder(T minval, T maxval) {
  if (minval < maxval) return OkStatus();
  return InvalidArgument("Need minval < maxval, got ", minval, " >= ", maxval);
}

/// Checks input 0, rows of the logits of classes, and input 1, how many to draw for each row, which
/// is given.
StatusOr<int64_t> CheckClasses(const KernelContext& ctx);
/// Blocks that drawing so many takes.
inline uint64_t BlocksOfClasses(int64_t rows, int64_t samples) {
  return 2 * kReservedPerOutput * rows * ((samples + 3) / 4 * 4);
}

/// For the ops whose input 0 is the shape of the output.
Status ShapeFromInput(ShapeContext& c);

}  // namespace tenon
