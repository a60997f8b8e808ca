// SPDX-License-Identifier: Apache-2.0
#include "ops/random/stream.h"

#include "core/op/shape_inference.h"
#include "ops/arguments.h"

namespace tenon {

StatusOr<Philox> SeededPlace(const Tensor& seed) {
  if (seed.shape() != Shape{2}) {
    return InvalidArgument("seed must have shape [2], not ", seed.shape());
  }
  TENON_ASSIGN_OR_RETURN(const DimVector words, ReadIntegers(seed, "seed"));
  const Philox::Block mixed = Philox(0x02461e293ec8f720, words[0], words[1]).Next();
  return Philox(mixed[0] | uint64_t{mixed[1]} << 32, mixed[2] | uint64_t{mixed[3]} << 32);
}

namespace {

Status CheckAlgorithm(int64_t alg) {
  if (alg == kPhilox || alg == kAutomatic) return OkStatus();
  return InvalidArgument("Unsupported algorithm id: ", alg, ", wanted 1 (Philox)");
}

}  // namespace

Status CheckKeyedPlace(const KernelContext& ctx) {
  const Tensor &key = ctx.input(1), &counter = ctx.input(2);
  TENON_ASSIGN_OR_RETURN(const int64_t alg, ReadInteger(ctx.input(3), "alg"));
  TENON_RETURN_IF_ERROR(CheckAlgorithm(alg));
  if (key.shape() != Shape{1}) return InvalidArgument("key must have shape [1], not ", key.shape());
  if (counter.rank() != 1 || counter.dim(0) < 2) {
    return InvalidArgument("counter must be a vector of 2 elements or more, not ", counter.shape());
  }
  return OkStatus();
}

StatusOr<Philox> KeyedPlace(const KernelContext& ctx) {
  TENON_RETURN_IF_ERROR(CheckKeyedPlace(ctx));
  const Tensor& key = ctx.input(1);
  const uint64_t* const c = ctx.input(2).data<uint64_t>();
  return Philox(key.data<uint64_t>()[0], c[0], c[1]);
}

StatusOr<Philox> AdvanceGenerator(const KernelContext& ctx, const VariableInput& state, int alg,
                                  uint64_t outputs) {
  TENON_ASSIGN_OR_RETURN(const auto variable, state.Find(ctx, DType::kInvalid));
  if (variable->dtype() != DType::kInt64) {
    return InvalidArgument("dtype of RNG state variable must be int64, not ", variable->dtype());
  }
  if (alg >= 0) {
    if (ctx.input(alg).rank() != 0) {
      return InvalidArgument("algorithm must have shape [], not ", ctx.input(alg).shape());
    }
    TENON_ASSIGN_OR_RETURN(const int64_t wanted, ReadInteger(ctx.input(alg), "algorithm"));
    TENON_RETURN_IF_ERROR(CheckAlgorithm(wanted));
  }
  Philox place(0, 0);
  TENON_RETURN_IF_ERROR(variable->ModifyInPlace([&](Tensor* value) {
    const int64_t first = alg < 0 ? 1 : 0;
    if (value->rank() != 1 || value->dim(0) < first + 3) {
      if (value->rank() != 1) {
        return InvalidArgument("RNG state must have one and only one dimension, not ",
                               value->rank());
      }
      return InvalidArgument("For the Philox algorithm, the size of state must be at least ",
                             first + 3, "; got ", value->dim(0));
    }
    int64_t* const words = value->data<int64_t>() + first;
    if (alg < 0) TENON_RETURN_IF_ERROR(CheckAlgorithm(words[-1]));
    place = Philox(words[2], words[0], words[1]);
    Philox next = place;
    next.Skip(outputs * kReservedPerOutput);
    words[0] = static_cast<int64_t>(next.low());
    words[1] = static_cast<int64_t>(next.seed2());
    return OkStatus();
  }));
  return place;
}

Status CheckBounds(const KernelContext& ctx, int first) {
  for (const int i : {first, first + 1}) {
    if (ctx.input(i).rank() == 0) continue;
    return InvalidArgument(i == first ? "minval" : "maxval",
                           " must be a scalar; got a tensor of shape ", ctx.input(i).shape());
  }
  return OkStatus();
}

StatusOr<int64_t> CheckClasses(const KernelContext& ctx) {
  const Tensor& logits = ctx.input(0);
  TENON_RETURN_IF_ERROR(CheckRank(logits, 2, "logits"));
  TENON_ASSIGN_OR_RETURN(const int64_t samples, ReadInteger(ctx.input(1), "num_samples"));
  if (samples < 0) return InvalidArgument("num_samples should be nonnegative, got ", samples);
  if (logits.dim(1) < 1 && logits.dim(0) > 0) {
    return InvalidArgument("num_classes should be positive, got ", logits.dim(1));
  }
  return samples;
}

Status ShapeFromInput(ShapeContext& c) { return c.Return(c.ConstantShape(0)); }

}  // namespace tenon
