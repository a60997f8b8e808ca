// SPDX-License-Identifier: Apache-2.0
#include "train/layers/layer.h"

#include "ops/control_flow/flow_scope.h"
#include "ops/math/math_ops.h"

namespace tenon {
namespace {

void FailLayer(const Status& mistake) {
  CurrentBuilding().Fail(mistake, std::source_location::current());
}

}  // namespace

BuildContext InLayer::Enter(LayerState& state, const std::source_location& at) {
  BuildContext context = CurrentBuilding(at);
  if (!context.caller) context.caller = at;
  if (state.graph_ == nullptr) {
    state.graph_ = context.graph;
    if (!IsLegalNodeName(context.prefix + state.name_)) {
      context.Fail(IllegalNodeName(state.name_, "layer"), at);
    }
    const OutsideFlowScopes names(at);
    state.prefix_ = StrCat(CurrentBuilding().prefix, UnusedScope(state.name_), "/");
  } else if (state.graph_ != context.graph) {
    context.Fail(InvalidArgument("the variables of layer '", state.name_,
                                 "' are in another graph than the one being built"),
                 at);
  }
  context.prefix = state.prefix_;
  return context;
}

Variable MakeWeight(std::string_view name, const std::vector<int64_t>& shape, DType dtype,
                    const WeightOptions& options) {
  const OutsideFlowScopes names;
  const BuildContext& context = CurrentBuilding();
  if (!context.graph->error().ok()) return {};
  auto dims = Shape::Create(shape);
  if (dims.ok() && dims->num_elements() == 0) {
    dims = InvalidArgument("its shape is ", dims->ToString(), ", and it must have elements");
  }
  if (!dims.ok()) {
    FailLayer(Annotate(dims.status(), StrCat("weight '", context.prefix, name, "'")));
    return {};
  }
  // The same in whatever the first call of a layer lies.
  const NoControlDependencies always;
  const auto value = [&] {
    const NameScope scope(StrCat(name, "/Initializer"));
    const Shape whole = options.part ? Shape(options.part->shape) : *dims;
    return options.initializer.Or(GlorotUniformInitializer())(*dims, dtype, whole);
  };
  const Variable weight(name, value(), {.trainable = options.trainable, .part = options.part});
  if (options.regularizer == nullptr || !weight.ref().exists()) return weight;
  const NameScope scope(StrCat(name, "/Regularizer"));
  const ColocateWith beside(weight.ref());
  const Output term = options.regularizer(weight);
  if (term.exists()) context.graph->Collection("regularization_losses").push_back(term);
  return weight;
}

int64_t KnownSize(const Output& x, int axis, std::string_view layer) {
  const PartialShape& shape = x.shape();
  const int i = axis < 0 ? axis + shape.rank() : axis;
  const bool known = shape.rank_known() && i >= 0 && i < shape.rank() && shape.dim(i) >= 0;
  if (known) return shape.dim(i);
  FailLayer(InvalidArgument("the input of ", layer, " must have a known size in dimension ", axis,
                            "; '", x.name(), "' has shape ", shape.ToString()));
  return -1;
}

Output Widened(const Output& x) {
  const bool is_half = x.dtype() == DType::kHalf || x.dtype() == DType::kBFloat16;
  return is_half ? Cast(x, DType::kFloat) : x;
}

Output Narrowed(const Output& x, DType dtype) { return x.dtype() == dtype ? x : Cast(x, dtype); }

bool CheckRank(const Output& x, int rank, std::string_view layer) {
  const PartialShape& shape = x.shape();
  if (x.exists() && shape.rank() == rank) return true;
  FailLayer(InvalidArgument("the input of ", layer, " must have rank ", rank, "; '", x.name(),
                            "' has shape ", shape.ToString()));
  return false;
}

}  // namespace tenon
