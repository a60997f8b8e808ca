// SPDX-License-Identifier: Apache-2.0
//
// Datasets in which elements depend on each other: groups of them, states that go from one to the
// next, choices among inputs.
#include <iterator>
#include <map>

#include "ops/data/dataset.h"

namespace tenon {
namespace {

/// The attribute `types` says how many tensors a function has captured.
int CapturedCount(KernelConstruction& c, std::string_view types) {
  return static_cast<int>(c.Attr<DTypeVector>(types).size());
}

/// Elements that are there already.
struct CollectedDataset final : Dataset {
  CollectedDataset(const Dataset& like, std::vector<DatasetElement> of)
      : Dataset(like), elements(std::move(of)) {}

  class Walk final : public ElementIterator {
   public:
    explicit Walk(std::shared_ptr<const CollectedDataset> of) : of_(std::move(of)) {}
    StatusOr<bool> Next(DatasetElement* out) override {
      if (at_ == of_->elements.size()) return false;
      *out = of_->elements[at_++];
      return true;
    }
    bool IsReady() const override { return true; }

   private:
    const std::shared_ptr<const CollectedDataset> of_;
    size_t at_ = 0;
  };
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr&) const override {
    return std::make_unique<Walk>(Self<CollectedDataset>());
  }
  int64_t CountElements() const override { return static_cast<int64_t>(elements.size()); }

  const std::vector<DatasetElement> elements;
};

/// The functions of a GroupByWindowDataset, whose captured tensors follow the input in this order.
struct WindowFunctions : KernelState {
  explicit WindowFunctions(KernelConstruction& c)
      : key(c, "key_func"),
        reduce(c, "reduce_func"),
        window_size(c, "window_size_func"),
        key_captured(CapturedCount(c, "Tkey_func_other_arguments")),
        reduce_captured(CapturedCount(c, "Treduce_func_other_arguments")),
        window_size_captured(CapturedCount(c, "Twindow_size_func_other_arguments")) {}
  const FunctionSpec key, reduce, window_size;
  const int key_captured, reduce_captured, window_size_captured;
};

StatusOr<int64_t> CallForNumber(const FunctionCaller& caller, DatasetElement argument,
                                std::string_view name) {
  DatasetElement results;
  TENON_RETURN_IF_ERROR(caller.Call(std::move(argument), &results));
  if (results.size() == 1 && results[0].dtype() == DType::kInt64 && results[0].rank() == 0) {
    return results[0].scalar<int64_t>();
  }
  return InvalidArgument("`", name, "` must return a scalar int64.");
}

/// Calls `caller`, whose results must be of `types`, for `state` and `element`.
Status CallWithState(const FunctionCaller& caller, const DTypeVector& types, DatasetElement state,
                     DatasetElement element, DatasetElement* results) {
  if (caller.result_types() != types) {
    return InvalidArgument("the function gives ", Join(caller.result_types(), ", "), ", wanted ",
                           Join(types, ", "));
  }
  std::move(element.begin(), element.end(), std::back_inserter(state));
  return caller.Call(std::move(state), results);
}

/// What a function makes of groups of elements with the same key.
struct GroupByWindowDataset final : DatasetOver<GroupByWindowDataset> {
  GroupByWindowDataset(DatasetPtr from, const ElementSpec& spec, const WindowFunctions& functions,
                       const KernelContext& ctx)
      : DatasetOver(std::move(from), spec),
        key(functions.key.Capture(ctx, 1, functions.key_captured)),
        reduce(
            functions.reduce.Capture(ctx, 1 + functions.key_captured, functions.reduce_captured)),
        window_size(functions.window_size.Capture(
            ctx, 1 + functions.key_captured + functions.reduce_captured,
            functions.window_size_captured)) {}

  class Walk final : public WalkOver<GroupByWindowDataset> {
   public:
    using WalkOver::WalkOver;
    StatusOr<bool> Next(DatasetElement* out) override {
      if (!key_.has_value()) {
        TENON_ASSIGN_OR_RETURN(reduce_, FunctionCaller::Make(context_, of_->reduce));
        TENON_ASSIGN_OR_RETURN(window_size_, FunctionCaller::Make(context_, of_->window_size));
        TENON_ASSIGN_OR_RETURN(key_, FunctionCaller::Make(context_, of_->key));
      }
      while (true) {
        if (reduced_ != nullptr) {
          TENON_ASSIGN_OR_RETURN(const bool found, reduced_->Next(out));
          if (found) return true;
          reduced_ = nullptr;
        }
        if (input_ != nullptr) {
          TENON_RETURN_IF_ERROR(TakeOne());
        } else if (!groups_.empty()) {
          auto first = groups_.extract(groups_.begin());
          TENON_RETURN_IF_ERROR(Reduce(first.key(), std::move(first.mapped().elements)));
        } else {
          return false;
        }
      }
    }

   private:
    struct Group {
      int64_t window_size = 0;
      std::vector<DatasetElement> elements;
    };

    /// Puts the next element of the input into its group, which is reduced when it is full.
    Status TakeOne() {
      DatasetElement element;
      TENON_ASSIGN_OR_RETURN(const bool found, input_->Next(&element));
      if (!found) {
        input_ = nullptr;
        std::erase_if(groups_, [](const auto& group) { return group.second.elements.empty(); });
        return OkStatus();
      }
      TENON_ASSIGN_OR_RETURN(const int64_t key, CallForNumber(*key_, element, "key_func"));
      auto [place, is_new] = groups_.try_emplace(key);
      Group& group = place->second;
      if (is_new || group.window_size <= 0) {
        TENON_ASSIGN_OR_RETURN(
            group.window_size,
            CallForNumber(*window_size_, {Tensor::Scalar(key)}, "window_size_func"));
      }
      if (group.window_size <= 0) {
        return InvalidArgument("Window size must be greater than zero, but got ", group.window_size,
                               ".");
      }
      group.elements.push_back(std::move(element));
      if (static_cast<int64_t>(group.elements.size()) < group.window_size) return OkStatus();
      return Reduce(key, std::exchange(group.elements, {}));
    }

    Status Reduce(int64_t key, std::vector<DatasetElement> elements) {
      auto window = std::make_shared<CollectedDataset>(*of_->input, std::move(elements));
      for (const DatasetElement& element : window->elements) {
        for (const Tensor& t : element) TENON_RETURN_IF_ERROR(window->CountDepth(t));
      }
      DatasetElement results;
      TENON_RETURN_IF_ERROR(
          reduce_->Call({Tensor::Scalar(key), TensorOf(std::move(window))}, &results));
      TENON_ASSIGN_OR_RETURN(reduced_, IteratorOfResult(context_, results));
      return OkStatus();
    }

    std::optional<FunctionCaller> key_, reduce_, window_size_;
    std::map<int64_t, Group> groups_;
    IteratorPtr reduced_;
  };

  const DatasetFunction key, reduce, window_size;
};

Status GroupByWindowKernel(KernelContext& ctx, DatasetPtr input, const ElementSpec& spec,
                           const WindowFunctions& functions) {
  return ReturnDataset(
      ctx, std::make_shared<GroupByWindowDataset>(std::move(input), spec, functions, ctx));
}

/// The functions of a GroupByReducerDataset, whose captured tensors follow the input in this order.
struct ReducerFunctions : KernelState {
  explicit ReducerFunctions(KernelConstruction& c) {
    for (const char* name : {"key_func", "init_func", "reduce_func", "finalize_func"}) {
      functions.emplace_back(c, name);
      captured.push_back(CapturedCount(c, StrCat("T", name, "_other_arguments")));
    }
  }
  std::vector<DatasetFunction> Capture(const KernelContext& ctx) const {
    std::vector<DatasetFunction> all;
    int first = 1;
    for (size_t i = 0; i < functions.size(); first += captured[i++]) {
      all.push_back(functions[i].Capture(ctx, first, captured[i]));
    }
    return all;
  }

  std::vector<FunctionSpec> functions;
  std::vector<int> captured;
};

/// For each key, in their order, what the last of its states becomes: an element of the input makes
/// the next state of its key.
struct GroupByReducerDataset final : DatasetOver<GroupByReducerDataset> {
  enum Function { kKey, kInit, kReduce, kFinalize };

  GroupByReducerDataset(DatasetPtr from, const ElementSpec& spec, std::vector<DatasetFunction> all)
      : DatasetOver(std::move(from), spec), functions(std::move(all)) {}

  class Walk final : public WalkOver<GroupByReducerDataset> {
   public:
    using WalkOver::WalkOver;
    StatusOr<bool> Next(DatasetElement* out) override {
      if (callers_.empty()) {
        std::vector<FunctionCaller> callers;
        for (const DatasetFunction& function : of_->functions) {
          TENON_ASSIGN_OR_RETURN(auto caller, FunctionCaller::Make(context_, function));
          callers.push_back(std::move(caller));
        }
        callers_ = std::move(callers);
      }
      while (input_ != nullptr) TENON_RETURN_IF_ERROR(TakeOne());
      if (states_.empty()) return false;
      auto first = states_.extract(states_.begin());
      TENON_RETURN_IF_ERROR(callers_[kFinalize].Call(std::move(first.mapped()), out));
      TENON_RETURN_IF_ERROR(CheckElement({of_->types(), of_->shapes()}, *out));
      return true;
    }

   private:
    Status TakeOne() {
      DatasetElement element;
      TENON_ASSIGN_OR_RETURN(const bool found, input_->Next(&element));
      if (!found) {
        input_ = nullptr;
        return OkStatus();
      }
      TENON_ASSIGN_OR_RETURN(const int64_t key, CallForNumber(callers_[kKey], element, "key_func"));
      auto known = states_.find(key);
      if (known == states_.end()) {
        DatasetElement state;
        TENON_RETURN_IF_ERROR(callers_[kInit].Call({Tensor::Scalar(key)}, &state));
        known = states_.emplace(key, std::move(state)).first;
      }
      // An element that fails leaves the state as it was.
      const DatasetElement& state = known->second;
      DatasetElement next;
      TENON_RETURN_IF_ERROR(
          CallWithState(callers_[kReduce], TypesOf(state), state, std::move(element), &next));
      known->second = std::move(next);
      return OkStatus();
    }

    std::vector<FunctionCaller> callers_;
    std::map<int64_t, DatasetElement> states_;
  };

  const std::vector<DatasetFunction> functions;
};

Status GroupByReducerKernel(KernelContext& ctx, DatasetPtr input, const ElementSpec& spec,
                            const ReducerFunctions& functions) {
  return ReturnDataset(
      ctx, std::make_shared<GroupByReducerDataset>(std::move(input), spec, functions.Capture(ctx)));
}

/// A function of a state and an element, both of several components. The initial state follows the
/// input, and the captured tensors that.
struct StateFunction : KernelState {
  explicit StateFunction(KernelConstruction& c)
      : function(c, "f"),
        types(c.Attr<DTypeVector>("Tstate")),
        captured(CapturedCount(c, "Targuments")) {}
  DatasetFunction Capture(const KernelContext& ctx) const {
    return function.Capture(ctx, 1 + static_cast<int>(types.size()), captured);
  }
  DatasetElement InitialState(const KernelContext& ctx) const {
    DatasetElement state;
    for (size_t i = 0; i < types.size(); ++i) state.push_back(ctx.input(static_cast<int>(i) + 1));
    return state;
  }

  const FunctionSpec function;
  const DTypeVector types;
  const int captured;
};

/// The results of a function, part of which go to its next call instead of into the element.
struct ScanDataset final : DatasetOver<ScanDataset> {
  ScanDataset(DatasetPtr from, const ElementSpec& spec, DatasetFunction called,
              DatasetElement before, bool keeps)
      : DatasetOver(std::move(from), spec),
        function(std::move(called)),
        initial_state(std::move(before)),
        keeps_cardinality(keeps) {}

  class Walk final : public WalkOver<ScanDataset> {
   public:
    Walk(std::shared_ptr<const ScanDataset> of, IteratorPtr input, ContextPtr context)
        : WalkOver(of, std::move(input), std::move(context)), state_(of->initial_state) {}
    StatusOr<bool> Next(DatasetElement* out) override {
      if (!caller_.has_value()) {
        TENON_ASSIGN_OR_RETURN(caller_, FunctionCaller::Make(context_, of_->function));
        types_ = TypesOf(state_);
        types_.insert(types_.end(), of_->types().begin(), of_->types().end());
      }
      if (input_ == nullptr) return false;
      DatasetElement element;
      TENON_ASSIGN_OR_RETURN(const bool found, input_->Next(&element));
      if (!found) return false;
      TENON_ASSIGN_OR_RETURN(const bool mapped, IsMapped(CallWithState(*caller_, types_, state_,
                                                                       std::move(element), out),
                                                         of_->keeps_cardinality));
      if (!mapped) {
        input_ = nullptr;
        return false;
      }
      const auto behind = out->begin() + static_cast<int64_t>(state_.size());
      std::move(out->begin(), behind, state_.begin());
      out->erase(out->begin(), behind);
      return true;
    }

   private:
    std::optional<FunctionCaller> caller_;
    DTypeVector types_;  // of its results
    DatasetElement state_;
  };
  int64_t CountElements() const override {
    return keeps_cardinality ? input->Cardinality() : kUnknown;
  }

  const DatasetFunction function;
  const DatasetElement initial_state;
  const bool keeps_cardinality;
};

Status ScanKernel(KernelContext& ctx, DatasetPtr input, bool preserve_cardinality,
                  const ElementSpec& spec, const StateFunction& function) {
  return ReturnDataset(
      ctx, std::make_shared<ScanDataset>(std::move(input), spec, function.Capture(ctx),
                                         function.InitialState(ctx), preserve_cardinality));
}

/// The state after the last element.
class ReduceKernel final : public AsyncKernel {
 public:
  explicit ReduceKernel(KernelConstruction& c) : AsyncKernel(c), spec_(c), function_(c) {}

  void ComputeAsync(KernelContext& ctx, Done done) const override {
    const StatusOr<DatasetPtr> input = DatasetInput(ctx);
    if (!input.ok()) return done(input.status());
    WalkOnOwnThread(ctx, *input, std::move(done),
                    [this, &ctx](const ContextPtr& context, ElementIterator& walk) {
                      return Reduce(ctx, context, walk);
                    });
  }

 private:
  Status Reduce(KernelContext& ctx, const ContextPtr& context, ElementIterator& walk) const {
    TENON_ASSIGN_OR_RETURN(const auto caller,
                           FunctionCaller::Make(context, function_.Capture(ctx)));
    DatasetElement state = function_.InitialState(ctx);
    while (true) {
      DatasetElement element;
      TENON_ASSIGN_OR_RETURN(const bool found, walk.Next(&element));
      if (!found) break;
      const Status status =
          CallWithState(caller, function_.types, std::move(state), std::move(element), &state);
      TENON_RETURN_IF_ERROR(IsMapped(status, true).status());
    }
    TENON_RETURN_IF_ERROR(CheckElement(spec_, state));
    for (size_t i = 0; i < state.size(); ++i) {
      ctx.set_output(static_cast<int>(i), std::move(state[i]));
    }
    return OkStatus();
  }

  const ElementSpec spec_;
  const StateFunction function_;
};

/// Elements of several datasets; another one of numbers says of which the next is.
struct DirectedInterleaveDataset final : DatasetOver<DirectedInterleaveDataset> {
  DirectedInterleaveDataset(DatasetPtr selector, const ElementSpec& spec,
                            std::vector<DatasetPtr> from, bool stops)
      : DatasetOver(std::move(selector), spec), data(std::move(from)), ends_at_empty(stops) {}

  class Walk final : public WalkOver<DirectedInterleaveDataset> {
   public:
    using WalkOver::WalkOver;
    StatusOr<bool> Next(DatasetElement* out) override {
      if (open_.empty()) {
        std::vector<IteratorPtr> walks;
        for (const DatasetPtr& dataset : of_->data) {
          TENON_ASSIGN_OR_RETURN(IteratorPtr walk, dataset->MakeIterator(context_));
          walks.push_back(std::move(walk));
        }
        open_ = std::move(walks);
        left_ = open_.size();
      }
      while (input_ != nullptr && left_ > 0) {
        const Cancellation& cancellation = context_->cancellation();
        if (cancellation.cancelled()) return cancellation.status();
        DatasetElement number;
        TENON_ASSIGN_OR_RETURN(const bool found, input_->Next(&number));
        if (!found) break;
        if (number[0].rank() != 0) return InvalidArgument(kWantedNumbers);
        const int64_t which = number[0].scalar<int64_t>();
        if (which < 0 || which >= static_cast<int64_t>(open_.size())) {
          return InvalidArgument("Selector index out of range: ", which, " >= ", open_.size());
        }
        IteratorPtr& walk = open_[which];
        if (walk == nullptr) continue;
        TENON_ASSIGN_OR_RETURN(const bool exists, walk->Next(out));
        if (exists) return true;
        if (of_->ends_at_empty) break;
        walk = nullptr;
        --left_;
      }
      input_ = nullptr;
      return false;
    }

   private:
    std::vector<IteratorPtr> open_;  // null: it has ended
    size_t left_ = 0;
  };
  int64_t CountElements() const override {
    for (const DatasetPtr& dataset : data) {
      if (dataset->Cardinality() == kInfinite) return kInfinite;
    }
    return kUnknown;
  }

  static constexpr std::string_view kWantedNumbers =
      "The selector input must be a dataset of scalar int64 elements.";
  const std::vector<DatasetPtr> data;
  const bool ends_at_empty;
};

Status DirectedInterleaveKernel(KernelContext& ctx, DatasetPtr selector, bool stop_on_empty_dataset,
                                const ElementSpec& spec) {
  if (selector->types() != DTypeVector{DType::kInt64}) {
    return InvalidArgument(DirectedInterleaveDataset::kWantedNumbers);
  }
  std::vector<DatasetPtr> data;
  for (int i = 1; i < ctx.num_inputs(); ++i) {
    TENON_ASSIGN_OR_RETURN(DatasetPtr input, DatasetInput(ctx, i));
    TENON_RETURN_IF_ERROR(CheckSpec(spec, input->types(), input->shapes()));
    data.push_back(std::move(input));
  }
  return ReturnDataset(ctx, std::make_shared<DirectedInterleaveDataset>(
                                std::move(selector), spec, std::move(data), stop_on_empty_dataset));
}

}  // namespace

void RegisterGroupingDatasets(OpRegistry& ops) {
  const auto add = [&ops](std::string_view name, ShapeFn shape, auto kernel,
                          KernelOptions options = {}) {
    ops.Add(name, shape, kernel, std::move(options))
        .NoExample("needs an iterator; datasets_test covers it");
  };
  add("GroupByWindowDataset", ScalarShape, GroupByWindowKernel);
  add("GroupByReducerDataset", ScalarShape, GroupByReducerKernel);
  add("ScanDataset", ScalarShape, ScanKernel, {.attrs = {"preserve_cardinality"}});
  ops.Get("ReduceDataset")
      .Shape(ShapesOfElement)
      .Kernel<ReduceKernel>(kCpu)
      .NoExample("needs functions; datasets_test covers it");
  add("DirectedInterleaveDataset", ScalarShape, DirectedInterleaveKernel,
      {.attrs = {"stop_on_empty_dataset"}});
}

}  // namespace tenon
