// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "core/base/interruption.h"
#include "core/base/parallel.h"
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/fingerprint.h"
#include "ops/reduce_segments.h"
#include "ops/sparse/sparse_tensor.h"

namespace tenon {
namespace {

/// One input of a cross: the features of each row of the batch are numbers of elements of `values`.
struct FeatureColumn {
  Tensor values;
  SegmentedRows by_row;
};

/// The inputs of a cross: N indices, the values, N shapes and the dense inputs. The values of
/// sparse and dense inputs may be of int64 or string each.
struct CrossInputs {
  std::vector<FeatureColumn> columns;
  int64_t batch = 0;
  /// How many inputs of the op they are.
  int inputs = 0;
};

Status SetBatch(std::optional<int64_t>* batch, int64_t rows, std::string_view what, int i) {
  if (batch->value_or(rows) != rows) {
    return InvalidArgument("Expected batch size ", **batch, " got ", rows, " at ", what, " ", i);
  }
  *batch = rows;
  return AddSizes(rows, 1).status();  // so many splits between rows
}

StatusOr<CrossInputs> ReadCrossInputs(const KernelContext& ctx, int sparse, int dense) {
  CrossInputs in;
  in.inputs = 3 * sparse + dense;
  std::optional<int64_t> batch;
  for (int i = 0; i < sparse; ++i) {
    if (ctx.input(i).rank() != 2) {
      return InvalidArgument("Input indices should be a matrix but received shape ",
                             ctx.input(i).shape(), " at position ", i);
    }
    if (ctx.input(sparse + i).rank() != 1) {
      return InvalidArgument("Input values should be a vector but received shape ",
                             ctx.input(sparse + i).shape(), " at position ", i);
    }
    if (ctx.input(2 * sparse + i).rank() != 1) {
      return InvalidArgument("Input shapes should be a vector but received shape ",
                             ctx.input(2 * sparse + i).shape(), " at position ", i);
    }
    if (ctx.input(i).dim(1) != 2) {
      return InvalidArgument("Expected D2 of index to be 2 got ", ctx.input(i).dim(1),
                             " at position ", i);
    }
    TENON_ASSIGN_OR_RETURN(
        const SparseTensor column,
        SparseTensor::Of(ctx.input(i), ctx.input(sparse + i), ctx.input(2 * sparse + i)));
    if (column.rank() != 2) {
      return InvalidArgument("shape should imply a 2D tensor, but got rank ", column.rank(),
                             " at position ", i);
    }
    TENON_RETURN_IF_ERROR(SetBatch(&batch, column.dims[0], "sparse tensor", i));
    CountedVector<int64_t> rows(column.size());
    for (int64_t k = 0; k < column.size(); ++k) {
      rows[k] = column.index(k)[0];
      if (rows[k] < 0 || rows[k] >= *batch) {
        return NotInRange(rows[k], *batch, "the row of entry ", k, " at position ", i);
      }
    }
    in.columns.push_back({column.values, GroupRows(rows, *batch)});
  }
  for (int i = 0; i < dense; ++i) {
    const Tensor& t = ctx.input(3 * sparse + i);
    if (t.rank() != 2) {
      return InvalidArgument("Dense inputs should be a matrix but received shape ", t.shape(),
                             " at position ", i);
    }
    TENON_RETURN_IF_ERROR(SetBatch(&batch, t.dim(0), "dense tensor", i));
    CountedVector<int64_t> rows(t.num_elements());
    for (int64_t k = 0; k < t.num_elements(); ++k) rows[k] = k / t.dim(1);
    in.columns.push_back({t, GroupRows(rows, *batch)});
  }
  in.batch = batch.value_or(0);
  return in;
}

/// Writes as outputs 0 to 2 every combination of one feature of each column for each row, that of
/// the last column changing fastest. Its value is `combine` of the numbers of the features.
template <typename T, typename Combine>
Status WriteCrosses(KernelContext& ctx, const CrossInputs& in, Combine combine) {
  const size_t n = in.columns.size();
  CountedVector<int64_t> ends(in.batch + 1, 0);
  int64_t widest = 0;
  for (int64_t row = 0; row < in.batch && n > 0; ++row) {
    int64_t count = 1;
    for (const FeatureColumn& column : in.columns) {
      const CountedVector<int64_t>& starts = column.by_row.starts;
      TENON_ASSIGN_OR_RETURN(count, MultiplySizes(count, starts[row + 1] - starts[row]));
    }
    widest = std::max(widest, count);
    TENON_ASSIGN_OR_RETURN(ends[row + 1], AddSizes(ends[row], count));
  }
  TENON_ASSIGN_OR_RETURN(Tensor * indices, ctx.CreateOutput(0, {ends.back(), 2}));
  TENON_ASSIGN_OR_RETURN(Tensor * values, ctx.AllocateOutput(1, {ends.back()}));
  TENON_RETURN_IF_ERROR(WriteVector(ctx, 2, {in.batch, widest}));
  const double crosses = static_cast<double>(ends.back()) / static_cast<double>(in.batch + 1);
  ParallelFor(in.batch, 5 + 30 * crosses * static_cast<double>(n), [&](int64_t begin, int64_t end) {
    absl::InlinedVector<int64_t, 8> at(n), features(n);
    for (int64_t row = begin; row < end; ++row) {
      std::fill(at.begin(), at.end(), 0);
      for (int64_t k = ends[row]; k < ends[row + 1]; ++k) {
        if ((k + 1) % kStepsBetweenLooks == 0 && Interrupted()) return;
        for (size_t c = 0; c < n; ++c) {
          const SegmentedRows& by = in.columns[c].by_row;
          features[c] = by.rows[by.starts[row] + at[c]];
        }
        indices->data<int64_t>()[2 * k] = row;
        indices->data<int64_t>()[2 * k + 1] = k - ends[row];
        values->data<T>()[k] = combine(features);
        for (size_t c = n; c-- > 0;) {
          const CountedVector<int64_t>& starts = in.columns[c].by_row.starts;
          if (++at[c] < starts[row + 1] - starts[row]) break;
          at[c] = 0;
        }
      }
    }
  });
  return OkStatus();
}

using Features = absl::Span<const int64_t>;

/// The features as text, with `separator` in between.
Status CrossTexts(KernelContext& ctx, const CrossInputs& in, std::string_view separator) {
  std::vector<CountedVector<TString>> texts;
  for (const FeatureColumn& column : in.columns) {
    texts.emplace_back();
    if (column.values.dtype() == DType::kString) {
      const absl::Span<const TString> text = column.values.flat<TString>();
      texts.back().assign(text.begin(), text.end());
    } else {
      for (const int64_t v : column.values.flat<int64_t>()) texts.back().emplace_back(StrCat(v));
    }
  }
  return WriteCrosses<TString>(ctx, in, [&](Features features) {
    TString joined;
    for (size_t c = 0; c < features.size(); ++c) {
      if (c > 0) joined.append(separator);
      joined.append(texts[c][features[c]]);
    }
    return joined;
  });
}

/// The hashes of the features joined, from `first` on if that is given, modulo the number of
/// buckets.
template <typename Hash>
Status CrossHashes(KernelContext& ctx, const CrossInputs& in, std::optional<uint64_t> first,
                   int64_t buckets, Hash hash) {
  std::vector<CountedVector<uint64_t>> hashes;
  for (const FeatureColumn& column : in.columns) {
    hashes.emplace_back();
    for (int64_t i = 0; i < column.values.num_elements(); ++i) {
      hashes.back().push_back(hash(column.values, i));
    }
  }
  const uint64_t modulus = buckets > 0 ? buckets : std::numeric_limits<int64_t>::max();
  return WriteCrosses<int64_t>(ctx, in, [&](Features features) {
    uint64_t joined = first.value_or(0);
    for (size_t c = 0; c < features.size(); ++c) {
      const uint64_t next = hashes[c][features[c]];
      joined = c == 0 && !first ? next : FingerprintCat64(joined, next);
    }
    return static_cast<int64_t>(joined % modulus);
  });
}

Status CrossKernel(KernelContext& ctx, int64_t sparse, const std::vector<DType>& dense,
                   bool hashed_output, int64_t buckets, int64_t hash_key) {
  TENON_ASSIGN_OR_RETURN(const CrossInputs in, ReadCrossInputs(ctx, static_cast<int>(sparse),
                                                               static_cast<int>(dense.size())));
  if (hashed_output != (ctx.output_type(1) == DType::kInt64)) {
    return InvalidArgument("hashed_output = ", hashed_output, " does not go with the type ",
                           ctx.output_type(1));
  }
  if (!hashed_output) return CrossTexts(ctx, in, "_X_");
  return CrossHashes(
      ctx, in, static_cast<uint64_t>(hash_key), buckets, [](const Tensor& values, int64_t i) {
        return values.dtype() == DType::kString ? Fingerprint64(values.data<TString>()[i])
                                                : static_cast<uint64_t>(values.data<int64_t>()[i]);
      });
}

Status CrossV2Kernel(KernelContext& ctx, int64_t sparse, const std::vector<DType>& dense) {
  TENON_ASSIGN_OR_RETURN(const CrossInputs in, ReadCrossInputs(ctx, static_cast<int>(sparse),
                                                               static_cast<int>(dense.size())));
  if (ctx.input(in.inputs).rank() != 0) {
    return InvalidArgument("Input separator should be a scalar. Received shape ",
                           ctx.input(in.inputs).shape());
  }
  return CrossTexts(ctx, in, ctx.input(in.inputs).scalar<TString>());
}

Status CrossHashedKernel(KernelContext& ctx, int64_t sparse, const std::vector<DType>& dense) {
  TENON_ASSIGN_OR_RETURN(const CrossInputs in, ReadCrossInputs(ctx, static_cast<int>(sparse),
                                                               static_cast<int>(dense.size())));
  TENON_RETURN_IF_ERROR(CheckScalars(ctx, in.inputs, {"num_buckets", "strong_hash"}));
  const int64_t buckets = ctx.input(in.inputs).scalar<int64_t>();
  const bool strong = ctx.input(in.inputs + 1).scalar<bool>();
  const Tensor& salts = ctx.input(in.inputs + 2);
  if (salts.shape() != Shape{2}) {
    return InvalidArgument("Input \"salt\" must have length 2 but has shape ", salts.shape());
  }
  TENON_ASSIGN_OR_RETURN(const DimVector salt, ReadIntegers(salts, "salt"));
  const std::array<uint64_t, 2> key = {static_cast<uint64_t>(salt[0]),
                                       static_cast<uint64_t>(salt[1])};
  return CrossHashes(ctx, in, std::nullopt, buckets, [=](const Tensor& values, int64_t i) {
    // TensorFlow hashes the lower four bytes of a sparse number, and a dense number not at all.
    if (values.dtype() == DType::kInt64 && values.rank() == 2) {
      return static_cast<uint64_t>(values.data<int64_t>()[i]);
    }
    const std::string_view text =
        values.dtype() == DType::kString
            ? std::string_view(values.data<TString>()[i])
            : std::string_view(reinterpret_cast<const char*>(values.data<int64_t>() + i), 4);
    return strong ? SipHash(key, text) : Fingerprint64(text);
  });
}

}  // namespace

void RegisterSparseCrossOps(OpRegistry& ops) {
  const Tensor indices = Tensor::Of<int64_t>({3, 2}, {0, 0, 0, 1, 1, 0});
  const Tensor shape = Tensor::Vector<int64_t>({2, 2});
  const std::vector<ExampleInput> features = {indices, Tensor::Vector<TString>({"a", "b", "c"}),
                                              shape, Tensor::Of<int64_t>({2, 1}, {7, 8})};
  const auto with = [&](std::initializer_list<Tensor> more) {
    std::vector<ExampleInput> inputs = features;
    inputs.insert(inputs.end(), more.begin(), more.end());
    return inputs;
  };
  ops.Add("SparseCross", CrossKernel,
          {.attrs = {"N", "dense_types", "hashed_output", "num_buckets", "hash_key"}})
      .Example(features, {{"hashed_output", true},
                          {"num_buckets", 10},
                          {"hash_key", 5},
                          {"out_type", DType::kInt64},
                          {"internal_type", DType::kInt64}});
  ops.Add("SparseCrossV2", CrossV2Kernel, {.attrs = {"N", "dense_types"}})
      .Example(with({Tensor::Scalar<TString>("_")}));
  ops.Add("SparseCrossHashed", CrossHashedKernel, {.attrs = {"N", "dense_types"}})
      .Example(with(
          {Tensor::Scalar<int64_t>(10), Tensor::Scalar(false), Tensor::Vector<int64_t>({1, 2})}));
}

}  // namespace tenon
