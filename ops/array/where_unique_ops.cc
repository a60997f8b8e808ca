// SPDX-License-Identifier: Apache-2.0
#include "absl/hash/hash.h"
#include "core/counted_memory.h"
#include "core/interruption.h"
#include "core/op_registry.h"
#include "ops/arguments.h"
#include "ops/elements.h"
#include "ops/maths.h"

namespace tenon {
namespace {

Status WhereKernel(KernelContext& ctx) {
  const Tensor& in = ctx.input(0);
  if (in.rank() == 0) return InvalidArgument("the input must be at least a vector, found a scalar");
  CountedVector<int64_t> found;
  TENON_RETURN_IF_ERROR(DispatchStatus(in.dtype(), PlainTypes(), [&]<typename T>(T) {
    const T* values = in.data<T>();
    for (int64_t i = 0; i < in.num_elements(); ++i) {
      if (i % kStepsBetweenLooks == 0 && Interrupted()) break;
      if (ComputeType<T>(values[i]) != ComputeType<T>(0)) found.push_back(i);
    }
  }));
  const int rank = in.rank();
  TENON_ASSIGN_OR_RETURN(Tensor * out,
                         ctx.CreateOutput(0, {static_cast<int64_t>(found.size()), rank}));
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
  return c.Return(PartialShape{PartialShape::kUnknownDim, c.input(0).rank()});
}

template <typename T>
uint64_t HashOf(const T& x) {
  return absl::Hash<T>()(x);
}
uint64_t HashOf(const TString& x) { return absl::Hash<absl::string_view>()(ToAbsl(x)); }

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
  NumberTable numbers;
  for (size_t i = 0; i < x.size(); ++i) {
    if (i % kStepsBetweenLooks == 0 && Interrupted()) return;
    const auto next = static_cast<int64_t>(first->size());
    int64_t number = next;
    if (x[i] == x[i]) {
      number =
          numbers.FindOrAdd(HashOf(x[i]), next, [&](int64_t k) { return x[(*first)[k]] == x[i]; });
    }
    if (number == next) first->push_back(static_cast<int64_t>(i));
    (*place)[i] = number;
  }
}

Status UniqueKernel(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  TENON_RETURN_IF_ERROR(CheckRank(x, 1, "x"));
  CountedVector<int64_t> place(x.num_elements()), first;
  // By value for the types where equal values may have different bits (0 and -0), or equal bits
  // are different values (NaN).
  using Types =
      decltype(ConcatTypes(TypeList<float, double, Half, BFloat16, TString, bool>(), IntTypes()));
  TENON_RETURN_IF_ERROR(DispatchStatus(x.dtype(), Types(), [&]<typename T>(T) {
    using C = ComputeType<T>;
    if constexpr (std::is_same_v<C, T>) {
      NumberDistinct<T>(x.flat<T>(), &place, &first);
    } else {
      NumberDistinct<C>(CountedVector<C>(x.data<T>(), x.data<T>() + x.num_elements()), &place,
                        &first);
    }
  }));
  if (Interrupted()) return OkStatus();  // `place` is not complete
  const int64_t n = static_cast<int64_t>(first.size());
  TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.AllocateOutput(0, {n}));
  for (int64_t k = 0; k < n; ++k) CopyElements(x, first[k], y, k, 1);
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

Status UniqueShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape x, c.WithRank(0, 1));
  for (int i = 0; i < c.num_outputs(); ++i) {
    c.set_output(i, i == 1 ? x : PartialShape::OfRank(1));
  }
  return OkStatus();
}

}  // namespace

void RegisterSelectOps(OpRegistry& ops) {
  ops.Add("Where", WhereShape, WhereKernel, {.types = {{"T", DTypesOf(PlainTypes())}}})
      .Example({Tensor::Of<bool>({2, 2}, {true, false, true, true})});
  for (const char* name : {"Unique", "UniqueWithCounts"}) {
    ops.Add(name, UniqueShape, UniqueKernel).Example({Tensor::Vector({4, 2, 4, 7, 2})});
  }
}

}  // namespace tenon
