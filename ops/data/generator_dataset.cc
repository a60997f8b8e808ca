// SPDX-License-Identifier: Apache-2.0
//
// The dataset whose elements functions make, from nothing but their state.
#include "ops/data/dataset.h"

namespace tenon {
namespace {

/// The functions of a GeneratorDataset, whose captured tensors are its inputs in this order.
struct GeneratorFunctions : KernelState {
  explicit GeneratorFunctions(KernelConstruction& c)
      : init(c, "init_func"), next(c, "next_func"), finalize(c, "finalize_func") {
    for (const char* types : {"Tinit_func_args", "Tnext_func_args", "Tfinalize_func_args"}) {
      captured.push_back(static_cast<int>(c.Attr<DTypeVector>(types).size()));
    }
  }
  DatasetFunction Init(const KernelContext& ctx) const { return Bound(ctx, init, 0, 0); }
  DatasetFunction Next(const KernelContext& ctx) const { return Bound(ctx, next, captured[0], 1); }
  DatasetFunction Finalize(const KernelContext& ctx) const {
    return Bound(ctx, finalize, captured[0] + captured[1], 2);
  }

 private:
  DatasetFunction Bound(const KernelContext& ctx, const FunctionSpec& function, int first,
                        int i) const {
    DatasetFunction bound = function.Capture(ctx, first, captured[i]);
    bound.captures_targets = true;
    return bound;
  }

  const FunctionSpec init, next, finalize;
  std::vector<int> captured;
};

/// The elements that `next` makes of the state which `init` gives, until it is OutOfRange.
/// `finalize` of the state runs once for each `init`: then, or when the walk ends before.
struct GeneratorDataset final : Dataset {
  GeneratorDataset(const ElementSpec& spec, const GeneratorFunctions& functions,
                   const KernelContext& ctx)
      : Dataset(spec.types, spec.shapes),
        init(functions.Init(ctx)),
        next(functions.Next(ctx)),
        finalize(functions.Finalize(ctx)) {}

  class Walk final : public ElementIterator {
   public:
    Walk(FunctionCaller init, FunctionCaller next, FunctionCaller finalize)
        : init_(std::move(init)), next_(std::move(next)), finalize_(std::move(finalize)) {}
    ~Walk() override {
      DatasetElement ignored;
      if (state_.has_value()) (void)finalize_.CallToItsEnd(*std::move(state_), &ignored);
    }

    StatusOr<bool> Next(DatasetElement* out) override {
      if (ended_) return false;
      if (!state_.has_value()) {
        DatasetElement state;
        TENON_RETURN_IF_ERROR(init_.Call({}, &state));
        state_ = std::move(state);
      }
      const Status status = next_.Call(*state_, out);
      if (status.code() != StatusCode::kOutOfRange) {
        TENON_RETURN_IF_ERROR(status);
        return true;
      }
      ended_ = true;
      DatasetElement ignored, state = *std::exchange(state_, std::nullopt);
      TENON_RETURN_IF_ERROR(finalize_.Call(std::move(state), &ignored));
      return false;
    }

   private:
    const FunctionCaller init_, next_, finalize_;
    std::optional<DatasetElement> state_;  // of an init that no finalize has followed
    bool ended_ = false;
  };

  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    TENON_ASSIGN_OR_RETURN(FunctionCaller first, FunctionCaller::Make(context, init));
    TENON_ASSIGN_OR_RETURN(FunctionCaller caller, FunctionCaller::Make(context, next));
    TENON_ASSIGN_OR_RETURN(FunctionCaller last, FunctionCaller::Make(context, finalize));
    if (caller.result_types() != types()) {
      return InvalidArgument("next_func '", next.name.name, "' gives ",
                             Join(caller.result_types(), ", "), ", wanted ", Join(types(), ", "));
    }
    return std::make_unique<Walk>(std::move(first), std::move(caller), std::move(last));
  }

  const DatasetFunction init, next, finalize;
};

Status GeneratorKernel(KernelContext& ctx, const ElementSpec& spec,
                       const GeneratorFunctions& functions) {
  return ReturnDataset(ctx, std::make_shared<GeneratorDataset>(spec, functions, ctx));
}

}  // namespace

void RegisterGeneratorDataset(OpRegistry& ops) {
  ops.Add("GeneratorDataset", ScalarShape, GeneratorKernel)
      .NoExample("needs functions; multi_device_iterator_test covers it");
}

}  // namespace tenon
