// SPDX-License-Identifier: Apache-2.0
#include "ops/cuda/tuple_rows.h"

#include "ops/cuda/check.cuh"
#include "ops/cuda/launch.cuh"

namespace tenon::cuda {
namespace {

struct CheckTuple {
  TupleRows tuples;
  RunCheck check;
  __device__ void operator()(int64_t i) const {
    int64_t bad = 0;
    if (tuples.Row(i, &bad) < 0) NoteIndex(check, i, bad);
  }
};

}  // namespace

RunCheck AddTupleCheck(const KernelContext& ctx, const NodeIdentity& node, const Shape& indices,
                       std::string_view what, const Shape& shape) {
  return AddCheck(ctx, node, [indices, what = std::string(what), shape](uint64_t word) {
    const IndexNote note = NotedIndex(word);
    // The number to blame is all that is known of a longer tuple.
    const bool alone = indices.dim(indices.rank() - 1) == 1;
    const std::string tuple = alone ? StrCat(note.value) : StrCat("..., ", note.value, ", ...");
    return TupleOutOfRange(indices, note.place, tuple, what, shape);
  });
}

Status CheckTuples(KernelContext& ctx, const TupleRows& tuples, int64_t count, RunCheck check) {
  return ForEach(ctx, count, CheckTuple{tuples, check});
}

}  // namespace tenon::cuda
