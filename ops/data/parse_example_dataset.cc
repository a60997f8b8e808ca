// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "ops/data/dataset.h"
#include "ops/parsing/columns.h"
#include "ops/sparse/held_tensor.h"

namespace tenon {
namespace {

/// The features that are asked for: sparse ones, then dense ones, without what stands for missing
/// ones.
struct ExampleColumns : KernelState {
  explicit ExampleColumns(KernelConstruction& c) {
    Add(c, ColumnForm::kSparse, "sparse_keys", "sparse_types");
    num_sparse = columns.size();
    Add(c, ColumnForm::kDense, "dense_keys", "Tdense");
    const auto shapes = c.Attr<std::vector<PartialShape>>("dense_shapes");
    if (num_sparse + shapes.size() != columns.size()) {
      c.Fail(InvalidArgument("dense_shapes has ", shapes.size(), " entries, wanted ",
                             columns.size() - num_sparse));
      return;
    }
    for (size_t i = 0; i < shapes.size(); ++i) columns[num_sparse + i].shape = shapes[i];
    if (!c.Attr<std::vector<std::string>>("ragged_keys").empty()) {
      c.Fail(Unimplemented("ragged features of a dataset; ParseExampleV2 has them"));
    }
  }
  void Add(KernelConstruction& c, ColumnForm form, std::string_view keys_attr,
           std::string_view types_attr) {
    const auto keys = c.Attr<std::vector<std::string>>(keys_attr);
    const auto types = c.Attr<DTypeVector>(types_attr);
    if (keys.size() != types.size()) {
      return c.Fail(InvalidArgument(keys_attr, " has ", keys.size(), " entries, ", types_attr, " ",
                                    types.size()));
    }
    for (size_t i = 0; i < keys.size(); ++i) {
      if (!places.emplace(keys[i], columns.size()).second) {
        c.Fail(InvalidArgument("Duplicate key not allowed: ", keys[i]));
      }
      columns.push_back({.key = keys[i], .form = form, .type = types[i]});
    }
  }
  /// The types of what ParseColumns makes.
  DTypeVector ParsedTypes() const {
    DTypeVector types(num_sparse, DType::kInt64);
    for (size_t i = 0; i < num_sparse; ++i) types.push_back(columns[i].type);
    types.insert(types.end(), num_sparse, DType::kInt64);
    for (size_t i = num_sparse; i < columns.size(); ++i) types.push_back(columns[i].type);
    return types;
  }

  std::vector<Column> columns;
  size_t num_sparse = 0;
  std::map<std::string, size_t> places;  // components of an element are in the order of the keys
};

/// Batches of serialized Example messages as tensors, one component a feature.
struct ParseExampleDataset final : DatasetOver<ParseExampleDataset> {
  static constexpr unsigned kTraits = kKeepsRows | kKeepsFiles;

  ParseExampleDataset(DatasetPtr from, const ElementSpec& spec, ExampleColumns wanted, Device& on)
      : DatasetOver(std::move(from), spec),
        features(std::move(wanted)),
        parsed_types(features.ParsedTypes()),
        device(on) {}

  class Walk final : public WalkOver<ParseExampleDataset> {
   public:
    using WalkOver::WalkOver;
    StatusOr<bool> Next(DatasetElement* out) override {
      DatasetElement messages;
      TENON_ASSIGN_OR_RETURN(const bool found, input_->Next(&messages));
      if (!found) return false;
      TENON_RETURN_IF_ERROR(CheckRank(messages[0], 1, "serialized"));
      const ExampleColumns& features = of_->features;
      const ProgramRun run{.cancellation = &context_->cancellation()};
      const DeviceRun on_device{run, of_->device};
      std::vector<Value> parsed(of_->parsed_types.size());
      KernelContext ctx(on_device, of_->parsed_types, nullptr, 0, parsed.data());
      int count = 0;
      TENON_RETURN_IF_ERROR(ParseColumns(ctx,
                                         {.messages = messages[0].flat<TString>(),
                                          .names = {},
                                          .field = 1,
                                          .batch = true,
                                          .steps = false},
                                         features.columns, &count));
      out->clear();
      const size_t n = features.num_sparse;
      for (const auto& [key, i] : features.places) {
        if (i >= n) {
          out->push_back(std::move(parsed[2 * n + i].tensor));
          continue;
        }
        std::vector<Variant> parts;
        for (const size_t part : {i, n + i, 2 * n + i}) {
          parts.push_back({std::make_shared<HeldTensor>(std::move(parsed[part].tensor))});
        }
        out->push_back(Tensor::Vector(parts));
      }
      return true;
    }
  };
  int64_t CountElements() const override { return input->Cardinality(); }

  const ExampleColumns features;
  const DTypeVector parsed_types;
  Device& device;
};

/// Behind the dataset: num_parallel_calls, and what stands for each dense feature that is missing.
/// One batch is parsed at a time, by several threads.
Status ParseExampleDatasetKernel(KernelContext& ctx, DatasetPtr input, const ElementSpec& spec,
                                 const ExampleColumns& features) {
  if (input->types() != DTypeVector{DType::kString}) {
    return InvalidArgument("Input dataset should be a dataset of vectors of strings, found ",
                           Join(input->types(), ", "));
  }
  TENON_RETURN_IF_ERROR(ReadParallelism(ctx.input(1), "num_parallel_calls").status());
  ExampleColumns wanted = features;
  for (size_t i = features.num_sparse; i < wanted.columns.size(); ++i) {
    Column& column = wanted.columns[i];
    column.missing = ctx.input(2 + static_cast<int>(i - features.num_sparse));
    TENON_RETURN_IF_ERROR(FinishDense(&column, true, StrCat("'", column.key, "'")));
  }
  DTypeVector types;
  for (const auto& [key, i] : wanted.places) {
    types.push_back(i < wanted.num_sparse ? DType::kVariant : wanted.columns[i].type);
  }
  TENON_RETURN_IF_ERROR(CheckSpec(spec, types, {}));
  return ReturnDataset(ctx, std::make_shared<ParseExampleDataset>(std::move(input), spec,
                                                                  std::move(wanted), ctx.device()));
}

}  // namespace

void RegisterParseExampleDatasets(OpRegistry& ops) {
  for (const char* name : {"ParseExampleDataset", "ParseExampleDatasetV2"}) {
    ops.Add(name, ScalarShape, ParseExampleDatasetKernel)
        .NoExample("needs an iterator; tests/interop/input_pipelines_test.py covers it");
  }
}

}  // namespace tenon
