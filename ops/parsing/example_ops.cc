// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/parsing/columns.h"

namespace tenon {
namespace {

using Keys = std::vector<std::string>;

/// The attributes that say what features become; `prefix` is that of their names.
struct FeatureTypes {
  std::vector<DType> sparse, dense, ragged;
  std::vector<PartialShape> dense_shapes;

  /// Attrs has Get<T>(name), as a node's AttributeMap.
  static StatusOr<FeatureTypes> Read(const AttributeMap& attrs, const std::string& prefix,
                                     const std::string& count, const std::string& dense_types) {
    FeatureTypes types;
    TENON_ASSIGN_OR_RETURN(types.sparse, attrs.Get<DTypeVector>(prefix + "sparse_types"));
    TENON_ASSIGN_OR_RETURN(types.dense, attrs.Get<DTypeVector>(dense_types));
    TENON_ASSIGN_OR_RETURN(types.dense_shapes,
                           attrs.Get<std::vector<PartialShape>>(prefix + "dense_shapes"));
    TENON_ASSIGN_OR_RETURN(const int64_t sparse, attrs.Get<int64_t>(count));
    TENON_RETURN_IF_ERROR(CheckCount(prefix + "sparse_types", types.sparse.size(), sparse));
    TENON_RETURN_IF_ERROR(
        CheckCount(prefix + "dense_shapes", types.dense_shapes.size(), types.dense.size()));
    if (!attrs.Find(prefix + "ragged_value_types")) return types;
    TENON_ASSIGN_OR_RETURN(types.ragged, attrs.Get<DTypeVector>(prefix + "ragged_value_types"));
    TENON_ASSIGN_OR_RETURN(const DTypeVector splits,
                           attrs.Get<DTypeVector>(prefix + "ragged_split_types"));
    TENON_RETURN_IF_ERROR(
        CheckCount(prefix + "ragged_split_types", splits.size(), types.ragged.size()));
    return types;
  }

  static Status CheckCount(std::string_view what, size_t found, size_t wanted) {
    if (found == wanted) return OkStatus();
    return InvalidArgument(what, " has ", found, " entries, wanted ", wanted);
  }
};

StatusOr<FeatureTypes> ExampleTypes(const AttributeMap& attrs) {
  return FeatureTypes::Read(attrs, "", attrs.Find("Nsparse") ? "Nsparse" : "num_sparse", "Tdense");
}
StatusOr<FeatureTypes> ContextTypes(const AttributeMap& attrs) {
  return FeatureTypes::Read(attrs, "context_", "Ncontext_sparse", "Tcontext_dense");
}
StatusOr<FeatureTypes> ListTypes(const AttributeMap& attrs) {
  return FeatureTypes::Read(attrs, "feature_list_", "Nfeature_list_sparse",
                            "feature_list_dense_types");
}

/// The types, read once for each node.
template <StatusOr<FeatureTypes> (*kRead)(const AttributeMap&)>
struct TypesOf : KernelState, FeatureTypes {
  explicit TypesOf(KernelConstruction& c) {
    StatusOr<FeatureTypes> types = kRead(c.attrs());
    c.Fail(types.status());
    if (types.ok()) FeatureTypes::operator=(*std::move(types));
  }
};
using ExampleAttrs = TypesOf<ExampleTypes>;
using ContextAttrs = TypesOf<ContextTypes>;
using ListAttrs = TypesOf<ListTypes>;

/// Reads inputs one after the other.
class InputReader {
 public:
  InputReader(KernelContext& ctx, int first) : ctx_(ctx), next_(first) {}

  /// The next `count` inputs, scalars.
  StatusOr<Keys> Scalars(size_t count, std::string_view what) {
    Keys keys;
    for (size_t i = 0; i < count; ++i) {
      const Tensor& t = Next();
      TENON_RETURN_IF_ERROR(CheckRank(t, 0, what));
      keys.emplace_back(t.scalar<TString>());
    }
    return keys;
  }
  /// The next input, a vector.
  StatusOr<Keys> Vector(std::string_view what) {
    const Tensor& t = Next();
    TENON_RETURN_IF_ERROR(CheckRank(t, 1, what));
    return Keys(t.flat<TString>().begin(), t.flat<TString>().end());
  }
  const Tensor& Next() { return ctx_.input(next_++); }

 private:
  KernelContext& ctx_;
  int next_;
};

/// The columns of these keys, as many as there are types of each form.
class Columns {
 public:
  explicit Columns(const FeatureTypes& types) : types_(types) {}

  Status Add(ColumnForm form, std::string_view what, const Keys& keys) {
    const DTypeVector& types = form == ColumnForm::kSparse  ? types_.sparse
                               : form == ColumnForm::kDense ? types_.dense
                                                            : types_.ragged;
    TENON_RETURN_IF_ERROR(FeatureTypes::CheckCount(what, keys.size(), types.size()));
    for (size_t i = 0; i < keys.size(); ++i) {
      columns_.push_back({.key = keys[i], .form = form, .type = types[i]});
      if (form == ColumnForm::kDense) columns_.back().shape = types_.dense_shapes[i];
    }
    return OkStatus();
  }
  /// Gives the dense columns their defaults, the next inputs.
  Status Defaults(InputReader& inputs, bool variable_allowed) {
    for (Column& c : columns_) {
      if (c.form != ColumnForm::kDense) continue;
      c.missing = inputs.Next();
      TENON_RETURN_IF_ERROR(FinishDense(&c, variable_allowed, StrCat("'", c.key, "'")));
    }
    return OkStatus();
  }
  /// Lets those lists be missing for which `may_lack(i, key)` is true.
  template <typename Fn>
  Status MayLack(Fn may_lack) {
    int64_t i = 0;
    for (Column& c : columns_) {
      if (c.form != ColumnForm::kDense) continue;
      TENON_RETURN_IF_ERROR(FinishDense(&c, false, StrCat("'", c.key, "'")));
      c.may_lack = may_lack(i++, c.key);
    }
    return OkStatus();
  }
  absl::Span<const Column> span() const { return columns_; }

 private:
  const FeatureTypes& types_;
  std::vector<Column> columns_;
};

/// The messages in input `i`, a vector or a scalar as `batch` allows, named by the texts in input
/// `names`.
StatusOr<ParsedMessages> Messages(const KernelContext& ctx, int i, std::optional<int> names,
                                  bool scalar_allowed, bool vector_allowed) {
  const Tensor& serialized = ctx.input(i);
  const bool allowed =
      serialized.rank() == 0 ? scalar_allowed : serialized.rank() == 1 && vector_allowed;
  if (!allowed) {
    return InvalidArgument("serialized must be a ", vector_allowed ? "vector" : "scalar",
                           scalar_allowed && vector_allowed ? " or a scalar" : "", ", found shape ",
                           serialized.shape());
  }
  ParsedMessages from{.messages = serialized.flat<TString>(),
                      .names = {},
                      .field = 1,
                      .batch = serialized.rank() == 1,
                      .steps = false};
  if (!names) return from;
  from.names = ctx.input(*names).flat<TString>();
  if (!from.names.empty() && from.names.size() != from.messages.size()) {
    return InvalidArgument("there are ", from.names.size(), " names for ", from.messages.size(),
                           " messages, wanted as many or none");
  }
  return from;
}

Status ParseExampleKernel(KernelContext& ctx, int64_t num_sparse, const ExampleAttrs& types) {
  TENON_ASSIGN_OR_RETURN(const ParsedMessages from, Messages(ctx, 0, 1, false, true));
  InputReader inputs(ctx, 2);
  Columns columns(types);
  TENON_ASSIGN_OR_RETURN(const Keys sparse, inputs.Scalars(num_sparse, "sparse_keys"));
  TENON_RETURN_IF_ERROR(columns.Add(ColumnForm::kSparse, "sparse_keys", sparse));
  TENON_ASSIGN_OR_RETURN(const Keys dense, inputs.Scalars(types.dense.size(), "dense_keys"));
  TENON_RETURN_IF_ERROR(columns.Add(ColumnForm::kDense, "dense_keys", dense));
  TENON_RETURN_IF_ERROR(columns.Defaults(inputs, true));
  int output = 0;
  return ParseColumns(ctx, from, columns.span(), &output);
}

Status ParseExampleV2Kernel(KernelContext& ctx, const ExampleAttrs& types) {
  TENON_ASSIGN_OR_RETURN(const ParsedMessages from, Messages(ctx, 0, 1, true, true));
  InputReader inputs(ctx, 2);
  Columns columns(types);
  for (const auto& [form, what] : {std::pair(ColumnForm::kSparse, "sparse_keys"),
                                   {ColumnForm::kDense, "dense_keys"},
                                   {ColumnForm::kRagged, "ragged_keys"}}) {
    TENON_ASSIGN_OR_RETURN(const Keys keys, inputs.Vector(what));
    TENON_RETURN_IF_ERROR(columns.Add(form, what, keys));
  }
  TENON_RETURN_IF_ERROR(columns.Defaults(inputs, true));
  int output = 0;
  return ParseColumns(ctx, from, columns.span(), &output);
}

Status ParseSingleExampleKernel(KernelContext& ctx, Keys sparse, Keys dense,
                                const ExampleAttrs& types) {
  TENON_ASSIGN_OR_RETURN(const ParsedMessages from, Messages(ctx, 0, {}, true, false));
  InputReader inputs(ctx, 1);
  Columns columns(types);
  TENON_RETURN_IF_ERROR(columns.Add(ColumnForm::kSparse, "sparse_keys", sparse));
  TENON_RETURN_IF_ERROR(columns.Add(ColumnForm::kDense, "dense_keys", dense));
  TENON_RETURN_IF_ERROR(columns.Defaults(inputs, true));
  int output = 0;
  return ParseColumns(ctx, from, columns.span(), &output);
}

/// The context, and then the lists of features.
Status ParseSequences(KernelContext& ctx, ParsedMessages from, const Columns& context,
                      const Columns& lists, bool lengths) {
  int output = 0;
  from.lengths = lengths;
  TENON_RETURN_IF_ERROR(ParseColumns(ctx, from, context.span(), &output));
  from.field = 2;
  from.steps = true;
  return ParseColumns(ctx, from, lists.span(), &output);
}

Status ParseSequenceKernel(KernelContext& ctx, Keys context_sparse, Keys context_dense,
                           Keys list_sparse, Keys list_dense, Keys may_lack,
                           const ContextAttrs& context_types, const ListAttrs& list_types) {
  TENON_ASSIGN_OR_RETURN(const ParsedMessages from, Messages(ctx, 0, 1, false, true));
  InputReader inputs(ctx, 2);
  Columns context(context_types), lists(list_types);
  TENON_RETURN_IF_ERROR(context.Add(ColumnForm::kSparse, "context_sparse_keys", context_sparse));
  TENON_RETURN_IF_ERROR(context.Add(ColumnForm::kDense, "context_dense_keys", context_dense));
  TENON_RETURN_IF_ERROR(context.Defaults(inputs, false));
  TENON_RETURN_IF_ERROR(lists.Add(ColumnForm::kSparse, "feature_list_sparse_keys", list_sparse));
  TENON_RETURN_IF_ERROR(lists.Add(ColumnForm::kDense, "feature_list_dense_keys", list_dense));
  TENON_RETURN_IF_ERROR(lists.MayLack([&](int64_t, const std::string& key) {
    return std::find(may_lack.begin(), may_lack.end(), key) != may_lack.end();
  }));
  return ParseSequences(ctx, from, context, lists, true);
}

Status ParseSequenceV2Kernel(KernelContext& ctx, const ContextAttrs& context_types,
                             const ListAttrs& list_types) {
  TENON_ASSIGN_OR_RETURN(const ParsedMessages from, Messages(ctx, 0, 1, true, true));
  InputReader inputs(ctx, 2);
  Columns context(context_types), lists(list_types);
  for (const auto& [columns, prefix] :
       {std::pair(&context, "context_"), {&lists, "feature_list_"}}) {
    for (const auto& [form, name] : {std::pair(ColumnForm::kSparse, "sparse_keys"),
                                     {ColumnForm::kDense, "dense_keys"},
                                     {ColumnForm::kRagged, "ragged_keys"}}) {
      TENON_ASSIGN_OR_RETURN(const Keys keys, inputs.Vector(StrCat(prefix, name)));
      TENON_RETURN_IF_ERROR(columns->Add(form, StrCat(prefix, name), keys));
    }
  }
  const Tensor& may_lack = inputs.Next();
  if (may_lack.rank() != 1 || may_lack.dim(0) != static_cast<int64_t>(list_types.dense.size())) {
    return InvalidArgument("feature_list_dense_missing_assumed_empty must be a vector of ",
                           list_types.dense.size(), " elements, found shape ", may_lack.shape());
  }
  TENON_RETURN_IF_ERROR(context.Defaults(inputs, false));
  TENON_RETURN_IF_ERROR(
      lists.MayLack([&](int64_t i, const std::string&) { return may_lack.data<bool>()[i]; }));
  return ParseSequences(ctx, from, context, lists, true);
}

Status ParseSingleSequenceKernel(KernelContext& ctx, const ContextAttrs& context_types,
                                 const ListAttrs& list_types) {
  TENON_RETURN_IF_ERROR(CheckRank(ctx.input(ctx.num_inputs() - 1), 0, "debug_name"));
  TENON_ASSIGN_OR_RETURN(const ParsedMessages from,
                         Messages(ctx, 0, ctx.num_inputs() - 1, true, false));
  InputReader inputs(ctx, 1);
  TENON_ASSIGN_OR_RETURN(const Keys may_lack,
                         inputs.Vector("feature_list_dense_missing_assumed_empty"));
  Columns context(context_types), lists(list_types);
  for (const auto& [columns, types, prefix] :
       {std::tuple<Columns*, const FeatureTypes*, const char*>(&context, &context_types,
                                                               "context_"),
        {&lists, &list_types, "feature_list_"}}) {
    const std::string sparse_name = StrCat(prefix, "sparse_keys"),
                      dense_name = StrCat(prefix, "dense_keys");
    TENON_ASSIGN_OR_RETURN(const Keys sparse, inputs.Scalars(types->sparse.size(), sparse_name));
    TENON_RETURN_IF_ERROR(columns->Add(ColumnForm::kSparse, sparse_name, sparse));
    TENON_ASSIGN_OR_RETURN(const Keys dense, inputs.Scalars(types->dense.size(), dense_name));
    TENON_RETURN_IF_ERROR(columns->Add(ColumnForm::kDense, dense_name, dense));
  }
  TENON_RETURN_IF_ERROR(context.Defaults(inputs, false));
  TENON_RETURN_IF_ERROR(lists.MayLack([&](int64_t, const std::string& key) {
    return std::find(may_lack.begin(), may_lack.end(), key) != may_lack.end();
  }));
  return ParseSequences(ctx, from, context, lists, false);
}

Status SetShapes(ShapeContext& c, const FeatureTypes& types, bool steps, bool lengths,
                 int* output) {
  if (!c.input(0).rank_known()) return OkStatus();
  std::optional<int64_t> batch;
  if (c.input(0).rank() > 1) {
    return InvalidArgument("serialized must be a vector or a scalar, found shape ", c.input(0));
  }
  if (c.input(0).rank() == 1) batch = c.input(0).dim(0);
  return SetColumnShapes(c, batch, steps, lengths, static_cast<int>(types.sparse.size()),
                         types.dense_shapes, static_cast<int>(types.ragged.size()), output);
}

Status ExampleShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const FeatureTypes types, ExampleTypes(c.attrs()));
  int output = 0;
  return SetShapes(c, types, false, false, &output);
}

template <bool kLengths>
Status SequenceShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const FeatureTypes context, ContextTypes(c.attrs()));
  TENON_ASSIGN_OR_RETURN(const FeatureTypes lists, ListTypes(c.attrs()));
  int output = 0;
  TENON_RETURN_IF_ERROR(SetShapes(c, context, false, kLengths, &output));
  return SetShapes(c, lists, true, kLengths, &output);
}

}  // namespace

void RegisterExampleOps(OpRegistry& ops) {
  const auto get = [&ops](std::string_view name, ShapeFn shape) {
    return ops.Get(name).Shape(shape).NoExample(
        "takes serialized messages; tests/ops/parsing/parse_example_test.cc covers it");
  };
  get("ParseExample", ExampleShape).Kernel(kCpu, ParseExampleKernel, {.attrs = {"Nsparse"}});
  get("ParseExampleV2", ExampleShape).Kernel(kCpu, ParseExampleV2Kernel);
  get("ParseSingleExample", ExampleShape)
      .Kernel(kCpu, ParseSingleExampleKernel, {.attrs = {"sparse_keys", "dense_keys"}});
  get("ParseSequenceExample", SequenceShape<true>)
      .Kernel(kCpu, ParseSequenceKernel,
              {.attrs = {"context_sparse_keys", "context_dense_keys", "feature_list_sparse_keys",
                         "feature_list_dense_keys", "feature_list_dense_missing_assumed_empty"}});
  get("ParseSequenceExampleV2", SequenceShape<true>).Kernel(kCpu, ParseSequenceV2Kernel);
  get("ParseSingleSequenceExample", SequenceShape<false>).Kernel(kCpu, ParseSingleSequenceKernel);
}

}  // namespace tenon
