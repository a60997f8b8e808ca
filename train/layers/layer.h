// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ops/control_flow/flow_scope.h"
#include "train/layers/initializers.h"
#include "train/layers/regularizers.h"
#include "train/variables.h"

// What layers are made of, for those who write their own. A layer is a small object with a function
// call, whose copies share one state: the scope that the first call chose, and the variables that
// it made there.
//
//   class Scaling {
//    public:
//     Output operator()(const Input& x) const {
//       const InLayer layer(*state_, x.location());
//       if (layer.is_first()) state_->gain = MakeWeight("gain", {}, DType::kFloat);
//       return x * state_->gain;
//     }
//
//    private:
//     struct State : LayerState {
//       using LayerState::LayerState;
//       Variable gain;
//     };
//     std::shared_ptr<State> state_ = std::make_shared<State>("scaling");
//   };

namespace tenon {

/// Where a layer is. Its variables belong to one graph, after which it is not used any more, and it
/// is called by the thread that builds that.
class LayerState {
 public:
  /// A layer that asks for the scope `name`; name_1, name_2, ... where that is taken.
  explicit LayerState(std::string name) : name_(std::move(name)) {}

 private:
  friend class InLayer;
  const std::string name_;
  std::string prefix_;
  const Graph* graph_ = nullptr;
};

/// A call of a layer: new nodes are in the layer's scope, which the first call chooses within the
/// scopes that are entered then, without those of Cond, Case and WhileLoop: wherever a layer is
/// first called, its variables have the names that they have in TensorFlow. Mistakes are reported
/// at `at`, the caller's place. A call in another graph than the first is a mistake.
class [[nodiscard]] InLayer : private EnteredContext {
 public:
  InLayer(LayerState& state, const std::source_location& at)
      : InLayer(state, at, state.graph_ == nullptr) {}
  /// Whether the layer has no variables yet.
  bool is_first() const { return is_first_; }

 private:
  InLayer(LayerState& state, const std::source_location& at, bool is_first)
      : EnteredContext(Enter(state, at)), is_first_(is_first) {}
  static BuildContext Enter(LayerState& state, const std::source_location& at);

  const FlowScopesForgotten forgotten_;  // the layer's scope is in none of them
  const bool is_first_;
};

struct WeightOptions {
  /// Glorot's uniform one by default.
  Initializer initializer = {};
  Regularizer regularizer = {};
  bool trainable = true;
  /// The part of a larger weight that it is; the initializer is told the shape of the whole.
  std::optional<VariablePart> part = {};
};
/// A variable in the scope that is entered, outside all branches and loops and without their
/// scopes in its name, whose regularizer's term is added to the collection "regularization_losses"
/// (tf.get_variable). Each size of the shape is at least 1: another one is a mistake.
Variable MakeWeight(std::string_view name, const std::vector<int64_t>& shape, DType dtype,
                    const WeightOptions& options = {});

/// The size of dimension `axis` of `x`, from the end when negative. A mistake, which calls x what
/// it is to the `layer`, and -1 when the graph does not tell it.
int64_t KnownSize(const Output& x, int axis, std::string_view layer);

/// Half and bfloat16 as float, for layers that add up many numbers; other dtypes as they are.
Output Widened(const Output& x);
/// What Widened made, as `dtype` again.
Output Narrowed(const Output& x, DType dtype);

/// Whether x has rank `rank`, as far as the graph tells; else a mistake.
bool CheckRank(const Output& x, int rank, std::string_view layer);

}  // namespace tenon
