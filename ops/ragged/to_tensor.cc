// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/op/op_registry.h"
#include "ops/array/array_ops.h"
#include "ops/broadcast.h"
#include "ops/broadcast_gradient.h"
#include "ops/composition.h"
#include "ops/elements.h"
#include "ops/math/math_ops.h"
#include "ops/ragged/ragged_ops.h"
#include "ops/ragged/splits.h"

namespace tenon {
namespace {

/// One way in which rows are divided: the row of each item.
using RowIds = CountedVector<int64_t>;

enum class Partition { kRowSplits, kValueRowIds, kFirstDimSize };

StatusOr<std::vector<Partition>> ParsePartitions(const std::vector<std::string>& names,
                                                 int partitions) {
  std::vector<Partition> types;
  for (const std::string& name : names) {
    if (name == "ROW_SPLITS") {
      types.push_back(Partition::kRowSplits);
    } else if (name == "VALUE_ROWIDS") {
      types.push_back(Partition::kValueRowIds);
    } else if (name == "FIRST_DIM_SIZE" && types.empty()) {
      types.push_back(Partition::kFirstDimSize);
    } else {
      return InvalidArgument("Unknown string for partition info type: ", name, " as number ",
                             types.size());
    }
  }
  if (types.empty() || types[0] == Partition::kValueRowIds) {
    return InvalidArgument("Cannot handle VALUE_ROWIDS in first dimension.");
  }
  if (static_cast<int>(types.size()) == partitions) return types;
  return InvalidArgument("row_partition_types must have an entry for each of the ", partitions,
                         " row partitions, found ", types.size());
}

/// The row of each item that `t` divides among `rows` rows.
StatusOr<RowIds> ReadRowIds(const Tensor& t, Partition type, int64_t rows) {
  RowIds ids;
  if (type == Partition::kValueRowIds) {
    TENON_RETURN_IF_ERROR(CheckRank(t, 1, "value_rowids"));
    TENON_ASSIGN_OR_RETURN(const IndexVector read, ReadIndices(t, "value_rowids", rows));
    if (!std::is_sorted(read.begin(), read.end())) {
      return InvalidArgument("value_rowids must be sorted");
    }
    ids.assign(read.begin(), read.end());
    return ids;
  }
  TENON_ASSIGN_OR_RETURN(const IndexVector splits, ReadSplits(t));
  if (splits.front() != 0 || static_cast<int64_t>(splits.size()) != rows + 1) {
    return InvalidArgument("Invalid row split size: wanted ", rows + 1, " splits from 0 on, found ",
                           splits.size(), " from ", splits.front(), " on");
  }
  ids.resize(splits.back());
  for (int64_t r = 0; r < rows; ++r) {
    std::fill(ids.begin() + splits[r], ids.begin() + splits[r + 1], r);
  }
  return ids;
}

/// The items of the longest row.
int64_t LongestRow(const RowIds& ids) {
  int64_t longest = 0;
  for (size_t begin = 0, i = 0; i < ids.size(); ++i) {
    if (ids[i] != ids[begin]) begin = i;
    longest = std::max(longest, static_cast<int64_t>(i - begin) + 1);
  }
  return longest;
}

/// `shape` with its unknown sizes those of `fitting`; InvalidArgument when the ranks, or the sizes
/// from `ragged` + 1 on, differ.
StatusOr<DimVector> WantedShape(const Tensor& shape, const DimVector& fitting, int ragged) {
  if (shape.rank() > 1)
    return InvalidArgument("Shape must be at most rank 1, found ", shape.rank());
  TENON_ASSIGN_OR_RETURN(DimVector wanted, ReadIntegers(shape, "shape"));
  if (shape.rank() == 0) {
    if (wanted[0] == -1) return fitting;
    return InvalidArgument(
        "The only valid scalar shape tensor is the fully unknown shape specified "
        "as -1.");
  }
  if (wanted.size() != fitting.size()) {
    return InvalidArgument("rt_input.shape and shape=[", Join(wanted, ","),
                           "] are incompatible: "
                           "rt_input.rank = ",
                           fitting.size(), " but shape.rank = ", wanted.size());
  }
  for (int d = 0; d < static_cast<int>(wanted.size()); ++d) {
    if (wanted[d] < -1) return InvalidArgument("Dimension ", wanted[d], " must be >= -1");
    if (wanted[d] == -1) wanted[d] = fitting[d];
    if (d <= ragged || wanted[d] == fitting[d]) continue;
    return InvalidArgument("rt_input.shape and shape=[", Join(wanted, ","),
                           "] are incompatible: "
                           "dimension ",
                           d, " of the values is ", fitting[d]);
  }
  return wanted;
}

/// For each cell of the result, a cell being what a value fills, the number of its value, or -1.
CountedVector<int64_t> ValuesOfCells(const std::vector<RowIds>& levels, const DimVector& dims,
                                     int64_t rows, int64_t values) {
  const int ragged = static_cast<int>(levels.size());
  // The place of each item of a dimension, counted in items of the result, or -1 if it is cut off.
  CountedVector<int64_t> places(rows);
  for (int64_t r = 0; r < rows; ++r) places[r] = r < dims[0] ? r : -1;
  for (int d = 0; d < ragged; ++d) {
    const RowIds& ids = levels[d];
    CountedVector<int64_t> next(ids.size());
    for (size_t begin = 0, i = 0; i < ids.size(); ++i) {
      if (ids[i] != ids[begin]) begin = i;
      const int64_t row = places[ids[i]], column = static_cast<int64_t>(i - begin);
      next[i] = row < 0 || column >= dims[d + 1] ? -1 : row * dims[d + 1] + column;
    }
    places.swap(next);
  }
  CountedVector<int64_t> cells(Product(dims, 0, ragged + 1), -1);
  for (int64_t i = 0; i < std::min(values, static_cast<int64_t>(places.size())); ++i) {
    if (places[i] >= 0) cells[places[i]] = i;
  }
  return cells;
}

/// `fallback` broadcast to the shape of a value.
StatusOr<Tensor> DefaultCell(KernelContext& ctx, const Tensor& fallback, const Shape& cell) {
  const Shape& shape = fallback.shape();
  TENON_ASSIGN_OR_RETURN(const BroadcastPlan plan, PlanBroadcast({&shape, &cell}));
  if (plan.shape != cell) {
    return InvalidArgument("default_value.shape=", shape,
                           " does not broadcast to that of a value, ", cell);
  }
  TENON_ASSIGN_OR_RETURN(Tensor out, ctx.AllocateTemp(fallback.dtype(), cell));
  const int64_t step = plan.inner().strides[0];
  ForEachRun(plan, 1, [&](const int64_t* from, int64_t begin, int64_t n) {
    for (int64_t i = 0; i < n; ++i) CopyElements(fallback, from[0] + i * step, &out, begin + i, 1);
  });
  return out;
}

Status ToTensorKernel(KernelContext& ctx, const std::vector<std::string>& partition_types) {
  const Tensor &values = ctx.input(1), &fallback = ctx.input(2);
  const int partitions = ctx.num_inputs() - 3;
  TENON_ASSIGN_OR_RETURN(const std::vector<Partition> types,
                         ParsePartitions(partition_types, partitions));
  if (values.rank() <= fallback.rank()) {
    return InvalidArgument("default_value.shape=", fallback.shape(),
                           " and rt_input.flat_values.shape=", values.shape(),
                           " are incompatible: default_value.rank must be less");
  }
  const bool sized = types[0] == Partition::kFirstDimSize;
  const Tensor& first = ctx.input(3);
  if (first.num_elements() < 1) {
    return InvalidArgument("Invalid first partition input. Tensor requires at least one element.");
  }
  int64_t rows = first.num_elements() - 1;
  if (sized) {
    TENON_ASSIGN_OR_RETURN(rows, ReadOnlyInteger(first, "the size of the first dimension"));
  }
  if (rows < 0) return InvalidArgument("the first dimension has a negative size, ", rows);
  DimVector fitting = {rows};
  std::vector<RowIds> levels;
  int64_t items = rows;
  for (int i = sized ? 1 : 0; i < partitions; ++i) {
    TENON_ASSIGN_OR_RETURN(RowIds ids, ReadRowIds(ctx.input(3 + i), types[i], items));
    items = static_cast<int64_t>(ids.size());
    fitting.push_back(LongestRow(ids));
    levels.push_back(std::move(ids));
  }
  if (!levels.empty() && items > values.dim(0)) {
    return InvalidArgument("the row partitions have ", items, " items, but there are ",
                           values.dim(0), " values");
  }
  const int ragged = static_cast<int>(levels.size());
  const auto value_dims = values.shape().dims().subspan(1);
  TENON_ASSIGN_OR_RETURN(const DimVector dims,
                         WantedShape(ctx.input(0), Concat(fitting, value_dims), ragged));
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, dims));
  TENON_ASSIGN_OR_RETURN(const Tensor other, DefaultCell(ctx, fallback, Shape(value_dims)));
  if (out->num_elements() == 0) return OkStatus();
  const int64_t width = Product(value_dims);
  const CountedVector<int64_t> cells = ValuesOfCells(levels, dims, rows, values.dim(0));
  const double cost_ns = 2 + 0.1 * static_cast<double>(width * StrideOf(out->dtype()));
  ParallelFor(static_cast<int64_t>(cells.size()), cost_ns, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      CopyElements(cells[c] < 0 ? other : values, std::max<int64_t>(cells[c], 0) * width, out,
                   c * width, width);
    }
  });
  return OkStatus();
}

Status ToTensorShape(ShapeContext& c) {
  if (c.input(0).rank() == 0) return OkStatus();
  TENON_RETURN_IF_ERROR(c.WithRank(0, 1));
  return c.Return(c.ConstantShape(0));
}

/// The same arrangement of the numbers of the values, -1 in between, says where each value went.
void ToTensorGrad(GradContext& g) {
  const Output values = g.in(1), fallback = g.in(2), dy = g.dy(0);
  std::vector<Output> partitions;
  for (int i = 3; i < g.num_inputs(); ++i) partitions.push_back(g.in(i));
  const Output shape = ShapeOf(dy), value_shape = ShapeOf(values);
  const Output cells = Slice(shape, {0}, Reshape(Rank(dy) - Rank(values) + 1, {1}));
  const Output rows = Gather(value_shape, 0);
  const Output numbers =
      RaggedTensorToTensor(cells, Range(0, rows, 1), Const(-1), partitions,
                           g.Attr<std::vector<std::string>>("row_partition_types"));
  g.dx(1) = UnsortedSegmentSum(dy, numbers, rows);
  const Output ones = OnesLike(Slice(value_shape, {1}, {-1}));
  const Output empty = Reshape(numbers < ZerosLike(numbers), ConcatV2({cells, ones}, 0));
  g.dx(2) = SumToOperand(fallback, g.out(0), SelectV2(empty, dy, ZerosLike(dy)));
}

}  // namespace

void RegisterRaggedToTensor(OpRegistry& ops) {
  const Tensor any = Tensor::Vector<int64_t>({-1, -1});
  const Tensor splits = Tensor::Vector<int64_t>({0, 2, 2, 3});
  using Names = std::vector<std::string>;
  ops.Add("RaggedTensorToTensor", ToTensorShape, ToTensorKernel, {.attrs = {"row_partition_types"}})
      .Grad(ToTensorGrad)
      .Example({any, Shape{3}, Shape{}, splits}, {{"row_partition_types", Names{"ROW_SPLITS"}}})
      .Example({Tensor::Vector<int64_t>({-1, 1, 2}), Shape{3, 2}, Shape{2},
                Tensor::Scalar<int64_t>(3), Tensor::Vector<int64_t>({0, 0, 2})},
               {{"row_partition_types", Names{"FIRST_DIM_SIZE", "VALUE_ROWIDS"}}});
}

}  // namespace tenon
