// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "core/gradient/gradients.h"
#include "ops/array/constants.h"
#include "ops/register.h"
#include "tests/testing/graph_runner.h"
#include "tests/testing/op_runner.h"

// Checks the gradient of every differentiable op against finite differences, in double precision.

namespace tenon::testing {
namespace {

constexpr double kStep = 1e-5;
constexpr double kTolerance = 2e-6;
constexpr int64_t kMaxElements = 24;

/// Outputs whose gradient is by definition, as TensorFlow has it, not the derivative.
const std::set<std::pair<std::string, int>>& NotDerivatives() {
  static const std::set<std::pair<std::string, int>> outputs = {
      // The second output of these is the gradient of the first, and its own gradient leaves out
      // what flows to the labels.
      {"SoftmaxCrossEntropyWithLogits", 1},
      {"SparseSoftmaxCrossEntropyWithLogits", 1},
      // Constants as far as gradients go.
      {"Sign", 0},
      // Taken back by the inverse transform.
      {"ImageProjectiveTransformV2", 0},
      {"ImageProjectiveTransformV3", 0},
  };
  return outputs;
}

/// Ops whose gradient no example can show, and where it is checked.
const std::map<std::string, std::string>& CheckedElsewhere() {
  static const std::map<std::string, std::string> ops = {
      {"Sign", "its gradient is zero by definition: elementwise_values_test.cc"},
      {"Angle", "of complex numbers: number_ops_test.cc"},
      {"Complex", "of complex numbers: number_ops_test.cc"},
      {"ComplexAbs", "of complex numbers: number_ops_test.cc"},
      {"Imag", "of complex numbers: number_ops_test.cc"},
      {"Real", "of complex numbers: number_ops_test.cc"},
      {"Conj", "of complex numbers: elementwise_values_test.cc"},
      {"HorovodAllgather", "with ranks: collective_ops_test.cc"},
      {"HorovodAllreduce", "with ranks: collective_ops_test.cc"},
      {"HorovodBroadcast", "with ranks: collective_ops_test.cc"},
      {"BlockLSTM", "not in double: recurrent_test.cc"},
      {"BlockLSTMV2", "not in double: recurrent_test.cc"},
      {"CTCLoss", "with parts in float: recurrent_test.cc"},
      {"FakeQuantWithMinMaxArgs", "not the derivative: quantize_test.cc"},
      {"FakeQuantWithMinMaxVars", "not the derivative: quantize_test.cc"},
      {"FakeQuantWithMinMaxVarsPerChannel", "not the derivative: quantize_test.cc"},
      {"QuantizeAndDequantize", "not the derivative: quantize_test.cc"},
      {"QuantizeAndDequantizeV2", "not the derivative: quantize_test.cc"},
      {"QuantizeAndDequantizeV3", "not the derivative: quantize_test.cc"},
      {"QuantizeAndDequantizeV4", "not the derivative: quantize_test.cc"},
      {"RandomGamma", "draws anew each time: random_draws_test.cc"},
      {"StatelessRandomGammaV2", "jumps where it rejects: random_draws_test.cc"},
      {"StatelessRandomGammaV3", "jumps where it rejects: random_draws_test.cc"},
      {"FusedBatchNorm", "not in double: batch_norm_test.cc"},
      {"FusedBatchNormV2", "not in double: batch_norm_test.cc"},
      {"FusedBatchNormV3", "not in double: batch_norm_test.cc"},
      {"FusedBatchNormGrad", "not in double: batch_norm_test.cc"},
      {"FusedBatchNormGradV2", "not in double: batch_norm_test.cc"},
      {"FusedBatchNormGradV3", "not in double: batch_norm_test.cc"},
      {"IdentityN", "array_cases_test.cc"},
      {"LRN", "not in double: lrn_test.cc"},
      {"MaxPool3D", "not in double: pooling_test.cc"},
      {"MaxPool3DGrad", "not in double: pooling_test.cc"},
      {"MaxPool3DGradGrad", "not in double: pooling_test.cc"},
      {"PreventGradient", "its gradient is an error"},
      {"Merge", "control_flow_ops_test.cc"},
      {"Switch", "control_flow_ops_test.cc"},
      {"RefMerge", "control_flow_ops_test.cc"},
      {"RefSwitch", "control_flow_ops_test.cc"},
      {"RefIdentity", "of references; as Identity"},
      {"ResizeBilinear", "of floats only: image_ops_test.cc"},
      {"ResizeBicubic", "of floats only: picture_ops_test.cc"},
      {"ScaleAndTranslate", "of floats only: picture_ops_test.cc"},
      {"CropAndResize", "of floats only: picture_ops_test.cc"},
      {"ImageProjectiveTransformV2", "not the derivative: picture_ops_test.cc"},
      {"ImageProjectiveTransformV3", "not the derivative: picture_ops_test.cc"},
      {"RaggedTensorFromVariant", "ragged_ops_test.cc"},
      {"RaggedTensorToVariant", "ragged_ops_test.cc"},
      {"SparseMatMul", "of floats only: sparse_ops_test.cc"},
      {"SparseSparseMaximum", "its gradient is an error"},
      {"SparseSparseMinimum", "its gradient is an error"},
      {"ReadVariableOp", "resource_variable_ops_test.cc"},
      {"ResourceGather", "resource_variable_ops_test.cc"},
      {"ResourceGatherNd", "resource_variable_ops_test.cc"},
      {"Eig", "of complex eigenvalues: linalg_ops_test.cc"},
      {"FFT", "of complex numbers: fft_test.cc"},
      {"FFT2D", "of complex numbers: fft_test.cc"},
      {"FFT3D", "of complex numbers: fft_test.cc"},
      {"RFFT", "of complex numbers: fft_test.cc"},
      {"RFFT2D", "of complex numbers: fft_test.cc"},
      {"RFFT3D", "of complex numbers: fft_test.cc"},
      {"IFFT", "of complex numbers: fft_test.cc"},
      {"IFFT2D", "of complex numbers: fft_test.cc"},
      {"IFFT3D", "of complex numbers: fft_test.cc"},
      {"IRFFT", "of complex numbers: fft_test.cc"},
      {"IRFFT2D", "of complex numbers: fft_test.cc"},
      {"IRFFT3D", "of complex numbers: fft_test.cc"},
      {"TensorArrayConcatV3", "tensor_array_ops_test.cc"},
      {"TensorArrayGatherV3", "tensor_array_ops_test.cc"},
      {"TensorArrayReadV3", "tensor_array_ops_test.cc"},
      {"TensorArrayScatterV3", "tensor_array_ops_test.cc"},
      {"TensorArraySplitV3", "tensor_array_ops_test.cc"},
      {"TensorArrayWriteV3", "tensor_array_ops_test.cc"},
      {"TensorListConcat", "tensor_list_ops_test.cc"},
      {"TensorListConcatV2", "tensor_list_ops_test.cc"},
      {"TensorListFromTensor", "tensor_list_ops_test.cc"},
      {"TensorListGather", "tensor_list_ops_test.cc"},
      {"TensorListGetItem", "tensor_list_ops_test.cc"},
      {"TensorListPopBack", "tensor_list_ops_test.cc"},
      {"TensorListPushBack", "tensor_list_ops_test.cc"},
      {"TensorListResize", "tensor_list_ops_test.cc"},
      {"TensorListScatter", "tensor_list_ops_test.cc"},
      {"TensorListScatterIntoExistingList", "tensor_list_ops_test.cc"},
      {"TensorListScatterV2", "tensor_list_ops_test.cc"},
      {"TensorListSetItem", "tensor_list_ops_test.cc"},
      {"TensorListSplit", "tensor_list_ops_test.cc"},
      {"TensorListStack", "tensor_list_ops_test.cc"},
  };
  return ops;
}

/// Ops whose gradient is known only when some inputs, or their shapes, are: an error says so
/// otherwise.
const std::set<std::string>& NeedsConstants() {
  static const std::set<std::string> ops = {
      "GatherV2",  // the axis
      "MatrixSolveLs",
      "BatchMatrixSolveLs",  // which size of the matrix is the larger one
      "Qr",
      "Svd",
      "BatchSvd",
  };
  return ops;
}

/// One op under test: its inputs as nodes that can be fed, and what comes out.
struct Case {
  const OpRegistration* op;
  std::vector<Tensor> values;
  AttributeMap attrs;
  bool hidden;  // shapes unknown while the graph is built
  Graph graph{AllOps()};
  GraphBuilding building{graph};
  std::vector<Output> inputs = {};
  std::vector<Output> outputs = {};
};

/// Builds the node; an error when its attributes are such that it does not take doubles.
Status Build(Case& c) {
  InferAttributes(c.op->schema, c.values, &c.attrs);
  std::vector<Endpoint> endpoints;
  for (const Tensor& value : c.values) {
    NodeBuilder builder(c.hidden ? "Placeholder" : "Const");
    builder.Attr("dtype", value.dtype());
    if (c.hidden) {
      builder.Attr("shape", PartialShape());
    } else {
      builder.Attr("value", value);
    }
    c.inputs.push_back(builder.Output());
    endpoints.push_back(c.inputs.back());
  }
  TENON_RETURN_IF_ERROR(c.graph.error());
  TENON_ASSIGN_OR_RETURN(Node * node, c.graph.AddNode("op", c.op->schema.name, c.attrs, endpoints));
  for (int i = 0; i < node->num_outputs(); ++i) c.outputs.emplace_back(node, i);
  return OkStatus();
}

double Dot(const Tensor& a, const Tensor& b) {
  double sum = 0;
  for (int64_t i = 0; i < a.num_elements(); ++i) sum += a.data<double>()[i] * b.data<double>()[i];
  return sum;
}

GraphRunner::Feeds FeedsOf(const Case& c) {
  GraphRunner::Feeds feeds;
  for (size_t i = 0; i < c.inputs.size(); ++i) feeds.emplace_back(c.inputs[i], c.values[i]);
  return feeds;
}

/// d(sum(weights * output)) / d(input element) by central differences.
StatusOr<double> Difference(const Case& c, GraphRunner& runner, Output output,
                            const Tensor& weights, size_t input, int64_t element) {
  double sums[2];
  for (const int side : {0, 1}) {
    GraphRunner::Feeds feeds = FeedsOf(c);
    feeds[input].second = c.values[input].Copy().value();
    feeds[input].second.data<double>()[element] += side == 0 ? kStep : -kStep;
    TENON_ASSIGN_OR_RETURN(const std::vector<Tensor> y, runner.Run({output}, feeds));
    sums[side] = Dot(weights, y[0]);
  }
  return (sums[0] - sums[1]) / (2 * kStep);
}

/// Compares the gradient of one output with differences; gives how many elements it compared.
void CheckOutput(Case& c, int index, int* compared) {
  const Output output = c.outputs[index];
  GraphRunner forward(c.graph);
  const auto y = forward.Run({output}, FeedsOf(c));
  ASSERT_TRUE(y.ok()) << y.status();
  const Tensor weights = Sample(DType::kDouble, (*y)[0].shape(), 0.5, 1.5, 99);
  std::vector<Output> xs;
  std::vector<size_t> which;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    if (c.values[i].dtype() != DType::kDouble) continue;
    xs.push_back(c.inputs[i]);
    which.push_back(i);
  }
  if (xs.empty()) return;
  const std::vector<Output> grads =
      Gradients(output, xs, {.grad_ys = {Const(weights)}, .allow_unconnected = true});
  ASSERT_TRUE(c.graph.error().ok()) << c.graph.error();
  GraphRunner runner(c.graph);
  for (size_t k = 0; k < grads.size(); ++k) {
    if (!grads[k].exists()) continue;
    const Tensor& x = c.values[which[k]];
    const auto dx = runner.Run({grads[k]}, FeedsOf(c));
    ASSERT_TRUE(dx.ok()) << dx.status();
    ASSERT_EQ((*dx)[0].shape().ToString(), x.shape().ToString())
        << "the gradient of input " << which[k];
    ASSERT_EQ((*dx)[0].dtype(), DType::kDouble);
    const int64_t step = 1 + x.num_elements() / kMaxElements;
    for (int64_t e = 0; e < x.num_elements(); e += step) {
      const auto expected = Difference(c, forward, output, weights, which[k], e);
      ASSERT_TRUE(expected.ok()) << expected.status();
      EXPECT_NEAR((*dx)[0].data<double>()[e], *expected, kTolerance * (1 + std::fabs(*expected)))
          << "input " << which[k] << " element " << e;
      ++*compared;
    }
  }
}

bool HasDouble(const AttributeMap& attrs) {
  for (const auto& [name, value] : attrs) {
    const DType* t = value.get_if<DType>();
    if (t != nullptr && *t == DType::kDouble) return true;
  }
  return false;
}

/// The first choice of dtypes that makes the op compute in double, or nothing. An attribute that
/// admits any dtype has no choices: what the example leaves open of these is double.
std::optional<AttributeMap> DoubleChoice(const OpRegistration& op, const OpExample& example) {
  const std::vector<AttributeMap> choices = TypeChoices(op, example);
  for (const AttributeMap& c : choices) {
    if (HasDouble(c)) return c;
  }
  AttributeMap attrs = choices[0];
  for (const AttrSchema& a : op.schema.attrs) {
    if (a.kind != "type" || !a.allowed_types.empty() || example.attrs.Find(a.name)) continue;
    AttributeMap doubled = attrs;
    doubled.Set(a.name, DType::kDouble);
    // A fixed value of the example may say otherwise.
    Case probe{&op, SampleInputs(op, example, doubled, 17), doubled, false};
    if (Build(probe).ok()) attrs = doubled;
  }
  if (HasDouble(attrs)) return attrs;
  return std::nullopt;
}

void CheckExample(const OpRegistration& op, const OpExample& example, bool hidden, int* compared) {
  const std::optional<AttributeMap> attrs = DoubleChoice(op, example);
  if (!attrs) return;
  const std::vector<Tensor> values = SampleInputs(op, example, *attrs, 17);
  const int outputs = [&] {
    Case probe{&op, values, *attrs, hidden};
    const Status status = Build(probe);
    EXPECT_TRUE(status.ok()) << status;
    return status.ok() ? static_cast<int>(probe.outputs.size()) : 0;
  }();
  for (int i = 0; i < outputs; ++i) {
    if (NotDerivatives().contains({op.schema.name, i})) continue;
    Case c{&op, values, *attrs, hidden};
    if (!Build(c).ok() || c.outputs[i].dtype() != DType::kDouble) continue;
    SCOPED_TRACE(StrCat("output ", i));
    CheckOutput(c, i, compared);
  }
}

TEST(Gradient, OfEveryDifferentiableOpIsTheDerivative) {
  for (const OpRegistration* op : AllOps().All()) {
    if (!op->gradient) continue;
    int compared = 0;
    for (size_t i = 0; i < op->examples.size(); ++i) {
      for (const bool hidden : {false, true}) {
        if (hidden && NeedsConstants().contains(op->schema.name)) continue;
        SCOPED_TRACE(StrCat(op->schema.name, " example ", i, hidden ? " of unknown shapes" : ""));
        CheckExample(*op, op->examples[i], hidden, &compared);
      }
    }
    const bool elsewhere = CheckedElsewhere().contains(op->schema.name);
    EXPECT_NE(compared > 0, elsewhere)
        << op->schema.name << (elsewhere ? " is checked here too" : " has no example in double");
  }
}

}  // namespace
}  // namespace tenon::testing
