// SPDX-License-Identifier: Apache-2.0
#include "ops/parsing/columns.h"

#include <algorithm>

#include "core/base/hash_map.h"
#include "core/base/mutex.h"
#include "core/base/parallel.h"
#include "ops/arguments.h"
#include "ops/elements.h"
#include "ops/parsing/features.h"

namespace tenon {
namespace {

/// The values of one column: a row for each message, or for each step of each message.
struct ColumnRows {
  CountedVector<FeatureValues> features;
  CountedVector<int64_t> splits;  // message b has the rows from splits[b] up to splits[b + 1]
  int64_t most_steps = 0;
  int64_t most_values = 0;
  int64_t num_values = 0;
};

/// The first of the errors that threads find, by place.
class FirstError {
 public:
  void Add(int64_t place, Status status) {
    MutexLock lock(mu_);
    if (place >= place_) return;
    place_ = place;
    status_ = std::move(status);
  }
  Status Take() {
    MutexLock lock(mu_);
    return status_;
  }

 private:
  Mutex mu_;
  int64_t place_ ABSL_GUARDED_BY(mu_) = INT64_MAX;
  Status status_ ABSL_GUARDED_BY(mu_);
};

class Parser {
 public:
  Parser(KernelContext& ctx, const ParsedMessages& from, absl::Span<const Column> columns)
      : ctx_(ctx), from_(from), columns_(columns), batch_(from.messages.size()) {}

  /// Finds the bytes of each column in each message: null where there is none.
  Status Find() {
    StringViewMap<size_t> places;
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (!places.emplace(columns_[i].key, i).second) {
        return InvalidArgument("feature '", columns_[i].key, "' is asked for twice");
      }
    }
    TENON_ASSIGN_OR_RETURN(const int64_t count,
                           MultiplySizes(batch_, static_cast<int64_t>(columns_.size())));
    found_.resize(count);
    FirstError error;
    ParallelFor(
        batch_, 100. * static_cast<double>(1 + columns_.size()), [&](int64_t begin, int64_t end) {
          for (int64_t b = begin; b < end; ++b) {
            std::string_view* const row = found_.data() + b * columns_.size();
            const auto keep = [&](std::string_view key, std::string_view value) {
              if (const auto it = places.find(key); it != places.end()) row[it->second] = value;
            };
            if (!ForEachEntry(from_.messages[b], from_.field, keep)) {
              error.Add(b,
                        InvalidArgument(NameOf(b), "Could not parse example input, message ", b));
            }
          }
        });
    return error.Take();
  }

  StatusOr<ColumnRows> Read(size_t column) const {
    ColumnRows rows;
    rows.splits.assign(batch_ + 1, 0);
    FirstError error;
    for (int64_t b = 0; b < batch_; ++b) {
      int64_t steps = 1;
      if (from_.steps) {
        TENON_ASSIGN_OR_RETURN(steps, CountSteps(column, b));
        rows.most_steps = std::max(rows.most_steps, steps);
      }
      rows.splits[b + 1] = rows.splits[b] + steps;
    }
    rows.features.resize(rows.splits[batch_]);
    ParallelFor(batch_, 200, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        Status status = ReadRows(column, b, rows.features.data() + rows.splits[b]);
        if (!status.ok()) error.Add(b, std::move(status));
      }
    });
    TENON_RETURN_IF_ERROR(error.Take());
    for (const FeatureValues& feature : rows.features) {
      rows.num_values += feature.count;
      rows.most_values = std::max(rows.most_values, feature.count);
    }
    return rows;
  }

  Status WriteSparse(const ColumnRows& rows, DType type, int indices, int values, int shape) {
    const int rank = from_.batch + from_.steps + 1;
    TENON_ASSIGN_OR_RETURN(Tensor * places, ctx_.CreateOutput(indices, {rows.num_values, rank}));
    TENON_RETURN_IF_ERROR(WriteFlat(rows, type, values));
    int64_t* to = places->data<int64_t>();
    for (int64_t b = 0; b < batch_; ++b) {
      for (int64_t t = rows.splits[b]; t < rows.splits[b + 1]; ++t) {
        for (int64_t i = 0; i < rows.features[t].count; ++i) {
          if (from_.batch) *to++ = b;
          if (from_.steps) *to++ = t - rows.splits[b];
          *to++ = i;
        }
      }
    }
    std::vector<int64_t> dims;
    if (from_.batch) dims.push_back(batch_);
    if (from_.steps) dims.push_back(rows.most_steps);
    dims.push_back(rows.most_values);
    ctx_.set_output(shape, Tensor::Vector(dims));
    return OkStatus();
  }

  Status WriteDense(const ColumnRows& rows, const Column& column, int output) {
    DimVector dims;
    if (from_.batch) dims.push_back(batch_);
    if (from_.steps) dims.push_back(rows.most_steps);
    if (column.variable) dims.push_back(rows.most_values / column.elements);
    const auto fixed = column.shape.dims().subspan(column.variable ? 1 : 0);
    dims.insert(dims.end(), fixed.begin(), fixed.end());
    TENON_ASSIGN_OR_RETURN(Tensor * out, ctx_.CreateOutput(output, dims));
    const int64_t steps = from_.steps ? rows.most_steps : 1;
    const int64_t size = column.variable ? rows.most_values : column.elements;
    ParallelFor(batch_, 50 + static_cast<double>(steps * size), [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        for (int64_t t = 0; t < steps; ++t) {
          const int64_t row = rows.splits[b] + t;
          const FeatureValues none;
          const FeatureValues& f = row < rows.splits[b + 1] ? rows.features[row] : none;
          WriteValues(f, out, (b * steps + t) * size);
          Fill(column, f.count, size, (b * steps + t) * size, out);
        }
      }
    });
    return OkStatus();
  }

  Status WriteFlat(const ColumnRows& rows, DType type, int output) {
    TENON_ASSIGN_OR_RETURN(Tensor * out, ctx_.AllocateOutput(output, {rows.num_values}));
    TENON_CHECK(out->dtype() == type);
    int64_t at = 0;
    for (const FeatureValues& feature : rows.features) {
      WriteValues(feature, out, at);
      at += feature.count;
    }
    return OkStatus();
  }

  Status WriteLengths(const ColumnRows& rows, int output) {
    const Shape shape = from_.batch ? Shape{batch_} : Shape();
    TENON_ASSIGN_OR_RETURN(Tensor * out, ctx_.AllocateOutput(output, shape));
    for (int64_t b = 0; b < batch_; ++b) {
      out->data<int64_t>()[b] = rows.splits[b + 1] - rows.splits[b];
    }
    return OkStatus();
  }

  /// Where messages begin in the rows.
  Status WriteOuterSplits(const ColumnRows& rows, int output) {
    return WriteSplits(rows.splits, true, output);
  }

  /// Where rows begin in the values.
  Status WriteRowSplits(const ColumnRows& rows, int output) {
    CountedVector<int64_t> splits(1, 0);
    for (const FeatureValues& f : rows.features) splits.push_back(splits.back() + f.count);
    return WriteSplits(splits, !from_.steps, output);
  }

 private:
  Status WriteSplits(absl::Span<const int64_t> splits, bool of_messages, int output) {
    const int64_t last = splits.back();
    if (ctx_.output_type(output) == DType::kInt32 && last > INT32_MAX) {
      return InvalidArgument("splits up to ", last, " do not fit int32");
    }
    Shape shape{static_cast<int64_t>(splits.size())};
    if (of_messages && !from_.batch) {
      shape = from_.lengths ? Shape() : Shape{0};
      splits = splits.last(from_.lengths ? 1 : 0);
    }
    TENON_ASSIGN_OR_RETURN(Tensor * out, ctx_.AllocateOutput(output, shape));
    WriteIntegers(splits, out);
    return OkStatus();
  }

  std::string NameOf(int64_t b) const {
    return from_.names.empty() ? "" : StrCat("Name: ", from_.names[b], ", ");
  }
  /// An error of feature number `row` of a list, or of one that is not in a list.
  template <typename... Args>
  Status Error(size_t column, int64_t b, int64_t row, const Args&... what) const {
    return InvalidArgument(NameOf(b), "Key: ", columns_[column].key,
                           ", Index: ", from_.steps ? row : b, ".  ", what...);
  }
  /// "float " of values, as the features call their types.
  static std::string_view TypeText(DType type) {
    return type == DType::kFloat ? "float " : type == DType::kInt64 ? "int64 " : "bytes ";
  }
  std::string_view FoundIn(size_t column, int64_t b) const {
    return found_[b * columns_.size() + column];
  }

  StatusOr<int64_t> CountSteps(size_t column, int64_t b) const {
    std::string_view list = FoundIn(column, b);
    const Column& c = columns_[column];
    if (list.data() == nullptr && c.form == ColumnForm::kDense && !c.may_lack) {
      return InvalidArgument(NameOf(b), "Feature list '", c.key,
                             "' is required but could not be found.  Did you mean to include it in "
                             "feature_list_dense_missing_assumed_empty or "
                             "feature_list_dense_defaults?");
    }
    int64_t steps = 0;
    for (WireField field; !list.empty();) {
      if (!TakeField(&list, &field))
        return Error(column, b, steps, "Can't parse serialized FeatureList.");
      steps += field.number == 1 && field.type == WireType::kBytes;
    }
    return steps;
  }

  Status ReadRows(size_t column, int64_t b, FeatureValues* features) const {
    std::string_view message = FoundIn(column, b);
    if (!from_.steps) return ReadRow(column, b, 0, message, features);
    int64_t row = 0;
    for (WireField field; !message.empty() && TakeField(&message, &field);) {
      if (field.number != 1 || field.type != WireType::kBytes) continue;
      TENON_RETURN_IF_ERROR(ReadRow(column, b, row++, field.bytes, features++));
    }
    return OkStatus();
  }

  Status ReadRow(size_t column, int64_t b, int64_t row, std::string_view message,
                 FeatureValues* f) const {
    const Column& c = columns_[column];
    if (!ReadFeature(message, f)) return Error(column, b, row, "Can't parse serialized Example.");
    if (f->type != DType::kInvalid && f->type != c.type) {
      const char* const what = "Data types don't match. Expected type: ";
      if (!from_.steps) return Error(column, b, row, what, c.type, ", Actual type: ", f->type);
      return InvalidArgument(NameOf(b), "Feature list: ", c.key, ", Index: ", row, ".  ", what,
                             c.type, ", Actual type: ", f->type);
    }
    if (c.form != ColumnForm::kDense) return OkStatus();
    if (c.variable) {
      if (f->count % c.elements == 0) return OkStatus();
      if (!from_.batch && !from_.steps) {
        return InvalidArgument("Error while parsing feature with key ", c.key,
                               ": number of elements should be divisible by ", c.elements,
                               ", found ", f->count, " instead");
      }
      return Error(column, b, row, "Number of ", TypeText(c.type),
                   "values is not a multiple of stride length. Saw ", f->count,
                   " values but output shape is: ", c.shape);
    }
    if (f->type == DType::kInvalid && !from_.steps) {
      if (c.missing.num_elements() > 0) return OkStatus();
      return InvalidArgument(NameOf(b), "Feature: ", c.key, " (data type: ", c.type,
                             ") is required but could not be found.");
    }
    if (f->count == c.elements) return OkStatus();
    return Error(column, b, row, "Number of ", TypeText(c.type), "values != expected.  ",
                 from_.steps ? "values" : "Values", " size: ", f->count,
                 " but output shape: ", c.shape,
                 from_.steps ? "" : ".  Can't parse serialized Example.");
  }

  /// What is missing of a row at `at`, of `size` elements of which `count` are there.
  static void Fill(const Column& column, int64_t count, int64_t size, int64_t at, Tensor* out) {
    if (count == size) return;
    const int64_t step = column.missing.num_elements() == 1 ? 0 : 1;
    Dispatch(column.type, TypeList<TString, float, int64_t>(), [&]<typename T>(T) {
      T* to = out->data<T>() + at;
      if (column.missing.num_elements() == 0) {
        std::fill(to + count, to + size, T());
      } else {
        const T* from = column.missing.data<T>();
        for (int64_t i = count; i < size; ++i) to[i] = from[i * step];
      }
    });
  }

  KernelContext& ctx_;
  const ParsedMessages& from_;
  const absl::Span<const Column> columns_;
  const int64_t batch_;
  CountedVector<std::string_view> found_;
};

}  // namespace

Status FinishDense(Column* column, bool variable_allowed, std::string_view what) {
  const PartialShape& shape = column->shape;
  const int64_t given = column->missing.num_elements();
  column->variable = shape.rank() > 0 && shape.dim(0) < 0;
  const bool known =
      shape.rank_known() && PartialShape(shape.dims().subspan(column->variable)).IsFullyKnown();
  if (!known || (column->variable && !variable_allowed)) {
    return InvalidArgument(
        what, " has shape ", shape, ", of which ",
        variable_allowed ? "only the first dimension may be unknown" : "all must be known");
  }
  for (const int64_t dim : shape.dims().subspan(column->variable)) {
    TENON_ASSIGN_OR_RETURN(column->elements, MultiplySizes(column->elements, dim));
  }
  if (column->variable && column->elements == 0) {
    return InvalidArgument(what, " has shape ", shape, ", rows without elements");
  }
  if (!column->missing.valid()) return OkStatus();
  if (column->missing.dtype() != column->type) {
    return InvalidArgument("the default of ", what, " is ", column->missing.dtype(), ", wanted ",
                           column->type);
  }
  if (column->variable ? given != 1
                       : given > 0 && !shape.IsCompatibleWith(column->missing.shape())) {
    return InvalidArgument("the default of ", what, " has shape ", column->missing.shape(),
                           column->variable ? ", wanted a single element to pad " : ", wanted ",
                           shape);
  }
  return OkStatus();
}

Status ParseColumns(KernelContext& ctx, const ParsedMessages& from,
                    absl::Span<const Column> columns, int* output) {
  Parser parser(ctx, from, columns);
  TENON_RETURN_IF_ERROR(parser.Find());
  const auto count = [&](ColumnForm form) {
    return static_cast<int>(std::count_if(columns.begin(), columns.end(),
                                          [&](const Column& c) { return c.form == form; }));
  };
  const int sparse = count(ColumnForm::kSparse), dense = count(ColumnForm::kDense),
            ragged = count(ColumnForm::kRagged);
  const bool lengths = from.steps && from.lengths;
  const int first_dense = *output + 3 * sparse;
  const int first_ragged = first_dense + dense * (lengths ? 2 : 1);
  int place[3] = {*output, first_dense, first_ragged};
  for (size_t i = 0; i < columns.size(); ++i) {
    const Column& c = columns[i];
    const int at = place[static_cast<int>(c.form)]++;
    TENON_ASSIGN_OR_RETURN(const ColumnRows rows, parser.Read(i));
    if (c.form == ColumnForm::kSparse) {
      TENON_RETURN_IF_ERROR(parser.WriteSparse(rows, c.type, at, at + sparse, at + 2 * sparse));
    } else if (c.form == ColumnForm::kDense) {
      TENON_RETURN_IF_ERROR(parser.WriteDense(rows, c, at));
      if (lengths) TENON_RETURN_IF_ERROR(parser.WriteLengths(rows, at + dense));
    } else {
      TENON_RETURN_IF_ERROR(parser.WriteFlat(rows, c.type, at));
      if (from.steps) TENON_RETURN_IF_ERROR(parser.WriteOuterSplits(rows, at + ragged));
      TENON_RETURN_IF_ERROR(parser.WriteRowSplits(rows, at + ragged * (from.steps ? 2 : 1)));
    }
  }
  *output = first_ragged + ragged * (from.steps ? 3 : 2);
  return OkStatus();
}

Status SetColumnShapes(ShapeContext& c, const std::optional<int64_t>& batch, bool steps,
                       bool lengths, int sparse, absl::Span<const PartialShape> dense, int ragged,
                       int* output) {
  const int64_t rank = 1 + (batch ? 1 : 0) + (steps ? 1 : 0);
  const auto set = [&](int count, const PartialShape& shape) {
    for (int i = 0; i < count; ++i) c.set_output((*output)++, shape);
  };
  set(sparse, PartialShape{-1, rank});
  set(sparse, PartialShape{-1});
  set(sparse, PartialShape{rank});
  DimVector before;
  if (batch) before.push_back(*batch);
  if (steps) before.push_back(-1);
  for (const PartialShape& shape : dense) set(1, PartialShape(before).ConcatWith(shape));
  const PartialShape of_message = batch ? PartialShape{*batch} : PartialShape(Shape());
  if (steps && lengths) set(static_cast<int>(dense.size()), of_message);
  set(ragged, PartialShape{-1});
  int64_t splits = -1;
  if (batch && *batch >= 0) {
    TENON_ASSIGN_OR_RETURN(splits, AddSizes(*batch, 1));
  }
  set(ragged, batch ? PartialShape{splits} : lengths ? of_message : PartialShape{0});
  if (steps) set(ragged, PartialShape{-1});
  return OkStatus();
}

}  // namespace tenon
