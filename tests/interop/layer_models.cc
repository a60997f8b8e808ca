// SPDX-License-Identifier: Apache-2.0
// Networks of layers: layer_models FOLDER writes the graph of each, with a step of training, to
// FOLDER/<name>.pb. For layers_test.py, which builds the same with TensorFlow.
#include <cstdio>
#include <fstream>
#include <functional>
#include <map>

#include "core/proto/proto_io_graph.h"
#include "proto/graph.pb.h"
#include "tenon/tenon.h"

namespace tenon {
namespace {

using Values = std::vector<Output>;

Output X(std::initializer_list<int64_t> shape, const char* name = "x") {
  return Placeholder(DType::kFloat, PartialShape(shape), {.name = name});
}
Output Ids(std::initializer_list<int64_t> shape, const char* name = "ids") {
  return Placeholder(DType::kInt32, PartialShape(shape), {.name = name});
}
Output Flag() { return Placeholder(DType::kBool, Shape(), {.name = "training"}); }

/// What the graph minimises: how far the values are from 0.3, and the regularization losses.
Output LossOf(const Values& ys) {
  Output loss = Const(0.0f);
  for (const Output term : CurrentBuilding().graph->Collection("regularization_losses")) {
    loss = loss + term;
  }
  for (const Output& y : ys) loss = loss + Mean(Square(y - 0.3));
  return Identity(loss, {.name = "loss"});
}

/// A step of gradient descent of every trainable variable, and the updates that layers left.
void AddTraining(const Output& loss) {
  Graph& graph = *CurrentBuilding().graph;
  Values variables;
  for (const VariableEntry& v : graph.variables()) {
    if (v.trainable) variables.emplace_back(v.value);
  }
  const Values gradients = variables.empty() ? Values() : Gradients(loss, variables);
  Values updates = UpdateOps(), all = gradients;
  all.push_back(loss);
  {
    const ControlDependencies all_first(all);
    for (size_t i = 0; i < variables.size(); ++i) {
      const VariableEntry& v = *FindVariable(variables[i]);
      updates.emplace_back(ChangeVariable(v, "AssignSub", gradients[i] * 0.2));
    }
  }
  {
    const ControlDependencies after(updates);
    NoOp({.name = "train"});
  }
  GlobalVariablesInitializer();
}

Values DenseLayers() {
  const Output x = X({-1, 6}), y = X({-1, 6}, "y");
  const Dense shared(5, {.activation = Tanh, .kernel_regularizer = L2Regularizer(0.01)});
  const Output h = shared(x) * shared(y);
  return {Dense(4, {.activation = Sigmoid, .use_bias = false})(h),
          Dense(2, {.activation = Softplus,
                    .kernel_regularizer = L1L2Regularizer(0.01, 0.02),
                    .bias_regularizer = L1Regularizer(0.03),
                    .name = "out"})(h)};
}

Values DenseOverTime() { return {Dense(4, {.activation = Tanh})(X({-1, -1, 3}))}; }

Values Convolutions() {
  const Output x = X({-1, 9, 8, 3});
  Output h = Convolution2D(4, 3, {.strides = {2, 1}, .padding = "SAME", .activation = Elu})(x);
  h = Convolution2D(3, {3, 2}, {.dilation_rate = {1, 2}, .use_bias = false})(h);
  return {Dense(2)(Flatten(Relu(h)))};
}

Values Convolutions1D() {
  const Output h = Convolution1D(4, 3, {.padding = "SAME", .activation = Tanh})(X({-1, 9, 3}));
  return {Convolution1D(2, 2, {.dilation_rate = 2})(h), Convolution1D(2, 3, {.strides = 2})(h)};
}

Values Convolutions3D() {
  return {Convolution3D(2, {2, 3, 2}, {.activation = Tanh})(X({-1, 4, 5, 4, 2}))};
}

Values Transposed() {
  const Output x = X({-1, 4, 5, 3});
  return {Convolution2DTranspose(2, 3, {.strides = 2, .activation = Tanh})(x),
          Convolution2DTranspose(4, {2, 3}, {.strides = {3, 1}, .padding = "SAME"})(x)};
}

Values BySeparateChannels() {
  const Output x = X({-1, 6, 7, 3});
  return {DepthwiseConvolution2D(3, 2, {.activation = Tanh})(x),
          SeparableConvolution2D(4, {2, 3}, 2, {.strides = 2, .padding = "SAME"})(x)};
}

Values Poolings() {
  const Output x = Dense(3)(X({-1, 7, 6, 2}));
  const Output line = x[{{}, {}, 0}], solid = Reshape(x, {-1, 7, 3, 2, 3});
  Values ys{MaxPooling2D(x, 2),
            MaxPooling2D(x, {3, 2}, {.strides = {2, 1}, .padding = "SAME"}),
            AveragePooling2D(x, 3, {.strides = 2, .padding = "SAME"}),
            AveragePooling2D(x, {2, 1}),
            MaxPooling1D(line, 2),
            AveragePooling1D(line, 3, {.strides = 1}),
            MaxPooling3D(solid, {2, 3, 1}),
            AveragePooling3D(solid, 2, {.strides = 1}),
            GlobalAveragePooling(x),
            GlobalMaxPooling(x)};
  // Scaled, so that training does not make all of an image equal, of which any is the largest.
  for (Output& y : ys) y = y * 0.1;
  return ys;
}

Values BatchNormalized() {
  const Output x = X({-1, 4, 4, 3});
  Output h = Convolution2D(5, 3)(x);
  h = BatchNormalization({.momentum = 0.8})(h, true);
  h = Dense(4)(Flatten(Tanh(h)));
  return {BatchNormalization({.momentum = 0.9, .scale = false})(h, true)};
}

Values BatchNormalizedSometimes() {
  const Output training = Flag();
  Output h = Convolution2D(5, 3)(X({-1, 4, 4, 3}));
  h = BatchNormalization({.momentum = 0.7, .epsilon = 0.01})(h, training);
  h = Dense(4)(Flatten(Tanh(h)));
  return {BatchNormalization({.momentum = 0.6, .center = false})(h, training)};
}

Values BatchRenormalized() {
  Output h = Convolution2D(5, 3)(X({-1, 4, 4, 3}));
  h = BatchNormalization({.momentum = 0.8,
                          .renorm = true,
                          .renorm_clipping = {.rmin = 0.8, .rmax = 1.1, .dmax = 0.3},
                          .renorm_momentum = 0.7})(h, true);
  h = Dense(4)(Flatten(Tanh(h)));
  return {BatchNormalization({.momentum = 0.9, .scale = false, .renorm = true})(h, true)};
}

Values BatchRenormalizedSometimes() {
  const Output training = Flag(), widest = X({}, "widest");
  Output h = Convolution2D(5, 3)(X({-1, 4, 4, 3}));
  h = BatchNormalization({.axis = 1,
                          .momentum = 0.7,
                          .epsilon = 0.01,
                          .moving_variance_initializer = ConstantInitializer(0.5),
                          .renorm = true,
                          .renorm_clipping = {.rmax = widest, .dmax = widest},
                          .renorm_momentum = 0.6})(h, training);
  h = Dense(4)(Flatten(Tanh(h)));
  return {BatchNormalization({.momentum = 0.6, .center = false, .renorm = true})(h, training)};
}

Values LayerNormalized() {
  return {LayerNormalization()(Dense(5)(X({-1, 3, 4}))),
          LayerNormalization({.begin_axis = 1, .scale = false})(Dense(5)(X({-1, 3, 4}, "y")))};
}

Values DroppedOut() {
  SetRandomSeed(7);
  const Output h = Dense(8)(X({5, 6}));
  return {Dropout(h, 0.4, {.seed = 3}), Dropout(h, 0.2, {.training = Flag(), .seed = 4}),
          Dropout(h, 0.5, {.noise_shape = {5, 1}, .seed = 5})};
}

Values Embedded() {
  const Output ids = Ids({-1, 4});
  const PartitionedVariable mod("mod/w", {11, 3}, 3), div("div/w", {11, 3}, 3);
  return {Tanh(Embedding(11, 3)(ids)), Tanh(EmbeddingLookup(mod, ids)),
          Tanh(EmbeddingLookup(div, ids, {.partition_strategy = PartitionStrategy::kDiv}))};
}

/// With norms below and above the limits.
Values EmbeddedWithinNorm() {
  const Output ids = Ids({-1, 4});
  const SparseIds sparse{Placeholder(DType::kInt64, {-1, 2}, {.name = "indices"}),
                         Ids({-1}, "entries"), Const({5, 4}, {.dtype = DType::kInt64})};
  const Output weights = X({-1}, "weights");
  const PartitionedVariable mod("mod/w", {11, 3}, 3), vector("vector/w", {11}, 1);
  const Embedding table(11, 3,
                        {.max_norm = 0.6, .embeddings_initializer = GlorotUniformInitializer()});
  return {table(ids), EmbeddingLookup(mod, ids, {.max_norm = 0.5}),
          EmbeddingLookup(vector, ids, {.max_norm = 0.2}),
          EmbeddingLookupSparse(
              mod, sparse, {.combiner = Combiner::kSqrtn, .weights = weights, .max_norm = 0.4}),
          SafeEmbeddingLookupSparse(mod, sparse, {.max_norm = 0.3})};
}

Values EmbeddedSparse() {
  const SparseIds ids{Placeholder(DType::kInt64, {-1, 2}, {.name = "indices"}), Ids({-1})};
  const Output weights = X({-1}, "weights");
  const SparseIds some{ids.indices, ids.values - 2, Const({6, 4}, {.dtype = DType::kInt64})};
  const PartitionedVariable whole(
      Variable("whole/w", GlorotUniformInitializer()(Shape({11, 3}), DType::kFloat)));
  const PartitionedVariable parts("parts/w", {11, 3}, 3);
  Values ys;
  for (const Combiner combiner : {Combiner::kSum, Combiner::kMean, Combiner::kSqrtn}) {
    ys.push_back(EmbeddingLookupSparse(whole, ids, {.combiner = combiner}));
    ys.push_back(EmbeddingLookupSparse(parts, ids, {.combiner = combiner, .weights = weights}));
    ys.push_back(SafeEmbeddingLookupSparse(parts, some, {.combiner = combiner}));
    ys.push_back(SafeEmbeddingLookupSparse(
        parts, some, {.combiner = combiner, .weights = weights - 0.6, .default_id = 2}));
  }
  return ys;
}

Output Lengths() { return Ids({-1}, "lengths"); }

Values Of(const RnnResult& result) {
  Values values = result.state;
  values.insert(values.begin(), result.outputs);
  return values;
}

Values StaticBasicRnn() {
  const Output x = X({-1, 3, 4});
  const auto [outputs, state] =
      StaticRnn(BasicRnnCell(3), Unpack(x, 3, {.axis = 1}), {.sequence_length = Lengths()});
  return {outputs[0], outputs[1], outputs[2], state[0]};
}

Values StaticLstm() {
  const auto [outputs, state] =
      StaticRnn(LstmCell(3, {.name = "basic_lstm_cell"}), Unpack(X({2, 3, 4}), 3, {.axis = 1}));
  return {outputs[0], outputs[2], state[0], state[1]};
}

Values DynamicLstm() {
  return Of(DynamicRnn(LstmCell(3, {.activation = Softsign, .forget_bias = 0.5}), X({-1, -1, 4}),
                       {.sequence_length = Lengths()}));
}

Values PeepholeLstm() {
  const LstmCell cell(4,
                      {.use_peepholes = true, .cell_clip = 0.3, .num_proj = 3, .proj_clip = 0.1});
  return Of(DynamicRnn(cell, X({3, 5, 4})));
}

Values DynamicGru() {
  const Output x = X({-1, -1, 4});
  return Of(DynamicRnn(GruCell(3), x,
                       {.initial_state = {Dense(3, {.name = "begin"})(x[0])},
                        .sequence_length = Lengths(),
                        .time_major = true}));
}

Values SeveralLayers() {
  SetRandomSeed(5);
  const RnnCell kept = DropoutWrapper(GruCell(4), {.output_keep_prob = 1});
  return Of(DynamicRnn(MultiRnnCell({LstmCell(3), kept, BasicRnnCell(2)}), X({-1, 5, 4}),
                       {.sequence_length = Lengths()}));
}

Values WrappedCells() {
  const auto mean = [](const Output& x, const Output& y) { return (x + y) / 2; };
  const MultiRnnCell cells({ResidualWrapper(LstmCell(4)), ResidualWrapper(GruCell(4), mean),
                            DeviceWrapper(BasicRnnCell(2), "/device:CPU:0")});
  return Of(DynamicRnn(cells, X({-1, 5, 4}), {.sequence_length = Lengths()}));
}

Values DroppedOutCells() {
  SetRandomSeed(5);
  const MultiRnnCell within({LstmCell(4), GruCell(3)});
  const RnnCell cell = DropoutWrapper(within, {.input_keep_prob = 0.8,
                                               .output_keep_prob = X({}, "keep"),
                                               .state_keep_prob = 0.7,
                                               .seed = 3});
  return Of(DynamicRnn(cell, X({2, 5, 4}), {.parallel_iterations = 1}));
}

Values VariationalCells() {
  SetRandomSeed(5);
  const DropoutWrapperOptions all{.input_keep_prob = 0.6,
                                  .output_keep_prob = X({}, "keep"),
                                  .state_keep_prob = 0.7,
                                  .variational_recurrent = true,
                                  .seed = 9};
  const RnnCell within = DropoutWrapper(
      GruCell(3), {.output_keep_prob = 0.5, .variational_recurrent = true, .seed = 4});
  return Of(DynamicRnn(DropoutWrapper(MultiRnnCell({LstmCell(4), within}), all), X({-1, 5, 4}),
                       {.sequence_length = Lengths()}));
}

Values BothDirections() {
  const auto [forward, backward] = BidirectionalDynamicRnn(LstmCell(3), GruCell(2), X({-1, -1, 4}),
                                                           {.sequence_length = Lengths()});
  Values ys = Of(forward), more = Of(backward);
  ys.insert(ys.end(), more.begin(), more.end());
  return ys;
}

Values MultiHead() {
  const Output x = X({-1, 4, 6}), y = X({-1, 5, 3}, "y");
  const Output mask = Placeholder(DType::kBool, {-1, 4, 5}, {.name = "mask"});
  const AttentionResult a = MultiHeadAttention(2, 3, {.value_dim = 4})(x, y, y, {.mask = mask});
  return {a.output, a.weights,
          MultiHeadAttention(3, 2, {.output_dim = 5, .use_bias = false})(x, x, x).output};
}

Values Attentions() {
  const Output x = Dense(3)(X({-1, 4, 6})), y = Dense(3)(X({-1, 5, 3}, "y"));
  const AttentionResult a = AdditiveAttention()(x, y, y);
  return {a.output, a.weights, ScaledDotProductAttention(x, y, y).output};
}

/// Layers that are first called within branches and a loop.
Values InBranchesAndLoops() {
  const Output x = X({-1, 4}), training = Flag();
  const auto dense = [](const Output& in) { return Dense(4, {.activation = Tanh})(in); };
  Output h = Cond(
      training, [&] { return dense(x); },
      [&] { return Dense(4, {.use_bias = false, .name = "other"})(x); });
  {
    const NameScope tower("tower");
    h = Case({{training, [&] { return dense(h); }}}, [&] {
      return Cond(
          Mean(x) > 0, [&] { return dense(h); },
          [&] { return h * MakeWeight("gain", {4}, DType::kFloat); });
    });
  }
  h = WhileLoop(
      {0, h}, [](const Values& v) { return v[0] < 3; },
      [&](const Values& v) {
        return Values{v[0] + 1, dense(v[1])};
      })[1];
  return {h, dense(h)};
}

/// No training: the values that variables begin with.
Values Initialized() {
  SetRandomSeed(11);
  const auto made = [](const char* name, const std::vector<int64_t>& shape,
                       const Initializer& initializer) {
    MakeWeight(name, shape, DType::kFloat, {.initializer = initializer, .trainable = false});
  };
  made("zeros", {2, 3}, ZerosInitializer());
  made("ones", {2, 3}, OnesInitializer());
  made("constant", {2, 3}, ConstantInitializer(2.5));
  made("elements", {2, 2}, ConstantInitializer({1, 2, 3, 4}));
  made("random_uniform", {3, 4}, RandomUniformInitializer(-2, 3, {.seed = 1}));
  made("random_normal", {3, 4}, RandomNormalInitializer(1, 2, {.seed = 2}));
  made("truncated_normal", {3, 4}, TruncatedNormalInitializer(1, 2, {.seed = 3}));
  made("glorot_uniform", {3, 4}, GlorotUniformInitializer({.seed = 4}));
  made("glorot_normal", {2, 3, 4, 5}, GlorotNormalInitializer({.seed = 5}));
  made("he_uniform", {3, 4}, HeUniformInitializer({.seed = 6}));
  made("he_normal", {3, 2, 4}, HeNormalInitializer({.seed = 7}));
  made("lecun_uniform", {3, 4}, LecunUniformInitializer({.seed = 8}));
  made("lecun_normal", {7}, LecunNormalInitializer({.seed = 9}));
  made("orthogonal", {5, 3}, OrthogonalInitializer({.seed = 10}));
  made("orthogonal_wide", {2, 2, 6}, OrthogonalInitializer({.gain = 1.5, .seed = 11}));
  made("identity", {3, 5}, IdentityInitializer(2));
  made("variance_scaling", {3, 4},
       VarianceScalingInitializer(
           {.scale = 3,
            .mode = VarianceScalingOptions::Mode::kFanOut,
            .distribution = VarianceScalingOptions::Distribution::kUntruncatedNormal,
            .seed = 12}));
  PartitionedVariable("parts", {7, 3}, 2,
                      {.initializer = GlorotUniformInitializer({.seed = 13}), .trainable = false});
  return {};
}

const std::map<std::string, std::function<Values()>>& Models() {
  static const std::map<std::string, std::function<Values()>> models = {
      {"dense_layers", DenseLayers},
      {"dense_over_time", DenseOverTime},
      {"convolutions", Convolutions},
      {"convolutions_1d", Convolutions1D},
      {"convolutions_3d", Convolutions3D},
      {"transposed", Transposed},
      {"by_separate_channels", BySeparateChannels},
      {"poolings", Poolings},
      {"batch_normalized", BatchNormalized},
      {"batch_normalized_sometimes", BatchNormalizedSometimes},
      {"batch_renormalized", BatchRenormalized},
      {"batch_renormalized_sometimes", BatchRenormalizedSometimes},
      {"layer_normalized", LayerNormalized},
      {"dropped_out", DroppedOut},
      {"embedded", Embedded},
      {"embedded_within_norm", EmbeddedWithinNorm},
      {"embedded_sparse", EmbeddedSparse},
      {"static_basic_rnn", StaticBasicRnn},
      {"static_lstm", StaticLstm},
      {"dynamic_lstm", DynamicLstm},
      {"peephole_lstm", PeepholeLstm},
      {"dynamic_gru", DynamicGru},
      {"several_layers", SeveralLayers},
      {"wrapped_cells", WrappedCells},
      {"dropped_out_cells", DroppedOutCells},
      {"variational_cells", VariationalCells},
      {"both_directions", BothDirections},
      {"in_branches_and_loops", InBranchesAndLoops},
      {"multi_head", MultiHead},
      {"attentions", Attentions},
      {"initialized", Initialized},
  };
  return models;
}

Status WriteModel(const std::string& path, const std::function<Values()>& build) {
  Graph graph(AllOps());
  {
    const GraphBuilding building(graph);
    AddTraining(LossOf(build()));
    TENON_RETURN_IF_ERROR(building.status());
  }
  GraphDef proto;
  TENON_RETURN_IF_ERROR(GraphToProto(graph, &proto));
  std::ofstream out(path, std::ios::binary);
  return proto.SerializeToOstream(&out) ? OkStatus() : DataLoss("cannot write ", path);
}

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: layer_models FOLDER\n");
    return 2;
  }
  int failures = 0;
  for (const auto& [name, build] : tenon::Models()) {
    const std::string path = std::string(argv[1]) + "/" + name + ".pb";
    const tenon::Status status = tenon::WriteModel(path, build);
    if (status.ok()) continue;
    std::fprintf(stderr, "%s: %s\n", name.c_str(), std::string(tenon::Message(status)).c_str());
    ++failures;
  }
  return failures == 0 ? 0 : 1;
}
