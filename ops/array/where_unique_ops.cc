// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "absl/hash/hash.h"
#include "core/counted_memory.h"
#include "core/interruption.h"
#include "ops/arguments.h"
#include "ops/array/array_ops.h"
#include "ops/elements.h"
#include "ops/maths.h"
#include "ops/array/register.h"

namespace tenon {
namespace {

Status WhereKernel(KernelContext& ctx) {
  const Tensor& in = ctx.input(0);
  if (in.rank() == 0) return InvalidArgument("the input must be at least a vector, found a scalar");
  CountedVector<int64_t> found;
  const bool known = Dispatch(in.dtype(), PlainTypes(), [&](auto zero) {
    using T = decltype(zero);
    const T* values = in.data<T>();
    for (int64_t i = 0; i < in.num_elements(); ++i) {
      if (i % kStepsBetweenLooks == 0 && Interrupted()) break;
      bool set;
      if constexpr (std::is_same_v<T, bool>) {
        set = values[i];
      } else {
        using C = ComputeType<T>;
        set = C(values[i]) != C(0);
      }
      if (set) found.push_back(i);
    }
  });
  if (!known) return Unimplemented("no Where of ", ToString(in.dtype()));
  const int rank = in.rank();
  TENON_ASSIGN_OR_RETURN(const Shape shape,
                         Shape::Create({static_cast<int64_t>(found.size()), rank}));
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  const DimVector strides = StridesOf(in.shape().dims());
  int64_t* at = out->data<int64_t>();
  for (int64_t place : found) {
    for (int d = 0; d < rank; ++d) {
      *at++ = place / strides[d];
      place %= strides[d];
    }
  }
  return OkStatus();
}

Status WhereShape(ShapeContext& c) {
  const int64_t rank = c.input(0).rank_known() ? c.input(0).rank() : PartialShape::kUnknownDim;
  c.set_output(0, PartialShape{PartialShape::kUnknownDim, rank});
  return OkStatus();
}

template <typename Key>
uint64_t HashOf(const Key& key) {
  if constexpr (std::is_same_v<Key, std::string_view>) {
    return absl::Hash<absl::string_view>()(ToAbsl(key));
  } else {
    return absl::Hash<Key>()(key);
  }
}

/// The numbers of keys, which lie elsewhere, by open addressing. (Abseil's tables do not survive an
/// allocator that throws.)
class NumberTable {
 public:
  /// Calls `same(number)` for those that may be the key's; its number, or `next`, which is added.
  template <typename Same>
  int64_t FindOrAdd(uint64_t hash, int64_t next, Same same) {
    if (2 * (size_ + 1) > slots_.size()) Grow();
    size_t at = hash & (slots_.size() - 1);
    for (; slots_[at].number >= 0; at = (at + 1) & (slots_.size() - 1)) {
      if (slots_[at].hash == hash && same(slots_[at].number)) return slots_[at].number;
    }
    slots_[at] = {hash, next};
    ++size_;
    return next;
  }

 private:
  struct Slot {
    uint64_t hash = 0;
    int64_t number = -1;
  };
  void Grow() {
    CountedVector<Slot> larger(4 * slots_.size());
    for (const Slot& slot : slots_) {
      if (slot.number < 0) continue;
      size_t at = slot.hash & (larger.size() - 1);
      while (larger[at].number >= 0) at = (at + 1) & (larger.size() - 1);
      larger[at] = slot;
    }
    slots_.swap(larger);
  }

  CountedVector<Slot> slots_ = CountedVector<Slot>(64);  // a power of two
  size_t size_ = 0;
};

/// Numbers the distinct elements of `x` in order of appearance: place[i] is that of x[i], first[k]
/// where number k was seen first. A NaN differs from every other, so each has a number of its own,
/// and need not be found again.
template <typename T>
void NumberDistinct(absl::Span<const T> x, CountedVector<int64_t>* place,
                    CountedVector<int64_t>* first) {
  using Key = std::conditional_t<std::is_same_v<T, TString>, std::string_view, T>;
  NumberTable numbers;
  for (size_t i = 0; i < x.size(); ++i) {
    if (i % kStepsBetweenLooks == 0 && Interrupted()) return;
    const auto next = static_cast<int64_t>(first->size());
    int64_t number = next;
    if (x[i] == x[i]) {
      number = numbers.FindOrAdd(HashOf(Key(x[i])), next,
                                 [&](int64_t k) { return x[(*first)[k]] == x[i]; });
    }
    if (number == next) first->push_back(static_cast<int64_t>(i));
    (*place)[i] = number;
  }
}

Status UniqueKernel(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  if (x.rank() != 1) {
    return InvalidArgument("unique expects a 1D vector, found shape ", x.shape().ToString());
  }
  CountedVector<int64_t> place(x.num_elements()), first;
  // By value for the types where equal values may have different bits (0 and -0), or equal bits
  // are different values (NaN).
  using Types = decltype(ConcatTypes(TypeList<float, double, TString, bool>(), IntTypes()));
  const bool known = Dispatch(x.dtype(), Types(), [&](auto zero) {
    using T = decltype(zero);
    NumberDistinct<T>(x.flat<T>(), &place, &first);
  });
  if (!known) {
    const bool half = Dispatch(x.dtype(), TypeList<Half, BFloat16>(), [&](auto zero) {
      using T = decltype(zero);
      const CountedVector<float> values(x.data<T>(), x.data<T>() + x.num_elements());
      NumberDistinct<float>(values, &place, &first);
    });
    if (!half) return Unimplemented("no Unique of ", ToString(x.dtype()));
  }
  if (Interrupted()) return OkStatus();  // `place` is not complete
  const int64_t n = static_cast<int64_t>(first.size());
  TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.AllocateOutput(0, {n}));
  for (int64_t k = 0; k < n; ++k) {
    CopyElements(x.dtype(), ElementAt(x, first[k]), ElementAt(*y, k), 1);
  }
  CountedVector<int64_t> counts(n, 0);
  for (const int64_t p : place) ++counts[p];
  for (int i = 1; i < ctx.num_outputs(); ++i) {
    const CountedVector<int64_t>& values = i == 1 ? place : counts;
    TENON_ASSIGN_OR_RETURN(Tensor * out,
                           ctx.AllocateOutput(i, {static_cast<int64_t>(values.size())}));
    if (out->dtype() == DType::kInt64) {
      std::copy(values.begin(), values.end(), out->data<int64_t>());
    } else {
      std::copy(values.begin(), values.end(), out->data<int32_t>());
    }
  }
  return OkStatus();
}

Status UniqueShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(PartialShape x, c.WithRank(0, 1));
  c.set_output(0, PartialShape::OfRank(1));
  c.set_output(1, std::move(x));
  if (c.num_outputs() > 2) c.set_output(2, PartialShape::OfRank(1));
  return OkStatus();
}

}  // namespace

void RegisterSelectOps(OpRegistry& ops) {
  ops.Get("Where")
      .Shape(WhereShape)
      .Kernel(kCpu, WhereKernel, {.types = {{"T", DTypesOf(PlainTypes())}}})
      .Example({Tensor::Of<bool>({2, 2}, {true, false, true, true})});
  ops.Get("Unique")
      .Shape(UniqueShape)
      .Kernel(kCpu, UniqueKernel)
      .Example({Tensor::Vector<int32_t>({4, 2, 4, 7, 2})});
  ops.Get("UniqueWithCounts")
      .Shape(UniqueShape)
      .Kernel(kCpu, UniqueKernel)
      .Example({Tensor::Vector<int32_t>({4, 2, 4, 7, 2})});
}

}  // namespace tenon
