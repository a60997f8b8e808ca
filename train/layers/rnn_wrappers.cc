// SPDX-License-Identifier: Apache-2.0
// Cells around other cells.
#include <map>

#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/random/random_ops.h"
#include "train/layers/rnn_cell.h"
#include "train/layers/salted_seed.h"
#include "train/layers/training_flag.h"
#include "train/value_as.h"

namespace tenon {
namespace {

/// As the cell within, but for its steps.
class WrapperBody : public RnnCell::Body {
 public:
  explicit WrapperBody(const RnnCell& cell) : cell_(cell) {}

  const std::vector<int64_t>& state_sizes() const override { return cell_.state_sizes(); }
  int64_t output_size() const override { return cell_.output_size(); }
  bool is_memory(size_t i) const override { return cell_.is_memory(i); }
  void Build(int64_t depth, DType dtype) override { cell_.Build(depth, dtype); }

 protected:
  const RnnCell cell_;
};

/// A number that must be in (0, 1], or a scalar of the graph.
class Probability {
 public:
  explicit Probability(const Input& value) : value_(value) {
    if (value.literal() == nullptr) return;
    const auto number = value.literal()->ToTensor(DType::kDouble);
    if (number.ok() && number->shape().IsScalar()) number_ = number->scalar<double>();
  }

  bool IsOne() const { return number_ == 1.0; }
  /// Whether it is a probability; else the mistake is kept.
  bool Check() const {
    const bool is_tensor = !number_ && value_.literal() == nullptr;
    if (is_tensor || (number_ && *number_ > 0 && *number_ <= 1)) return true;
    const std::string found = number_ ? StrCat(*number_) : std::string("braces");
    CurrentBuilding().Fail(InvalidArgument("the probability that a dropout of cells keeps an "
                                           "element must be in (0, 1], found ",
                                           found),
                           value_.location());
    return false;
  }
  Input Rate(DType dtype) const {
    return number_ ? Input(1 - *number_) : Input(1 - ValueAs(value_, dtype));
  }
  Output Value(DType dtype) const { return ValueAs(value_, dtype); }

 private:
  const Input value_;
  std::optional<double> number_;
};

class DropoutBody final : public WrapperBody {
 public:
  DropoutBody(const RnnCell& cell, const DropoutWrapperOptions& options)
      : WrapperBody(cell),
        options_(options),
        input_(options.input_keep_prob),
        output_(options.output_keep_prob),
        state_(options.state_keep_prob) {}

  RnnStep Step(const Output& x, const std::vector<Output>& state) override {
    if (!input_.Check() || !output_.Check() || !state_.Check()) {
      return {{}, std::vector<Output>(state.size())};
    }
    RnnStep step = cell_(Dropped(x, input_, "input_0"), state);
    for (size_t i = 0; i < step.state.size(); ++i) {
      if (!is_memory(i)) step.state[i] = Dropped(step.state[i], state_, StrCat("state_", i));
    }
    step.output = Dropped(step.output, output_, "output_0");
    return step;
  }

 private:
  Output Dropped(const Output& x, const Probability& keep, const std::string& salt) {
    if (keep.IsOne() || !x.exists()) return x;
    if (options_.variational_recurrent) return WithoutMasked(x, keep, salt);
    return Dropout(x, keep.Rate(x.dtype()),
                   {.training = options_.training, .seed = SaltedSeed(options_.seed, salt)});
  }

  /// x where the mask of this place, drawn once in a step of the graph, is 1.
  Output WithoutMasked(const Output& x, const Probability& keep, const std::string& salt) {
    const TrainingFlag training(options_.training);
    const int64_t size = KnownSize(x, -1, "a cell with variational dropout");
    if (!CurrentBuilding().graph->error().ok()) return {};
    Output& noise = noise_[salt];
    if (!noise.exists()) {
      const NoControlDependencies outside_of_the_loop;
      noise = RandomUniform(Const({int64_t{1}, size}, {.dtype = DType::kInt32}), x.dtype(),
                            {.seed = SaltedSeed(options_.seed, salt)});
    }
    const Output probability = keep.Value(x.dtype());
    const auto dropped = [&] {
      return std::vector<Output>{x / probability * Floor(probability + noise)};
    };
    const auto kept = [&] { return std::vector<Output>{Identity(x)}; };
    const std::vector<Output> y = training.Choose(dropped, kept);
    return y.empty() ? Output() : y[0];
  }

  const DropoutWrapperOptions options_;
  const Probability input_, output_, state_;
  std::map<std::string, Output> noise_;
};

class ResidualBody final : public WrapperBody {
 public:
  ResidualBody(const RnnCell& cell, const ResidualFunction& residual_fn)
      : WrapperBody(cell), residual_fn_(residual_fn) {}

  RnnStep Step(const Output& x, const std::vector<Output>& state) override {
    RnnStep step = cell_(x, state);
    if (!step.output.exists()) return step;
    if (residual_fn_ != nullptr) {
      step.output = residual_fn_(x, step.output);
      return step;
    }
    if (!x.shape().IsCompatibleWith(step.output.shape())) {
      CurrentBuilding().Fail(
          InvalidArgument("a residual cell adds its input, of shape ", x.shape().ToString(),
                          ", to its output, of another: ", step.output.shape().ToString()),
          std::source_location::current());
      return {{}, step.state};
    }
    step.output = x + step.output;
    return step;
  }

 private:
  const ResidualFunction residual_fn_;
};

class DeviceBody final : public WrapperBody {
 public:
  DeviceBody(const RnnCell& cell, const std::string& device) : WrapperBody(cell), device_(device) {}

  void Build(int64_t depth, DType dtype) override {
    const DeviceScope on(device_);
    cell_.Build(depth, dtype);
  }
  RnnStep Step(const Output& x, const std::vector<Output>& state) override {
    const DeviceScope on(device_);
    return cell_(x, state);
  }

 private:
  const std::string device_;
};

}  // namespace

DropoutWrapper::DropoutWrapper(const RnnCell& cell, const DropoutWrapperOptions& options)
    : RnnCell(std::make_shared<DropoutBody>(cell, options), "") {}
ResidualWrapper::ResidualWrapper(const RnnCell& cell, const ResidualFunction& residual_fn)
    : RnnCell(std::make_shared<ResidualBody>(cell, residual_fn), "") {}
DeviceWrapper::DeviceWrapper(const RnnCell& cell, const std::string& device)
    : RnnCell(std::make_shared<DeviceBody>(cell, device), "") {}

}  // namespace tenon
