// SPDX-License-Identifier: Apache-2.0
#include "ops/array/partition.h"

#include "ops/arguments.h"
#include "ops/cuda/check.cuh"
#include "ops/cuda/device_kind.h"
#include "ops/cuda/element.cuh"
#include "ops/cuda/group_rows.h"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/mover.h"
#include "ops/cuda/register.h"
#include "ops/cuda/strided_index.h"
#include "ops/cuda/wide_rows.h"

namespace tenon {
namespace cuda {
namespace {

/// The rows of `from` that `rows` names.
template <typename T>
struct TakeRow {
  const T* from;
  const uint32_t* rows;
  T* to;
  Divisor width;
  __device__ void operator()(int64_t i) const {
    const int64_t r = width.Quotient(i), j = i - r * width.value();
    to[i] = from[int64_t{rows[r]} * width.value() + j];
  }
};

struct PartitionKey {
  IndexReader partitions;
  int64_t limit;
  uint64_t* keys;
  RunCheck check;
  __device__ void operator()(int64_t i) const {
    const int64_t part = partitions[i];
    const bool valid = part >= 0 && part < limit;
    if (!valid) NoteIndex(check, i, part);
    keys[i] = static_cast<uint64_t>(valid ? part : limit);
  }
};

/// Rows are grouped on the device; once the host knows where the groups begin, and so how large the
/// outputs are, they are copied.
class PartitionKernel final : public AsyncKernel {
 public:
  explicit PartitionKernel(KernelConstruction& c) : AsyncKernel(c), node_(c) {}

  void ComputeAsync(KernelContext& ctx, Done done) const override {
    StatusOr<GroupedRows> grouped = Group(ctx);
    if (!grouped.ok()) return done(grouped.status());
    ctx.device().queue()->CopyToHost(
        grouped->starts, ctx.device_run().id,
        [&ctx, done, rows = grouped->rows](StatusOr<Tensor> starts) {
          done(starts.ok() ? Take(ctx, rows, *starts) : starts.status());
        });
  }

 private:
  StatusOr<GroupedRows> Group(KernelContext& ctx) const {
    const Tensor &data = ctx.input(0), &partitions = ctx.input(1);
    TENON_RETURN_IF_ERROR(CheckPrefix(data, "data", partitions, "partitions"));
    const int64_t n = partitions.num_elements(), limit = ctx.num_outputs();
    TENON_ASSIGN_OR_RETURN(Tensor keys, ctx.AllocateTemp(DType::kUInt64, {n}));
    RunCheck check = AddCheck(ctx, node_, [limit, shape = partitions.shape()](uint64_t word) {
      const IndexNote note = NotedIndex(word);
      return PartOutOfRange(shape, note.place, note.value, limit);
    });
    TENON_RETURN_IF_ERROR(ForEach(
        ctx, n, PartitionKey{IndexReader(partitions), limit, keys.data<uint64_t>(), check}));
    return GroupRows(ctx, keys, limit);
  }

  static Status Take(KernelContext& ctx, const Tensor& rows, const Tensor& starts) {
    const Tensor& data = ctx.input(0);
    const auto row = data.shape().dims().subspan(ctx.input(1).rank());
    const int64_t width = Product(row);
    for (int p = 0; p < ctx.num_outputs(); ++p) {
      const int64_t first = starts.data<int64_t>()[p],
                    count = starts.data<int64_t>()[p + 1] - first;
      TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(p, Concat({count}, row)));
      if (out->num_elements() == 0) continue;
      const WideRows wide = WidenRows(data, *out, width);
      Status status;
      DispatchBytes(wide.type, [&]<typename T>(T) {
        const int64_t elements = count * wide.width;
        static_cast<void>(
            status = ForEach(
                ctx, elements,
                TakeRow<T>{static_cast<const T*>(data.raw_data()), rows.data<uint32_t>() + first,
                           static_cast<T*>(out->raw_data()), Divisor(wide.width, elements)}));
      });
      TENON_RETURN_IF_ERROR(status);
    }
    return OkStatus();
  }

  const NodeIdentity node_;
};

/// The largest index so far. The order of these maxima does not matter.
struct LargestIndex {
  const int32_t* indices;
  unsigned long long* rows;
  RunCheck check;
  __device__ void operator()(int64_t i) const {
    const int32_t index = indices[i];
    if (index < 0) {
      NoteIndex(check, i, index);
    } else if (static_cast<unsigned long long>(index) >= *rows) {
      atomicMax(rows, static_cast<unsigned long long>(index) + 1);
    }
  }
};

/// Notes the last value for a row, which stays: the largest number, counted over all inputs, from
/// 1.
struct LastOfRow {
  const int32_t* indices;
  int64_t first;
  unsigned long long* last;
  __device__ void operator()(int64_t i) const {
    if (indices[i] >= 0) {
      atomicMax(last + indices[i], static_cast<unsigned long long>(first + i + 1));
    }
  }
};

template <typename T>
struct StitchElement {
  const int32_t* indices;
  const T* data;
  int64_t first;
  const unsigned long long* last;
  T* out;
  Divisor width;
  __device__ void operator()(int64_t i) const {
    const int64_t r = width.Quotient(i), j = i - r * width.value();
    const int32_t row = indices[r];
    if (row >= 0 && last[row] == static_cast<unsigned long long>(first + r + 1)) {
      out[row * width.value() + j] = data[i];
    }
  }
};

/// How many rows the result has, the largest index says: once the host has it, the rest is queued.
class StitchKernel final : public AsyncKernel {
 public:
  explicit StitchKernel(KernelConstruction& c) : AsyncKernel(c), node_(c) {}

  void ComputeAsync(KernelContext& ctx, Done done) const override {
    StatusOr<Tensor> rows = CountRows(ctx);
    if (!rows.ok()) return done(rows.status());
    ctx.device().queue()->CopyToHost(
        *rows, ctx.device_run().id, [&ctx, done](StatusOr<Tensor> host) {
          done(host.ok() ? Stitch(ctx, static_cast<int64_t>(host->scalar<uint64_t>()))
                         : host.status());
        });
  }

 private:
  StatusOr<Tensor> CountRows(KernelContext& ctx) const {
    const int n = ctx.num_inputs() / 2;
    TENON_RETURN_IF_ERROR(StitchedRow(ctx, n));
    TENON_ASSIGN_OR_RETURN(Tensor rows, ctx.AllocateTemp(DType::kUInt64, Shape()));
    TENON_RETURN_IF_ERROR(kDeviceMover.zero(ctx, &rows));
    for (int i = 0; i < n; ++i) {
      const Tensor& indices = ctx.input(i);
      if (indices.num_elements() == 0) continue;
      RunCheck check = AddCheck(ctx, node_, [i](uint64_t word) {
        return NegativeStitchIndex(i, NotedIndex(word).value);
      });
      TENON_RETURN_IF_ERROR(
          ForEach(ctx, indices.num_elements(),
                  LargestIndex{indices.data<int32_t>(),
                               static_cast<unsigned long long*>(rows.raw_data()), check}));
    }
    return rows;
  }

  static Status Stitch(KernelContext& ctx, int64_t rows) {
    const int n = ctx.num_inputs() / 2;
    TENON_ASSIGN_OR_RETURN(const DimVector row, StitchedRow(ctx, n));
    TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, Concat({rows}, row)));
    // Rows that no index names are zero.
    TENON_RETURN_IF_ERROR(kDeviceMover.zero(ctx, out));
    if (out->num_elements() == 0) return OkStatus();
    TENON_ASSIGN_OR_RETURN(Tensor last, ctx.AllocateTemp(DType::kUInt64, {rows}));
    TENON_RETURN_IF_ERROR(kDeviceMover.zero(ctx, &last));
    auto* const places = static_cast<unsigned long long*>(last.raw_data());
    int64_t first = 0;
    for (int i = 0; i < n; ++i) {
      const Tensor& indices = ctx.input(i);
      TENON_RETURN_IF_ERROR(
          ForEach(ctx, indices.num_elements(), LastOfRow{indices.data<int32_t>(), first, places}));
      first += indices.num_elements();
    }
    first = 0;
    for (int i = 0; i < n; ++i) {
      const Tensor &indices = ctx.input(i), &data = ctx.input(n + i);
      const WideRows wide = WidenRows(data, *out, Product(row));
      const int64_t elements = indices.num_elements() * wide.width;
      Status status;
      DispatchBytes(wide.type, [&]<typename T>(T) {
        static_cast<void>(
            status = ForEach(
                ctx, elements,
                StitchElement<T>{indices.data<int32_t>(), static_cast<const T*>(data.raw_data()),
                                 first, places, static_cast<T*>(out->raw_data()),
                                 Divisor(wide.width, std::max<int64_t>(elements, 1))}));
      });
      TENON_RETURN_IF_ERROR(status);
      first += indices.num_elements();
    }
    return OkStatus();
  }

  const NodeIdentity node_;
};

}  // namespace
}  // namespace cuda

void RegisterCudaPartition(OpRegistry& ops) {
  const KernelOptions plain = {.types = {{"T", DTypesOf(PlainTypes())}}};
  ops.Get("DynamicPartition").Kernel<cuda::PartitionKernel>(kCuda, plain);
  ops.Get("DynamicStitch").Kernel<cuda::StitchKernel>(kCuda, plain);
  ops.Get("ParallelDynamicStitch").Kernel<cuda::StitchKernel>(kCuda, plain);
}

}  // namespace tenon
