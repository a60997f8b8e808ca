// SPDX-License-Identifier: Apache-2.0
#include "train/layers/rnn_cell.h"

#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/nn/nn_ops.h"

namespace tenon {
namespace {

/// Cells with one scope and weights of a dtype.
class WeightedBody : public RnnCell::Body {
 public:
  WeightedBody(std::vector<int64_t> state_sizes, const Activation& activation)
      : state_sizes_(std::move(state_sizes)),
        activation_(activation.exists() ? activation : Activation(Tanh)) {}

  const std::vector<int64_t>& state_sizes() const override { return state_sizes_; }
  int64_t output_size() const override { return state_sizes_.back(); }

 protected:
  const std::vector<int64_t> state_sizes_;
  const Activation activation_;
};

Output Linear(const Output& x, const Output& h, const Variable& kernel, const Variable& bias) {
  return BiasAdd(MatMul(ConcatV2({x, h}, 1), kernel), bias);
}

class BasicRnnBody final : public WeightedBody {
 public:
  BasicRnnBody(int64_t units, const BasicRnnCellOptions& options)
      : WeightedBody({units}, options.activation), initializer_(options.kernel_initializer) {}

  void Build(int64_t depth, DType dtype) override {
    const int64_t units = state_sizes_[0];
    kernel_ = MakeWeight("kernel", {depth + units, units}, dtype, {initializer_});
    bias_ = MakeWeight("bias", {units}, dtype, {ZerosInitializer()});
  }
  RnnStep Step(const Output& x, const std::vector<Output>& state) override {
    const Output h = activation_(Linear(x, state[0], kernel_, bias_));
    return {h, {h}};
  }

 private:
  const Initializer initializer_;
  Variable kernel_, bias_;
};

class LstmBody final : public WeightedBody {
 public:
  LstmBody(int64_t units, const LstmCellOptions& options)
      : WeightedBody({units, options.num_proj > 0 ? options.num_proj : units}, options.activation),
        options_(options) {}

  bool is_memory(size_t i) const override { return i == 0; }
  void Build(int64_t depth, DType dtype) override {
    const int64_t units = state_sizes_[0];
    const WeightOptions weight{options_.initializer};
    kernel_ = MakeWeight("kernel", {depth + state_sizes_[1], 4 * units}, dtype, weight);
    bias_ = MakeWeight("bias", {4 * units}, dtype, {ZerosInitializer()});
    if (options_.use_peepholes) {
      forget_diagonal_ = MakeWeight("w_f_diag", {units}, dtype, weight);
      input_diagonal_ = MakeWeight("w_i_diag", {units}, dtype, weight);
      output_diagonal_ = MakeWeight("w_o_diag", {units}, dtype, weight);
    }
    if (options_.num_proj > 0) {
      projection_ = MakeWeight("projection/kernel", {units, options_.num_proj}, dtype, weight);
    }
  }
  RnnStep Step(const Output& x, const std::vector<Output>& state) override {
    const Output& before = state[0];
    const std::vector<Output> gates = Split(1, Linear(x, state[1], kernel_, bias_), 4);
    Output input = gates[0], forget = gates[2] + options_.forget_bias, output = gates[3];
    if (options_.use_peepholes) {
      forget = forget + forget_diagonal_ * before;
      input = input + input_diagonal_ * before;
    }
    Output c = Sigmoid(forget) * before + Sigmoid(input) * activation_(gates[1]);
    c = Clipped(c, options_.cell_clip);
    if (options_.use_peepholes) output = output + output_diagonal_ * c;
    Output h = Sigmoid(output) * activation_(c);
    if (options_.num_proj > 0) h = Clipped(MatMul(h, projection_), options_.proj_clip);
    return {h, {c, h}};
  }

 private:
  static Output Clipped(const Output& x, double limit) {
    return limit > 0 ? ClipByValue(x, -limit, limit) : x;
  }

  const LstmCellOptions options_;
  Variable kernel_, bias_, forget_diagonal_, input_diagonal_, output_diagonal_, projection_;
};

class GruBody final : public WeightedBody {
 public:
  GruBody(int64_t units, const GruCellOptions& options)
      : WeightedBody({units}, options.activation), options_(options) {}

  void Build(int64_t depth, DType dtype) override {
    const int64_t units = state_sizes_[0];
    const WeightOptions kernel{options_.kernel_initializer};
    gate_kernel_ = MakeWeight("gates/kernel", {depth + units, 2 * units}, dtype, kernel);
    gate_bias_ = MakeWeight("gates/bias", {2 * units}, dtype,
                            {options_.bias_initializer.Or(OnesInitializer())});
    candidate_kernel_ = MakeWeight("candidate/kernel", {depth + units, units}, dtype, kernel);
    candidate_bias_ = MakeWeight("candidate/bias", {units}, dtype,
                                 {options_.bias_initializer.Or(ZerosInitializer())});
  }
  RnnStep Step(const Output& x, const std::vector<Output>& state) override {
    const Output& h = state[0];
    const std::vector<Output> gates = Split(1, Sigmoid(Linear(x, h, gate_kernel_, gate_bias_)), 2);
    const Output &reset = gates[0], &update = gates[1];
    const Output candidate = activation_(Linear(x, reset * h, candidate_kernel_, candidate_bias_));
    const Output next = update * h + (1 - update) * candidate;
    return {next, {next}};
  }

 private:
  const GruCellOptions options_;
  Variable gate_kernel_, gate_bias_, candidate_kernel_, candidate_bias_;
};

class MultiRnnBody final : public RnnCell::Body {
 public:
  explicit MultiRnnBody(const std::vector<RnnCell>& cells) : cells_(cells) {
    for (const RnnCell& cell : cells_) {
      for (size_t i = 0; i < cell.state_sizes().size(); ++i) {
        state_sizes_.push_back(cell.state_sizes()[i]);
        memories_.push_back(cell.is_memory(i));
      }
    }
  }

  const std::vector<int64_t>& state_sizes() const override { return state_sizes_; }
  int64_t output_size() const override { return cells_.empty() ? 0 : cells_.back().output_size(); }
  bool is_memory(size_t i) const override { return memories_[i]; }
  void Build(int64_t depth, DType dtype) override {
    for (size_t i = 0; i < cells_.size(); ++i) {
      const NameScope scope(StrCat("cell_", i));
      cells_[i].Build(depth, dtype);
      depth = cells_[i].output_size();
    }
  }
  RnnStep Step(const Output& x, const std::vector<Output>& state) override {
    RnnStep all{x, {}};
    auto next = state.begin();
    for (const RnnCell& cell : cells_) {
      const auto end = next + static_cast<int64_t>(cell.state_sizes().size());
      const RnnStep step = cell(all.output, {next, end});
      next = end;
      all.output = step.output;
      all.state.insert(all.state.end(), step.state.begin(), step.state.end());
    }
    return all;
  }

 private:
  const std::vector<RnnCell> cells_;
  std::vector<int64_t> state_sizes_;
  std::vector<bool> memories_;
};

}  // namespace

RnnCell::RnnCell(std::shared_ptr<Body> body, std::string name) : body_(std::move(body)) {
  if (!name.empty()) state_ = std::make_shared<LayerState>(std::move(name));
}

void RnnCell::Build(int64_t depth, DType dtype, const std::source_location& at) const {
  if (state_ == nullptr) return body_->Build(depth, dtype);
  const InLayer layer(*state_, at);
  if (layer.is_first()) body_->Build(depth, dtype);
}

RnnStep RnnCell::operator()(const Input& input, const std::vector<Output>& state) const {
  const CalledFrom caller(input.location());
  const BuildContext& context = CurrentBuilding();
  const Output x = Const(input);
  const size_t wanted = state_sizes().size();
  if (state.size() != wanted) {
    context.Fail(
        InvalidArgument("the state of a cell has ", wanted, " tensors, found ", state.size()),
        input.location());
  }
  const RnnStep none{{}, std::vector<Output>(wanted)};
  if (!context.graph->error().ok()) return none;
  if (state_ == nullptr) return body_->Step(x, state);
  const InLayer layer(*state_, input.location());
  if (layer.is_first()) body_->Build(KnownSize(x, -1, "a cell"), x.dtype());
  return context.graph->error().ok() ? body_->Step(x, state) : none;
}

std::vector<Output> RnnCell::ZeroState(const Input& batch_size, DType dtype,
                                       const std::source_location& at) const {
  const CalledFrom caller(at);
  const Output batch = Const(batch_size, {.dtype = DType::kInt32});
  const auto number = batch_size.literal() == nullptr
                          ? StatusOr<Tensor>(InvalidArgument("known in the step"))
                          : batch_size.literal()->ToTensor(DType::kInt64);
  const bool known = number.ok() && number->shape().IsScalar();
  std::vector<Output> zeros;
  for (const int64_t size : state_sizes()) {
    const Output dims = known ? Const({number->scalar<int64_t>(), size}, {.dtype = DType::kInt32})
                              : Pack({batch, Const(size, {.dtype = DType::kInt32})});
    const Output zero = Fill(dims, Const(0, {.dtype = dtype}));
    zeros.push_back(known ? zero : EnsureShape(zero, {-1, size}));
  }
  return zeros;
}

BasicRnnCell::BasicRnnCell(int64_t num_units, const BasicRnnCellOptions& options)
    : RnnCell(std::make_shared<BasicRnnBody>(num_units, options), options.name) {}
LstmCell::LstmCell(int64_t num_units, const LstmCellOptions& options)
    : RnnCell(std::make_shared<LstmBody>(num_units, options), options.name) {}
GruCell::GruCell(int64_t num_units, const GruCellOptions& options)
    : RnnCell(std::make_shared<GruBody>(num_units, options), options.name) {}
MultiRnnCell::MultiRnnCell(const std::vector<RnnCell>& cells, const std::string& name)
    : RnnCell(std::make_shared<MultiRnnBody>(cells), name) {}

}  // namespace tenon
