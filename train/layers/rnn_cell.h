// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "train/layers/activation.h"
#include "train/layers/dropout.h"
#include "train/layers/layer.h"

// One step of recurrent networks (tf.nn.rnn_cell), which StaticRnn and DynamicRnn (rnn.h) repeat.
// A cell's variables are made at its first call, with TensorFlow's names, and shared by later calls
// and by copies.
//
//   LstmCell cell(128);
//   auto [output, state] = cell(x, cell.ZeroState(batch, DType::kFloat));
//   auto [outputs, end] = DynamicRnn(MultiRnnCell({LstmCell(64), GruCell(32)}), sequences);

namespace tenon {

/// What a step gives.
struct RnnStep {
  Output output;
  /// As many tensors as the cell's state has.
  std::vector<Output> state;
};

/// Any cell. Its state is a list of matrices [batch, size]: of an LSTM c, then h; of several layers
/// all of theirs, one layer after the other. Small; copies share their variables.
class RnnCell {
 public:
  /// What a cell does: to be derived from for cells of one's own.
  class Body {
   public:
    virtual ~Body() = default;
    virtual const std::vector<int64_t>& state_sizes() const = 0;
    virtual int64_t output_size() const = 0;
    /// Whether dropout of the state leaves that tensor of it alone, such as the c of an LSTM.
    virtual bool is_memory(size_t) const { return false; }
    /// Makes the variables, in the scope that is entered, for inputs of `depth` columns; called
    /// once.
    virtual void Build(int64_t depth, DType dtype) = 0;
    /// One step, in the same scope.
    virtual RnnStep Step(const Output& x, const std::vector<Output>& state) = 0;
  };

  /// A cell whose scope is `name`, made unique at the first call. Without a name it has no scope of
  /// its own, and its body no variables but those of other cells: its Build is not called, unless
  /// this one's is.
  RnnCell(std::shared_ptr<Body> body, std::string name);

  /// One step for x [batch, depth]: floating point, the depth known. Of states of another number
  /// than the cell has, a mistake.
  RnnStep operator()(const Input& x, const std::vector<Output>& state) const;
  /// Makes the variables for such inputs, in the scopes that are entered, unless they are made: so
  /// that a loop finds them made outside of it.
  void Build(int64_t depth, DType dtype,
             const std::source_location& at = std::source_location::current()) const;

  /// The number of columns of each tensor of the state, and of the output.
  const std::vector<int64_t>& state_sizes() const { return body_->state_sizes(); }
  int64_t output_size() const { return body_->output_size(); }
  bool is_memory(size_t i) const { return body_->is_memory(i); }
  /// States of zeros for a batch of that size, a number or an int32 scalar.
  std::vector<Output> ZeroState(
      const Input& batch_size, DType dtype,
      const std::source_location& at = std::source_location::current()) const;

 private:
  std::shared_ptr<Body> body_;
  std::shared_ptr<LayerState> state_;
};

struct BasicRnnCellOptions {
  Activation activation = {};
  Initializer kernel_initializer = {};
  std::string name = "basic_rnn_cell";
};
/// h' = activation([x, h] * kernel + bias), tanh by default (tf.nn.rnn_cell.BasicRNNCell).
/// Variables: kernel [inputs + units, units], bias.
class BasicRnnCell : public RnnCell {
 public:
  explicit BasicRnnCell(int64_t num_units, const BasicRnnCellOptions& options = {});
};

struct LstmCellOptions {
  /// The activation of the cell's input and output; tanh by default.
  Activation activation = {};
  /// Added to the forget gate, so that a new cell remembers.
  double forget_bias = 1;
  /// The gates see c, by diagonal weights w_f_diag, w_i_diag and w_o_diag.
  bool use_peepholes = false;
  /// c is clipped to [-cell_clip, cell_clip]; 0: not.
  double cell_clip = 0;
  /// The output, and h, are projected to so many columns by projection/kernel; 0: not.
  int64_t num_proj = 0;
  /// What is projected is clipped; 0: not.
  double proj_clip = 0;
  /// The initializer of all weights but the bias.
  Initializer initializer = {};
  /// tf.nn.rnn_cell.BasicLSTMCell is the same under the name basic_lstm_cell.
  std::string name = "lstm_cell";
};
/// Long short-term memory (tf.nn.rnn_cell.LSTMCell; Hochreiter and Schmidhuber 1997, Gers et al.
/// 1999; with peepholes and projection Sak et al. 2014). State: c [batch, units], h [batch, units
/// or num_proj]. Variables: kernel [inputs + columns of h, 4 * units], the gates in the order
/// input, candidate, forget, output; bias.
class LstmCell : public RnnCell {
 public:
  explicit LstmCell(int64_t num_units, const LstmCellOptions& options = {});
};

struct GruCellOptions {
  /// The activation of the candidate; tanh by default.
  Activation activation = {};
  Initializer kernel_initializer = {};
  /// By default ones for the gates, zeros for the candidate.
  Initializer bias_initializer = {};
  std::string name = "gru_cell";
};
/// Gated recurrent unit (tf.nn.rnn_cell.GRUCell; Cho et al. 2014). Variables: gates/kernel
/// [inputs + units, 2 * units], reset before update, gates/bias, candidate/kernel
/// [inputs + units, units], candidate/bias.
class GruCell : public RnnCell {
 public:
  explicit GruCell(int64_t num_units, const GruCellOptions& options = {});
};

/// Cells on top of each other, each of which gets the output of the one before
/// (tf.nn.rnn_cell.MultiRNNCell). The variables of cell i are in <name>/cell_i/<its name>.
class MultiRnnCell : public RnnCell {
 public:
  explicit MultiRnnCell(const std::vector<RnnCell>& cells,
                        const std::string& name = "multi_rnn_cell");
};

struct DropoutWrapperOptions {
  /// The probabilities that an element is kept: numbers in (0, 1], or scalars that the step knows.
  Input input_keep_prob = 1, output_keep_prob = 1, state_keep_prob = 1;
  /// What is dropped is drawn once for all steps of the sequence and all examples (Gal and
  /// Ghahramani 2016), instead of anew for each.
  bool variational_recurrent = false;
  /// In training only elements are dropped: a bool, or a bool scalar that the step knows.
  Input training = true;
  /// The seed of the draws for input, output and each state, which differ; see SetRandomSeed.
  int64_t seed = 0;
};
/// A cell with dropout of its input, its output, and its next state but for the c of an LSTM
/// (tf.nn.rnn_cell.DropoutWrapper). With the same seeds, the elements that TensorFlow drops, in
/// loops with parallel_iterations of 1. It has the scope of the cell.
class DropoutWrapper : public RnnCell {
 public:
  explicit DropoutWrapper(const RnnCell& cell, const DropoutWrapperOptions& options);
};

/// What a residual cell gives for the input and the output of the cell that it wraps, of the shape
/// of that output.
using ResidualFunction = std::function<Output(const Output& input, const Output& output)>;
/// A cell whose output is that of another plus the input (tf.nn.rnn_cell.ResidualWrapper; Wu et al.
/// 2016), or what `residual_fn` makes of both. Without one, a mistake when their shapes differ. It
/// has the scope of the cell.
class ResidualWrapper : public RnnCell {
 public:
  explicit ResidualWrapper(const RnnCell& cell, const ResidualFunction& residual_fn = {});
};

/// A cell whose variables and nodes request a device, "/device:GPU:0" or "/job:worker/task:1",
/// merged over what is entered around it, see DeviceScope (tf.nn.rnn_cell.DeviceWrapper). It has
/// the scope of the cell.
class DeviceWrapper : public RnnCell {
 public:
  DeviceWrapper(const RnnCell& cell, const std::string& device);
};

}  // namespace tenon
