// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "train/layers/rnn_cell.h"

// Cells over sequences (tf.nn.static_rnn, tf.nn.dynamic_rnn, tf.nn.bidirectional_dynamic_rnn). All
// have gradients.

namespace tenon {

struct RnnOptions {
  /// As many tensors as the cell's state has; zeros by default.
  std::vector<Output> initial_state = {};
  /// int32 or int64 [batch]: past the end of its sequence an example's outputs are zero, and its
  /// state is kept. By default all sequences have full length.
  Output sequence_length = {};
  /// Inputs and outputs are [time, batch, ...] instead of [batch, time, ...]; of DynamicRnn and
  /// BidirectionalDynamicRnn.
  bool time_major = false;
  /// At most this many steps of a loop run at once.
  int parallel_iterations = 32;
  /// The scope that the cell's variables are in, made unique; by default rnn, or bidirectional_rnn.
  std::string name = {};
  std::source_location location = std::source_location::current();
};

struct StaticRnnResult {
  /// One for each input [batch, output size].
  std::vector<Output> outputs;
  /// After the last step.
  std::vector<Output> state;
};
/// The cell over a list of inputs [batch, depth], one copy of its nodes for each
/// (tf.nn.static_rnn): for few steps, whose number the graph knows. An empty list is a mistake.
StaticRnnResult StaticRnn(const RnnCell& cell, const std::vector<Output>& inputs,
                          const RnnOptions& options = {});

struct RnnResult {
  /// [batch, time, output size], or [time, batch, output size].
  Output outputs;
  /// After the last step of each example.
  std::vector<Output> state;
};
/// The cell over sequences [batch, time, depth], in a while loop: their number and length are known
/// in the step only (tf.nn.dynamic_rnn). The loop ends with the longest sequence. Of floating point
/// inputs, whose rank and depth must be known; time 0 is an error of the step.
///
///   auto [outputs, state] = DynamicRnn(LstmCell(64), words, {.sequence_length = lengths});
RnnResult DynamicRnn(const RnnCell& cell, const Input& inputs, const RnnOptions& options = {});

struct BidirectionalRnnResult {
  RnnResult forward, backward;
};
/// One cell over the sequences from their beginning, another from their end, whose outputs are at
/// the places of their inputs (tf.nn.bidirectional_dynamic_rnn). Variables are in
/// <name>/fw and <name>/bw; the initial state is the first cell's, then the second's.
BidirectionalRnnResult BidirectionalDynamicRnn(const RnnCell& forward, const RnnCell& backward,
                                               const Input& inputs, RnnOptions options = {});

}  // namespace tenon
