// SPDX-License-Identifier: Apache-2.0
#include "absl/hash/hash.h"
#include "core/base/interruption.h"
#include "core/memory/counted_memory.h"
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/array/gather.h"
#include "ops/elements.h"
#include "ops/maths.h"

namespace tenon {
namespace {

// By value for the types where equal values may have different bits (0 and -0), or equal bits are
// different values (NaN).
using UniqueTypes =
    decltype(ConcatTypes(TypeList<float, double, Half, BFloat16, TString, bool>(), IntTypes()));

template <typename T>
uint64_t HashOf(const T& x) {
  return absl::Hash<ComputeType<T>>()(x);
}
uint64_t HashOf(const TString& x) { return absl::Hash<absl::string_view>()(ToAbsl(x)); }

template <typename T>
bool SameValue(const T& x, const T& y) {
  return static_cast<const ComputeType<T>&>(x) == static_cast<const ComputeType<T>&>(y);
}

/// The numbers of keys, which lie elsewhere, by open addressing. (Abseil's tables do not survive an
/// allocator that throws.)
class NumberTable {
 public:
  /// Calls `same(number)` for those that may be the key's; its number, or -1.
  template <typename Same>
  int64_t Find(uint64_t hash, Same same) const {
    return slots_[SlotOf(hash, same)].number;
  }
  /// The same, but a key that is not there becomes number `next`, which is given.
  template <typename Same>
  int64_t FindOrAdd(uint64_t hash, int64_t next, Same same) {
    if (2 * (size_ + 1) > slots_.size()) Grow();
    Slot& slot = slots_[SlotOf(hash, same)];
    if (slot.number >= 0) return slot.number;
    slot = {hash, next};
    ++size_;
    return next;
  }

 private:
  struct Slot {
    uint64_t hash = 0;
    int64_t number = -1;
  };
  /// The key's slot, or the free one where it belongs.
  template <typename Same>
  size_t SlotOf(uint64_t hash, Same same) const {
    size_t at = hash & (slots_.size() - 1);
    while (slots_[at].number >= 0 && !(slots_[at].hash == hash && same(slots_[at].number))) {
      at = (at + 1) & (slots_.size() - 1);
    }
    return at;
  }
  void Grow() {
    CountedVector<Slot> larger(4 * slots_.size());
    larger.swap(slots_);
    for (const Slot& slot : larger) {
      if (slot.number >= 0) slots_[SlotOf(slot.hash, [](int64_t) { return false; })] = slot;
    }
  }

  CountedVector<Slot> slots_ = CountedVector<Slot>(64);  // a power of two
  size_t size_ = 0;
};

// --- Unique ---

/// The slices of a tensor along an axis: [outer, count, inner].
struct Slices {
  int64_t outer, count, inner;
};

/// Numbers the distinct slices of `x` in order of appearance: place[i] is that of slice i, first[k]
/// where number k was seen first. A NaN differs from every other, so what has one has a number of
/// its own, and need not be found again.
template <typename T>
void NumberDistinct(const T* x, const Slices& slices, CountedVector<int64_t>* place,
                    CountedVector<int64_t>* first) {
  const auto [outer, count, inner] = slices;
  const auto at = [=, count = count, inner = inner](int64_t o, int64_t i, int64_t k) -> const T& {
    return x[(o * count + i) * inner + k];
  };
  const auto same = [&, outer = outer, inner = inner](int64_t i, int64_t j) {
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t k = 0; k < inner; ++k) {
        if (!SameValue(at(o, i, k), at(o, j, k))) return false;
      }
    }
    return true;
  };
  NumberTable numbers;
  int64_t steps = 0;
  for (int64_t i = 0; i < count; ++i) {
    uint64_t hash = 0;
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t k = 0; k < inner; ++k) {
        if (++steps % kStepsBetweenLooks == 0 && Interrupted()) return;
        hash = (hash ^ HashOf(at(o, i, k))) * 0x9e3779b97f4a7c15;
      }
    }
    hash ^= hash >> 32;
    const auto next = static_cast<int64_t>(first->size());
    int64_t number = next;
    if (same(i, i)) {
      number = numbers.FindOrAdd(hash, next, [&](int64_t k) { return same((*first)[k], i); });
    }
    if (number == next) first->push_back(i);
    (*place)[i] = number;
  }
}

/// The same of integers, each a slice. The table holds them and not only their hashes: what is
/// there already is found by one look.
template <typename T>
void NumberDistinctIntegers(const T* x, int64_t count, CountedVector<int64_t>* place,
                            CountedVector<int64_t>* first) {
  struct Slot {
    T value = 0;
    int64_t number = -1;
  };
  CountedVector<Slot> slots(256);  // a power of two
  const auto slot_of = [&](T value) -> Slot& {
    size_t at = HashOf(value) & (slots.size() - 1);
    while (slots[at].number >= 0 && slots[at].value != value) at = (at + 1) & (slots.size() - 1);
    return slots[at];
  };
  for (int64_t i = 0; i < count; ++i) {
    if (i % kStepsBetweenLooks == 0 && Interrupted()) return;
    Slot* slot = &slot_of(x[i]);
    if (slot->number < 0) {
      if (2 * (first->size() + 1) > slots.size()) {
        CountedVector<Slot> fewer(4 * slots.size());
        fewer.swap(slots);
        for (const Slot& old : fewer) {
          if (old.number >= 0) slot_of(old.value) = old;
        }
        slot = &slot_of(x[i]);
      }
      *slot = {x[i], static_cast<int64_t>(first->size())};
      first->push_back(i);
    }
    (*place)[i] = slot->number;
  }
}

/// The kernel for the slices of input 0 along `axis`.
Status UniqueAlong(KernelContext& ctx, int axis) {
  const Tensor& x = ctx.input(0);
  const auto dims = x.shape().dims();
  const Slices slices{Product(dims, 0, axis), dims[axis], Product(dims, axis + 1, x.rank())};
  CountedVector<int64_t> place(slices.count), first;
  TENON_RETURN_IF_ERROR(DispatchStatus(x.dtype(), UniqueTypes(), [&]<typename T>(T) {
    if constexpr (std::is_integral_v<T>) {
      if (slices.outer * slices.inner == 1) {
        return NumberDistinctIntegers(x.data<T>(), slices.count, &place, &first);
      }
    }
    NumberDistinct(x.data<T>(), slices, &place, &first);
  }));
  if (Interrupted()) return OkStatus();  // `place` is not complete
  const int64_t n = static_cast<int64_t>(first.size());
  TENON_ASSIGN_OR_RETURN(Tensor rows, ctx.AllocateTemp(DType::kInt64, {n}));
  WriteIntegers(first, &rows);
  TENON_ASSIGN_OR_RETURN(Tensor y, GatherSlices(x, rows, axis, 0));
  ctx.set_output(0, std::move(y));
  CountedVector<int64_t> counts(n, 0);
  for (const int64_t p : place) ++counts[p];
  for (int i = 1; i < ctx.num_outputs(); ++i) {
    const CountedVector<int64_t>& values = i == 1 ? place : counts;
    TENON_ASSIGN_OR_RETURN(Tensor * out,
                           ctx.AllocateOutput(i, {static_cast<int64_t>(values.size())}));
    WriteIntegers(values, out);
  }
  return OkStatus();
}

Status UniqueKernel(KernelContext& ctx) {
  if (ctx.input(0).rank() != 1) {
    return InvalidArgument("unique expects a 1D vector, found shape ", ctx.input(0).shape());
  }
  return UniqueAlong(ctx, 0);
}

Status UniqueV2Kernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const DimVector axes, ReadIntegers(ctx.input(1), "axis"));
  if (axes.empty()) return UniqueKernel(ctx);
  if (axes.size() > 1) {
    return InvalidArgument("axis does not support input tensors larger than 1 elements, found ",
                           axes.size());
  }
  const int rank = ctx.input(0).rank();
  if (axes[0] < -rank || axes[0] >= rank) {
    return InvalidArgument("axis expects to be in the range [", -rank, ", ", rank, "), found ",
                           axes[0]);
  }
  return UniqueAlong(ctx, static_cast<int>(axes[0] < 0 ? axes[0] + rank : axes[0]));
}

Status UniqueV2Shape(ShapeContext& c) {
  c.set_output(0, PartialShape::OfRank(c.input(0).rank()));
  for (int i = 1; i < c.num_outputs(); ++i) c.set_output(i, PartialShape::OfRank(1));
  return OkStatus();
}

// --- ListDiff ---

Status ListDiffKernel(KernelContext& ctx, const Tensor& x, const Tensor& y) {
  TENON_RETURN_IF_ERROR(CheckRank(x, 1, "x"));
  TENON_RETURN_IF_ERROR(CheckRank(y, 1, "y"));
  CountedVector<int64_t> kept;
  TENON_RETURN_IF_ERROR(DispatchStatus(x.dtype(), UniqueTypes(), [&]<typename T>(T) {
    const T *all = x.data<T>(), *without = y.data<T>();
    NumberTable numbers;
    const auto is = [=](const T& value) {
      return [without, &value](int64_t k) { return SameValue(without[k], value); };
    };
    for (int64_t i = 0; i < y.dim(0); ++i) {
      if (i % kStepsBetweenLooks == 0 && Interrupted()) return;
      numbers.FindOrAdd(HashOf(without[i]), i, is(without[i]));
    }
    for (int64_t i = 0; i < x.dim(0); ++i) {
      if (i % kStepsBetweenLooks == 0 && Interrupted()) return;
      if (numbers.Find(HashOf(all[i]), is(all[i])) < 0) kept.push_back(i);
    }
  }));
  const auto n = static_cast<int64_t>(kept.size());
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, {n}));
  TENON_ASSIGN_OR_RETURN(Tensor * idx, ctx.AllocateOutput(1, {n}));
  for (int64_t k = 0; k < n; ++k) CopyElements(x, kept[k], out, k, 1);
  WriteIntegers(kept, idx);
  return OkStatus();
}

}  // namespace

void RegisterUniqueOps(OpRegistry& ops) {
  for (const char* name : {"Unique", "UniqueWithCounts"}) {
    ops.Add(name, UniqueKernel).Example({Tensor::Vector({4, 2, 4, 7, 2})});
  }
  for (const char* name : {"UniqueV2", "UniqueWithCountsV2"}) {
    ops.Add(name, UniqueV2Shape, UniqueV2Kernel)
        .Example({Tensor::Of({2, 3}, {1, 2, 1, 4, 5, 4}), Tensor::Vector<int64_t>({1})});
  }
  ops.Add("ListDiff", ListDiffKernel)
      .Example({Tensor::Vector({4, 2, 4, 7, 2}), Tensor::Vector({7, 4})});
}

}  // namespace tenon
