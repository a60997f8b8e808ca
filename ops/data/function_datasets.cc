// SPDX-License-Identifier: Apache-2.0
//
// Datasets that call a function for each element of another.
#include "core/base/parallel.h"
#include "ops/data/batch.h"

namespace tenon {
namespace {

/// The results of a function, for `parallelism` elements at a time; 0: one after the other, on the
/// thread that asks for it.
struct MapDataset final : DatasetOfOne<MapDataset> {
  static constexpr unsigned kTraits = kKeepsFiles;

  MapDataset(DatasetPtr from, DatasetFunction called, const ElementSpec& of, int64_t at_a_time,
             bool keeps)
      : DatasetOfOne(std::move(from), of),
        function(std::move(called)),
        parallelism(at_a_time),
        keeps_cardinality(keeps) {}

  class Walk final : public WalkOver<MapDataset> {
   public:
    Walk(std::shared_ptr<const MapDataset> of, IteratorPtr input, ContextPtr context,
         FunctionCaller caller)
        : WalkOver(std::move(of), std::move(input), std::move(context)),
          caller_(std::move(caller)) {}
    StatusOr<bool> Next(DatasetElement* out) override {
      if (input_ == nullptr) return false;
      DatasetElement element;
      TENON_ASSIGN_OR_RETURN(const bool found, input_->Next(&element));
      if (!found) return false;
      TENON_ASSIGN_OR_RETURN(const bool mapped, IsMapped(caller_.Call(std::move(element), out),
                                                         of_->keeps_cardinality));
      if (!mapped) input_ = nullptr;
      return mapped;
    }

   private:
    const FunctionCaller caller_;
  };
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    TENON_ASSIGN_OR_RETURN(IteratorPtr walk, input->MakeIterator(context));
    TENON_ASSIGN_OR_RETURN(FunctionCaller caller, FunctionCaller::Make(context, function));
    if (caller.result_types() != types()) {
      return InvalidArgument("function '", function.name.name, "' gives ",
                             Join(caller.result_types(), ", "), ", wanted ", Join(types(), ", "));
    }
    if (parallelism > 0) {
      return ParallelMapIterator(std::move(walk), std::move(caller), parallelism,
                                 keeps_cardinality);
    }
    return std::make_unique<Walk>(Self<MapDataset>(), std::move(walk), context, std::move(caller));
  }
  int64_t CountElements() const override {
    return keeps_cardinality ? input->Cardinality() : kUnknown;
  }
  const DatasetFunction* function_called() const override { return &function; }

  const DatasetFunction function;
  const int64_t parallelism;
  const bool keeps_cardinality;
};

/// More calls at a time would only hold memory.
StatusOr<int64_t> ReadCalls(const Tensor& t) {
  constexpr int64_t kMost = 1 << 12;
  TENON_ASSIGN_OR_RETURN(const int64_t calls, ReadParallelism(t, "num_parallel_calls"));
  return std::min(calls, kMost);
}

Status MapKernel(KernelContext& ctx, DatasetPtr input, const ElementFunction& function,
                 const ElementSpec& spec, bool preserve_cardinality) {
  int64_t parallelism = 0;
  if (function.next_input() < ctx.num_inputs()) {
    TENON_ASSIGN_OR_RETURN(parallelism, ReadCalls(ctx.input(function.next_input())));
  }
  return ReturnDataset(ctx, std::make_shared<MapDataset>(std::move(input), function.Capture(ctx),
                                                         spec, parallelism, preserve_cardinality));
}

/// Behind the captured tensors: batch_size, num_parallel_calls, drop_remainder.
Status MapAndBatchKernel(KernelContext& ctx, DatasetPtr input, const ElementFunction& function,
                         const ElementSpec& spec, bool preserve_cardinality) {
  const int next = function.next_input();
  TENON_ASSIGN_OR_RETURN(const BatchSize size, ReadBatchSize(ctx, next, next + 2));
  TENON_ASSIGN_OR_RETURN(const int64_t parallelism, ReadCalls(ctx.input(next + 1)));
  ElementSpec rows = spec;
  rows.shapes.assign(rows.types.size(), PartialShape());
  auto mapped = std::make_shared<MapDataset>(std::move(input), function.Capture(ctx), rows,
                                             parallelism, preserve_cardinality);
  return ReturnDataset(ctx, MakeBatchDataset(std::move(mapped), spec, size));
}

/// The elements for which a function is true; or those before the first for which it is false.
struct FilterDataset final : DatasetOver<FilterDataset> {
  FilterDataset(DatasetPtr from, DatasetFunction called, bool stops)
      : DatasetOver(std::move(from)), function(std::move(called)), ends_at_false(stops) {}

  class Walk final : public WalkOver<FilterDataset> {
   public:
    using WalkOver::WalkOver;
    StatusOr<bool> Next(DatasetElement* out) override {
      if (!caller_.has_value()) {
        TENON_ASSIGN_OR_RETURN(caller_, FunctionCaller::Make(context_, of_->function));
      }
      while (input_ != nullptr) {
        TENON_ASSIGN_OR_RETURN(const bool found, input_->Next(out));
        if (!found) return false;
        DatasetElement results;
        TENON_RETURN_IF_ERROR(caller_->Call(*out, &results));
        if (results.size() != 1 || results[0].dtype() != DType::kBool || results[0].rank() != 0) {
          return InvalidArgument("Filter predicate `f` must return a scalar bool.");
        }
        if (results[0].scalar<bool>()) return true;
        if (of_->ends_at_false) input_ = nullptr;
      }
      return false;
    }

   private:
    std::optional<FunctionCaller> caller_;
  };

  unsigned traits() const override { return ends_at_false ? 0 : kKeepsRows | kKeepsFiles; }

  const DatasetFunction function;
  const bool ends_at_false;
};

template <bool ends_at_false>
Status FilterKernel(KernelContext& ctx, DatasetPtr input, const ElementFunction& function) {
  return ReturnDataset(
      ctx, std::make_shared<FilterDataset>(std::move(input), function.Capture(ctx), ends_at_false));
}

/// The elements of the datasets that a function makes, `block` of each in turn, of `cycle` at a
/// time; of `parallelism` of them on threads that make `ahead` elements.
struct InterleaveDataset final : DatasetOver<InterleaveDataset> {
  static constexpr unsigned kTraits = kMakesDatasets;

  InterleaveDataset(DatasetPtr from, DatasetFunction called, const ElementSpec& spec)
      : DatasetOver(std::move(from), spec), function(std::move(called)) {}

  class Walk final : public WalkOver<InterleaveDataset> {
   public:
    using WalkOver::WalkOver;
    StatusOr<bool> Next(DatasetElement* out) override {
      if (!caller_.has_value()) {
        TENON_ASSIGN_OR_RETURN(caller_, FunctionCaller::Make(context_, of_->function));
        open_.resize(of_->cycle);
      }
      while (input_ != nullptr || num_open_ > 0) {
        IteratorPtr& current = open_[at_];
        if (current == nullptr) {
          if (input_ == nullptr) {
            Advance();
          } else {
            TENON_RETURN_IF_ERROR(OpenAhead());
          }
          continue;
        }
        TENON_ASSIGN_OR_RETURN(const bool found, current->Next(out));
        if (found) {
          if (++in_block_ == of_->block) Advance();
          return true;
        }
        current = nullptr;
        --num_open_;
        Advance();
      }
      return false;
    }
    bool IsReady() const override { return num_open_ > 0 && open_[at_] && open_[at_]->IsReady(); }

   private:
    void Advance() {
      in_block_ = 0;
      at_ = (at_ + 1) % of_->cycle;
    }
    /// Opens a dataset for this place and, where threads make elements ahead, for all that are
    /// free and whose turn comes next.
    Status OpenAhead() {
      const int64_t places = of_->parallelism > 0 ? of_->cycle : 1;
      for (int64_t i = 0; i < places && input_ != nullptr; ++i) {
        IteratorPtr& place = open_[(at_ + i) % of_->cycle];
        if (place != nullptr) break;
        DatasetElement element, results;
        TENON_ASSIGN_OR_RETURN(const bool found, input_->Next(&element));
        if (!found) {
          input_ = nullptr;
          break;
        }
        TENON_RETURN_IF_ERROR(caller_->Call(std::move(element), &results));
        TENON_ASSIGN_OR_RETURN(place, IteratorOfResult(context_, results));
        ++num_open_;
        if (i < of_->parallelism) {
          place = PrefetchedIterator(context_, std::move(place), of_->ahead);
        }
      }
      return OkStatus();
    }

    std::optional<FunctionCaller> caller_;
    std::vector<IteratorPtr> open_;
    int64_t at_ = 0, in_block_ = 0, num_open_ = 0;
  };
  const DatasetFunction* function_called() const override { return &function; }

  const DatasetFunction function;
  int64_t cycle = 1, block = 1, parallelism = 0, ahead = 1;
};

Status FlatMapKernel(KernelContext& ctx, const ElementFunction& function, const ElementSpec& spec) {
  TENON_ASSIGN_OR_RETURN(DatasetPtr input, DatasetInput(ctx));
  return ReturnDataset(
      ctx, std::make_shared<InterleaveDataset>(std::move(input), function.Capture(ctx), spec));
}

/// Beyond this many datasets at a time, memory and threads would be given away.
constexpr int64_t kMaxCycle = 1 << 16, kMaxAhead = 1 << 20;

/// A cycle and block length behind the captured tensors; then, of parallel ones, other numbers.
StatusOr<std::shared_ptr<InterleaveDataset>> ReadInterleave(KernelContext& ctx,
                                                            const ElementFunction& function,
                                                            const ElementSpec& spec) {
  TENON_ASSIGN_OR_RETURN(DatasetPtr input, DatasetInput(ctx));
  auto dataset = std::make_shared<InterleaveDataset>(std::move(input), function.Capture(ctx), spec);
  const int next = function.next_input();
  TENON_ASSIGN_OR_RETURN(dataset->cycle, ReadParallelism(ctx.input(next), "`cycle_length`"));
  TENON_ASSIGN_OR_RETURN(dataset->block, ReadInteger(ctx.input(next + 1), "block_length"));
  if (dataset->block <= 0) return InvalidArgument("`block_length` must be > 0");
  if (dataset->cycle <= kMaxCycle) return dataset;
  return InvalidArgument("`cycle_length` must be at most ", kMaxCycle, ", found ", dataset->cycle);
}

Status InterleaveKernel(KernelContext& ctx, const ElementFunction& function,
                        const ElementSpec& spec) {
  TENON_ASSIGN_OR_RETURN(auto dataset, ReadInterleave(ctx, function, spec));
  return ReturnDataset(ctx, std::move(dataset));
}

/// Behind block_length: num_parallel_calls; before it, of version 4, buffer_output_elements and
/// prefetch_input_elements.
Status ParallelInterleaveKernel(KernelContext& ctx, const ElementFunction& function,
                                const ElementSpec& spec) {
  TENON_ASSIGN_OR_RETURN(auto dataset, ReadInterleave(ctx, function, spec));
  const int last = ctx.num_inputs() - 1;
  TENON_ASSIGN_OR_RETURN(const int64_t calls, ReadInteger(ctx.input(last), "num_parallel_calls"));
  TENON_ASSIGN_OR_RETURN(dataset->parallelism,
                         ReadParallelism(ctx.input(last), "`num_parallel_calls`"));
  if (calls > dataset->cycle) {
    return InvalidArgument("`num_parallel_calls` must be <= `cycle_length` (", dataset->cycle,
                           "), found ", calls);
  }
  dataset->ahead = dataset->block;
  if (last - 1 > function.next_input() + 1) {
    TENON_ASSIGN_OR_RETURN(const int64_t ahead,
                           ReadInteger(ctx.input(last - 2), "buffer_output_elements"));
    if (ahead != -1 && ahead <= 0) {
      return InvalidArgument("`buffer_output_elements` must be -1 or > 0, found ", ahead);
    }
    if (ahead > 0) dataset->ahead = ahead;
  }
  dataset->ahead = std::min(dataset->ahead, kMaxAhead);
  return ReturnDataset(ctx, std::move(dataset));
}

/// That of before num_parallel_calls: sloppy, buffer_output_elements, prefetch_input_elements (of
/// one version in another order) behind block_length, which keep their meanings here only as far as
/// the elements do.
Status OldParallelInterleaveKernel(KernelContext& ctx, const ElementFunction& function,
                                   const ElementSpec& spec) {
  TENON_ASSIGN_OR_RETURN(auto dataset, ReadInterleave(ctx, function, spec));
  dataset->parallelism = std::min<int64_t>(dataset->cycle, ThreadBudget());
  dataset->ahead = std::min(dataset->block, kMaxAhead);
  return ReturnDataset(ctx, std::move(dataset));
}

/// The elements of the input, of which a thread makes some ahead.
struct PrefetchDataset final : DatasetOfOne<PrefetchDataset> {
  static constexpr unsigned kTraits = kKeepsRows | kKeepsFiles | kBuffers;

  PrefetchDataset(DatasetPtr from, int64_t most) : DatasetOfOne(std::move(from)), limit(most) {}
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    TENON_ASSIGN_OR_RETURN(IteratorPtr walk, input->MakeIterator(context));
    return PrefetchedIterator(context, std::move(walk), limit);
  }
  int64_t CountElements() const override { return input->Cardinality(); }

  const int64_t limit;
};

Status PrefetchKernel(KernelContext& ctx, DatasetPtr input) {
  TENON_ASSIGN_OR_RETURN(int64_t limit, ReadInteger(ctx.input(1), "buffer_size"));
  if (limit < -1) {
    return InvalidArgument("buffer_size must be >= 0 or set buffer_size to be -1 for auto-tuning");
  }
  if (limit == 0) return ReturnDataset(ctx, std::move(input));
  if (limit == -1) limit = 2 * ThreadBudget();
  return ReturnDataset(ctx, std::make_shared<PrefetchDataset>(std::move(input), limit));
}

}  // namespace

void RegisterFunctionDatasets(OpRegistry& ops) {
  const auto add = [&ops](std::string_view name, auto kernel, KernelOptions options = {}) {
    ops.Add(name, ScalarShape, kernel, std::move(options))
        .NoExample("needs an iterator; datasets_test covers it");
  };
  for (const char* name : {"MapDataset", "ParallelMapDataset", "ParallelMapDatasetV2"}) {
    add(name, MapKernel, {.attrs = {"preserve_cardinality"}});
  }
  add("MapAndBatchDataset", MapAndBatchKernel, {.attrs = {"preserve_cardinality"}});
  add("FilterDataset", FilterKernel<false>);
  add("TakeWhileDataset", FilterKernel<true>);
  add("FlatMapDataset", FlatMapKernel);
  add("InterleaveDataset", InterleaveKernel);
  for (const char* version : {"V2", "V3", "V4"}) {
    add(StrCat("ParallelInterleaveDataset", version), ParallelInterleaveKernel);
  }
  add("ParallelInterleaveDataset", OldParallelInterleaveKernel);
  add("LegacyParallelInterleaveDatasetV2", OldParallelInterleaveKernel);
  add("PrefetchDataset", PrefetchKernel);
}

}  // namespace tenon
