// SPDX-License-Identifier: Apache-2.0
//
// Small programs of many ops, on the GPU and on the CPU: networks that train, and state that no op
// has by itself.
#include <cmath>
#include <functional>
#include <tuple>

#include "core/gradient/gradients.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/control_flow/flow.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/nn/nn_ops.h"
#include "ops/random/random_ops.h"
#include "ops/register.h"
#include "ops/state/state_ops.h"
#include "ops/tensor_array/tensor_array_ops.h"
#include "ops/tensor_list/tensor_list_ops.h"
#include "ops/training/training_ops.h"
#include "tests/cuda/gpu_test.h"
#include "tests/cuda/op_case.h"
#include "tests/testing/op_runner.h"
#include "train/variables.h"

namespace tenon::testing {
namespace {

/// What a program fetches in each of its steps.
struct Program {
  std::vector<Output> fetches;
  std::vector<Output> targets;
  int steps = 1;
};
using BuildProgram = std::function<Program()>;

StatusOr<std::vector<std::vector<Tensor>>> RunProgram(const BuildProgram& build, bool on_gpu) {
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  SetRandomSeed(3);
  const DeviceScope on(on_gpu ? kGpuName : kCpuName);
  const Program program = build();
  Node* const init = GlobalVariablesInitializer();
  TENON_RETURN_IF_ERROR(graph.error());
  TENON_ASSIGN_OR_RETURN(const auto session, on_gpu ? GpuSession(graph) : CpuSession(graph));
  TENON_RETURN_IF_ERROR(session->Run({}, {}, {init}).status());
  std::vector<std::vector<Tensor>> results;
  for (int i = 0; i < program.steps; ++i) {
    TENON_ASSIGN_OR_RETURN(results.emplace_back(),
                           session->Run({}, program.fetches, program.targets));
  }
  return results;
}

/// All steps give what they give on the CPU.
void CompareProgram(const std::string& name, Closeness closeness, const BuildProgram& build) {
  OpRow row(name);
  const auto wanted = RunProgram(build, false), found = RunProgram(build, true);
  if (!wanted.ok()) return row.Fail(StrCat("on the CPU: ", wanted.status().ToString()));
  if (!found.ok()) return row.Fail(found.status().ToString());
  for (size_t i = 0; i < wanted->size(); ++i) {
    const Comparison c = Compare((*found)[i], (*wanted)[i], closeness);
    if (!c.difference.empty()) return row.Fail(StrCat("step ", i, ": ", c.difference));
    row.AddCase(DType::kFloat, c.error);
  }
}

/// The loss, which a program fetches alone, falls as on the CPU: its roundings grow with the steps.
void CompareTraining(const std::string& name, const BuildProgram& build) {
  OpRow row(name);
  const auto wanted = RunProgram(build, false), found = RunProgram(build, true);
  if (!wanted.ok()) return row.Fail(StrCat("on the CPU: ", wanted.status().ToString()));
  if (!found.ok()) return row.Fail(found.status().ToString());
  const auto loss = [](const std::vector<Tensor>& step) { return step[0].scalar<float>(); };
  const float first = loss(wanted->front()), last = loss(wanted->back());
  const float gpu_first = loss(found->front()), gpu_last = loss(found->back());
  if (!(last < first / 3)) row.Fail(StrCat("the CPU's loss goes from ", first, " to ", last));
  if (!(std::fabs(gpu_first - first) < 1e-4f * first)) {
    row.Fail(StrCat("the first loss: found ", gpu_first, ", wanted ", first));
  }
  if (!(gpu_last < first / 3) || !(std::fabs(gpu_last - last) < 0.1f * first)) {
    row.Fail(StrCat("the last loss: found ", gpu_last, ", wanted about ", last, " of ", first));
  }
  row.AddCase(DType::kFloat, std::fabs(gpu_last - last) / first);
}

/// An update of every trainable variable with momentum.
std::vector<Output> TrainWithMomentum(const Output& loss, float rate) {
  std::vector<Output> variables, updates;
  const std::vector<VariableEntry> trained = CurrentBuilding().graph->variables();
  for (const VariableEntry& v : trained) {
    if (v.trainable) variables.push_back(Output(v.value, 0));
  }
  const std::vector<Output> gradients = Gradients({loss}, variables);
  if (gradients.size() != variables.size()) return {};  // after a mistake
  size_t i = 0;
  for (const VariableEntry& v : trained) {
    if (!v.trainable) continue;
    const Variable momentum(StrCat("momentum", i), Zeros(Output(v.value, 0).shape().ToShape()),
                            {.trainable = false});
    updates.push_back(ApplyMomentum(Output(v.ref, 0), momentum.ref(), rate, gradients[i++], 0.9f));
  }
  return updates;
}

/// Images of four kinds, which differ by where they are bright, with noise.
Output Images(Output* labels) {
  constexpr int64_t kImages = 32, kSize = 12;
  Tensor images = Sample(DType::kFloat, {kImages, kSize, kSize, 1}, 0, 0.5, 5);
  Tensor kinds(DType::kInt32, {kImages});
  for (int64_t n = 0; n < kImages; ++n) {
    kinds.data<int32_t>()[n] = static_cast<int32_t>(n % 4);
    for (int64_t y = 0; y < kSize / 2; ++y) {
      for (int64_t x = 0; x < kSize / 2; ++x) {
        const int64_t row = y + n % 4 / 2 * kSize / 2, column = x + n % 2 * kSize / 2;
        images.data<float>()[(n * kSize + row) * kSize + column] += 0.5f;
      }
    }
  }
  *labels = Const(kinds);
  return Const(images);
}

class GpuProgramsTest : public GpuTest {};

TEST_F(GpuProgramsTest, AConvolutionalNetworkTrains) {
  CompareTraining("a convolutional network", [] {
    Output labels;
    const Output images = Images(&labels);
    const auto weights = [](const std::string& name, const Shape& shape, double scale) {
      return Variable(name, Sample(DType::kFloat, shape, -scale, scale, shape.num_elements()));
    };
    const Variable w1 = weights("w1", {3, 3, 1, 8}, 0.5), w2 = weights("w2", {288, 4}, 0.1);
    const Variable b1("b1", Zeros({8})), scale("scale", Fill({8}, 1.0f)),
        shift("shift", Zeros({8}));
    const Output none = Const(Tensor::Zeros(DType::kFloat, {0}));
    const auto normal = FusedBatchNormV3(BiasAdd(Conv2D(images, w1, {1, 1, 1, 1}, "SAME"), b1),
                                         scale, shift, none, none);
    const Output pooled = MaxPool(Relu(normal.y), {1, 2, 2, 1}, {1, 2, 2, 1}, "VALID");
    const Output logits = MatMul(Reshape(pooled, {-1, 288}), w2);
    const Output loss = Mean(SparseSoftmaxCrossEntropyWithLogits(logits, labels).loss);
    return Program{{loss}, TrainWithMomentum(loss, 0.02f), 60};
  });
}

TEST_F(GpuProgramsTest, ARecurrentNetworkTrains) {
  CompareTraining("a recurrent network in a loop", [] {
    // The sum of the inputs, of which each turn of the loop sees one.
    const Output inputs = Const(Sample(DType::kFloat, {6, 16, 1}, -1, 1, 3));
    const Variable w("w", Sample(DType::kFloat, {9, 8}, -0.4, 0.4, 4));
    const Variable out("out", Sample(DType::kFloat, {8, 1}, -0.5, 0.5, 5));
    const auto after = WhileLoop(
        {0, Tensor::Zeros(DType::kFloat, {16, 8})},
        [](const std::vector<Output>& v) { return v[0] < 6; },
        [&](const std::vector<Output>& v) -> std::vector<Output> {
          return {v[0] + 1, Tanh(MatMul(Concat(1, {v[1], Gather(inputs, v[0])}), w))};
        });
    const Output loss = Mean(Square(MatMul(after[1], out) - Sum(inputs, {0})));
    return Program{{loss}, TrainWithMomentum(loss, 0.03f), 80};
  });
}

TEST_F(GpuProgramsTest, TensorArraysAndListsKeepTheirElements) {
  CompareProgram("tensor arrays", Closeness::kSame, [] {
    const Output values = Const(Sample(DType::kFloat, {6, 5}, -2, 2, 3));
    const auto array = TensorArrayV3(8, DType::kFloat, {}, {.dynamic_size = true});
    Output flow = TensorArrayScatterV3(array.handle, {4, 0, 1, 5, 3, 2}, values, array.flow);
    flow = TensorArrayWriteV3(array.handle, 6, Gather(values, 3), flow);
    flow = TensorArrayWriteV3(array.handle, 7, Gather(values, 2), flow);
    const auto parts = TensorArrayV3(3, DType::kFloat, {}, {.identical_element_shapes = false});
    const Output split = TensorArraySplitV3(parts.handle, values,
                                            Const(Tensor::Vector<int64_t>({2, 0, 4})), parts.flow);
    return Program{{TensorArrayGatherV3(array.handle, {7, 0, 6, 3}, flow, DType::kFloat),
                    TensorArrayReadV3(array.handle, 5, flow, DType::kFloat),
                    TensorArrayConcatV3(parts.handle, split, DType::kFloat).value},
                   {},
                   2};
  });
  CompareProgram("tensor lists", Closeness::kSame, [] {
    const Output values = Const(Sample(DType::kFloat, {4, 3}, -2, 2, 3));
    Output list = TensorListFromTensor(values, Const({3}));
    list = TensorListSetItem(list, 2, Gather(values, 0));
    return Program{{TensorListStack(list, Const({3}), DType::kFloat),
                    TensorListGetItem(list, 1, Const({3}), DType::kFloat)},
                   {},
                   2};
  });
}

TEST_F(GpuProgramsTest, ManyArraysAreJoined) {
  CompareProgram("many arrays joined", Closeness::kSame, [] {
    // More than a kernel takes at once, some of them empty, in rows whose lengths fit nothing.
    std::vector<Output> columns, rows, equal;
    for (int i = 0; i < 150; ++i) {
      columns.push_back(Const(Sample(DType::kFloat, {3, i % 4}, -2, 2, i)));
      rows.push_back(Const(Sample(DType::kFloat, {1 + i % 3, 4}, -2, 2, i)));
      equal.push_back(Const(Sample(DType::kHalf, {2, 3}, -2, 2, i)));
    }
    return Program{
        {Concat(1, columns), Concat(0, rows), Pack(equal), Pack(equal, {.axis = 2})}, {}, 2};
  });
}

TEST_F(GpuProgramsTest, TheTopOfRowsIsInTheCpusOrder) {
  // Rows of a warp and less, of many blocks, with ties at the threshold, and more than is selected.
  for (const auto& [rows, n, k] : std::vector<std::tuple<int, int, int>>{{3, 7, 7},
                                                                         {5, 40, 1},
                                                                         {64, 3000, 5},
                                                                         {7, 5000, 100},
                                                                         {2, 70000, 1000},
                                                                         {2, 9000, 2500}}) {
    CompareProgram(StrCat("the top ", k, " of ", rows, " x ", n), Closeness::kSame, [=] {
      const Output few = Const(Sample(DType::kInt32, {rows, n}, -9, 9, n));
      const Output many = Const(Sample(DType::kFloat, {rows, n}, -2, 2, n));
      std::vector<Output> fetches;
      for (const Output& in : {few, many, Cast(few, DType::kHalf), Cast(many, DType::kDouble)}) {
        const auto top = TopKV2(in, k);
        fetches.insert(fetches.end(), {top.values, top.indices});
      }
      return Program{fetches, {}, 1};
    });
  }
}

TEST_F(GpuProgramsTest, DistinctNumbersAreInTheOrderInWhichTheyCome) {
  for (const int64_t n : {1, 33, 5000, 300000}) {
    CompareProgram(StrCat("distinct among ", n), Closeness::kSame, [=] {
      const Output few = Const(Sample(DType::kInt32, {n}, -40, 40, n));
      const Output many = Const(Sample(DType::kInt64, {n}, -1e6, 1e6, n));
      const auto of_few = UniqueWithCounts(few), of_many = UniqueWithCounts(many);
      const auto bytes = Unique(Cast(few, DType::kInt8), {.out_idx = DType::kInt64});
      return Program{{of_few.y, of_few.idx, of_few.count, of_many.y, of_many.idx, of_many.count,
                      bytes.y, bytes.idx},
                     {},
                     2};
    });
  }
}

TEST_F(GpuProgramsTest, PartsOfVariablesAreAssigned) {
  CompareProgram("parts of variables", Closeness::kSame, [] {
    const Variable v("v", Sample(DType::kFloat, {5, 7}, -2, 2, 3));
    const Output update = StridedSliceAssign(v.ref(), {4, 1}, {0, 7}, {-2, 3},
                                             Const(Tensor::Of<float>({2, 2}, {1, 2, 3, 4})));
    const ControlDependencies after({update});
    return Program{{Identity(v.ref())}, {}, 2};
  });
}

TEST_F(GpuProgramsTest, DrawsFollowTheirState) {
  CompareProgram("draws with a state", Closeness::kSame, [] {
    const Output state = VarHandleOp(DType::kInt64, {3}, {.name = "state"});
    Node* const set = AssignVariableOp(state, Const(Tensor::Vector<int64_t>({0, 0, 77})));
    const ControlDependencies after({set});
    const Output algorithm = Const(Tensor::Scalar(int64_t{1}));
    const Output first = StatefulUniform(state, algorithm, Const(Tensor::Vector<int64_t>({33, 5})));
    const ControlDependencies then({first});
    return Program{
        {first, StatefulUniform(state, algorithm, Const(Tensor::Vector<int64_t>({1001})))}, {}, 2};
  });
  // The seeds of a graph give the same numbers wherever they are drawn.
  CompareProgram("draws of many steps", Closeness::kSame, [] {
    return Program{
        {RandomUniform(Const({101, 13}), DType::kFloat),
         RandomStandardNormal(Const({1001}), DType::kFloat),
         TruncatedNormal(Const({77, 3}), DType::kFloat), RandomUniformInt(Const({501}), -5, 1000)},
        {},
        4};
  });
}

// Feeds come from memory that the GPU does not know, in pieces beside each other.
TEST_F(GpuProgramsTest, LargeFeedsComeWhole) {
  OpRow row("large feeds");
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  const Output values = Placeholder(DType::kInt32, {-1}, {.name = "values"});
  Output same;
  {
    const DeviceScope on(kGpuName);
    same = Add(values, 1);
  }
  ASSERT_TRUE(graph.error().ok()) << graph.error();
  const auto session = GpuSession(graph);
  ASSERT_TRUE(session.ok()) << session.status();
  for (const int64_t n :
       {int64_t{20000}, int64_t{1} << 20, (int64_t{5} << 20) + 3, int64_t{9000001}}) {
    for (int round = 0; round < 3; ++round) {
      Tensor fed(DType::kInt32, {n}), wanted(DType::kInt32, {n});
      for (int64_t i = 0; i < n; ++i) {
        fed.data<int32_t>()[i] = static_cast<int32_t>(i * 2654435761 + round);
        wanted.data<int32_t>()[i] = static_cast<int32_t>(fed.data<int32_t>()[i] + 1u);
      }
      const auto found = (*session)->Run({{values, fed}}, {same});
      if (!found.ok()) return row.Fail(found.status().ToString());
      if (!(*found)[0].Equals(wanted)) return row.Fail(StrCat(n, " numbers are not what was fed"));
      row.AddCase(DType::kInt32, 0);
    }
  }
}

}  // namespace
}  // namespace tenon::testing
