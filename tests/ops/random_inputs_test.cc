// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <limits>
#include <random>
#include <set>

#include "core/base/sanitizers.h"
#include "core/memory/allocator.h"
#include "core/memory/memory_limit.h"
#include "ops/register.h"
#include "tests/testing/op_runner.h"

// Inputs and attributes of the right types with arbitrary shapes and values: every kernel answers
// with a result or an error.

namespace tenon::testing {
namespace {

using Random = std::mt19937_64;

int64_t Pick(Random& random, std::initializer_list<int64_t> values) {
  return values.begin()[random() % values.size()];
}

Shape RandomShape(Random& random) {
  DimVector dims(random() % 5);
  for (int64_t& d : dims) d = Pick(random, {0, 1, 1, 2, 2, 3, 4});
  return Shape(dims);
}

/// Ops whose result is as large as some input says: for these a large number is no mistake.
bool SizedByValues(const std::string& op) {
  static const std::set<std::string> ops = {"BroadcastTo",
                                            "EditDistance",
                                            "Empty",
                                            "NonDeterministicInts",
                                            "ParameterizedTruncatedNormal",
                                            "Bincount",
                                            "DenseBincount",
                                            "DynamicStitch",
                                            "Fill",
                                            "HistogramFixedWidth",
                                            "LinSpace",
                                            "MatrixDiagV2",
                                            "MatrixDiagV3",
                                            "MirrorPad",
                                            "Multinomial",
                                            "OneHot",
                                            "Pad",
                                            "PadV2",
                                            "Range",
                                            "ScatterNd",
                                            "SpaceToBatch",
                                            "SpaceToBatchND",
                                            "StridedSliceGrad",
                                            "Tile",
                                            "TruncatedNormal"};
  if (ops.contains(op) || op.starts_with("Random") || op.starts_with("Stateless")) return true;
  const auto named = [&](const char* part) { return op.find(part) != std::string::npos; };
  return named("Segment") || named("Sparse") || named("Ragged") || named("incount") ||
         named("SetSize") || named("DynamicStitch");
}

/// Numbers that break sloppy arithmetic, among small ones.
double RandomNumber(Random& random, bool extreme, bool large) {
  if (extreme && random() % 4 == 0) {
    const int64_t wide =
        Pick(random, {std::numeric_limits<int32_t>::min(), std::numeric_limits<int64_t>::min(),
                      int64_t{1} << 62, -999});
    const int64_t most = std::numeric_limits<int32_t>::max();
    return static_cast<double>(large ? Pick(random, {wide, wide, most, 1000003}) : wide);
  }
  return static_cast<double>(Pick(random, {-3, -2, -1, -1, 0, 0, 0, 1, 1, 1, 2, 2, 3, 4, 7}));
}

Tensor RandomTensor(Random& random, DType type, const Shape& shape, bool large) {
  Tensor t(type, shape);
  const bool extreme = random() % 2 == 0;
  if (type == DType::kString) {
    for (TString& s : t.flat<TString>()) s = std::string(random() % 3, 'x');
    return t;
  }
  Dispatch(type, PlainTypes(), [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < t.num_elements(); ++i) {
      const double x = RandomNumber(random, extreme, large);
      if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
        t.data<T>()[i] = static_cast<T>(static_cast<int64_t>(x));
      } else {
        t.data<T>()[i] = T(x);
      }
    }
  });
  return t;
}

/// Changes integers among the attributes, but not how many tensors an argument has.
void Disturb(Random& random, const OpRegistration& op, AttributeMap* attrs) {
  for (const AttrSchema& a : op.schema.attrs) {
    if (a.kind != "int" || !a.default_value || random() % 2 == 0) continue;
    attrs->Set(a.name, Pick(random, {-7, -2, -1, 0, 1, 2, 3, 5, 31, int64_t{1} << 40}));
  }
}

TEST(RandomInputs, GiveAResultOrAnErrorAndNoCrash) {
  // Most outputs as large as some input says are refused.
  SetCpuMemoryLimit(CpuAllocator().bytes_in_use() + (int64_t{256} << 20));
  Random random(20240607);
  int ran = 0, succeeded = 0;
  for (const OpRegistration* op : AllOps().All()) {
    if (op->schema.name.starts_with("Print")) continue;
    // Its rows of up to 2^31 numbers take long: ragged_ops_test.cc.
    if (op->schema.name == "RaggedRange") continue;
    // They try as often as an attribute says: picture_ops_test.cc.
    if (op->schema.name.find("SampleDistortedBoundingBox") != std::string::npos) continue;
    const bool large = !SizedByValues(op->schema.name);
    for (const OpExample& example : op->examples) {
      const std::vector<AttributeMap> choices = TypeChoices(*op, example);
      for (int round = 0; round < (kSanitized ? 20 : 150); ++round) {
        AttributeMap attrs = choices[random() % choices.size()];
        std::vector<Tensor> inputs = SampleInputs(*op, example, attrs, random());
        for (Tensor& t : inputs) {
          // Most inputs of a run keep their shape, so that not every run stops at the first check.
          const uint64_t fate = random() % 4;
          if (fate == 0) t = RandomTensor(random, t.dtype(), RandomShape(random), large);
          if (fate == 1) t = RandomTensor(random, t.dtype(), t.shape(), large);
        }
        if (random() % 2 == 0) Disturb(random, *op, &attrs);
        std::string what = StrCat(op->schema.name, " round ", round);
        for (const Tensor& t : inputs) StrAppend(&what, " ", t.ToString());
        SCOPED_TRACE(what);
        const OpResult result = RunOp(op->schema.name, inputs, attrs, random() % 2 == 0);
        ++ran;
        succeeded += result.status.ok();
        EXPECT_NE(result.status.code(), StatusCode::kInternal) << result.status;
        for (size_t i = 0; result.status.ok() && i < result.outputs.size(); ++i) {
          if (!result.outputs[i].valid()) continue;
          EXPECT_TRUE(result.declared_shapes[i].IsCompatibleWith(result.outputs[i].shape()))
              << "output " << i << " was declared " << result.declared_shapes[i].ToString()
              << " and is " << result.outputs[i].shape().ToString();
        }
      }
    }
  }
  EXPECT_GT(succeeded, ran / 10);
  SetCpuMemoryLimit(DefaultCpuMemoryLimit());
}

/// What runs, for whoever ends the test because it takes for ever.
std::string running;

void SayWhatRuns(int) {
  const std::string line = StrCat(running, " takes for ever\n");
  static_cast<void>(!write(STDERR_FILENO, line.data(), line.size()));
  _exit(1);
}

/// `shape` with no elements in one of its dimensions, and in another more than anyone can count.
std::vector<Shape> EmptyAndHuge(const Shape& shape) {
  std::vector<Shape> shapes;
  for (int none = 0; none < shape.rank(); ++none) {
    for (int huge = 0; huge < shape.rank(); ++huge) {
      if (huge == none) continue;
      DimVector dims(shape.dims().begin(), shape.dims().end());
      dims[none] = 0;
      dims[huge] = int64_t{1} << 50;
      shapes.emplace_back(dims);
    }
  }
  return shapes;
}

/// `attrs`, and the same with small numbers for each integer, which may be an axis.
std::vector<AttributeMap> AxisChoices(const OpRegistration& op, const AttributeMap& attrs) {
  std::vector<AttributeMap> choices = {attrs};
  for (const AttrSchema& a : op.schema.attrs) {
    if (a.kind != "int" || !a.default_value) continue;
    for (const int64_t value : {-1, 0, 1, 2}) {
      choices.push_back(attrs);
      choices.back().Set(a.name, value);
    }
  }
  return choices;
}

/// Runs the op with each input in turn empty and huge, alone and with those of the same shape.
void RunEmptyAndHuge(const OpRegistration& op, const std::vector<Tensor>& inputs,
                     const AttributeMap& attrs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    for (const Shape& shape : EmptyAndHuge(inputs[i].shape())) {
      for (const bool alone : {true, false}) {
        std::vector<Tensor> changed = inputs;
        for (size_t j = 0; j < inputs.size(); ++j) {
          const bool alike = !alone && inputs[j].shape() == inputs[i].shape();
          if (j == i || alike) changed[j] = Tensor(inputs[j].dtype(), shape);
        }
        running = StrCat(op.schema.name, ", input ", i, " ", shape.ToString());
        alarm(10);
        RunOp(op.schema.name, changed, attrs);
      }
    }
  }
}

TEST(RandomInputs, NoLoopCountsTheDimensionsOfEmptyTensors) {
  SetCpuMemoryLimit(CpuAllocator().bytes_in_use() + (int64_t{256} << 20));
  const auto before = std::signal(SIGALRM, SayWhatRuns);
  for (const OpRegistration* op : AllOps().All()) {
    if (op->schema.name.starts_with("Print")) continue;
    for (const OpExample& example : op->examples) {
      const AttributeMap first = TypeChoices(*op, example)[0];
      for (const AttributeMap& attrs : AxisChoices(*op, first)) {
        const std::vector<Tensor> inputs = SampleInputs(*op, example, attrs, 1);
        RunEmptyAndHuge(*op, inputs, attrs);
        for (size_t i = 0; i < inputs.size(); ++i) {
          // Perhaps an axis too.
          if (inputs[i].rank() > 0 || inputs[i].dtype() != DType::kInt32) continue;
          for (const int32_t value : {-1, 0, 1, 2}) {
            std::vector<Tensor> changed = inputs;
            changed[i] = Tensor::Scalar(value);
            RunEmptyAndHuge(*op, changed, attrs);
          }
        }
      }
    }
  }
  alarm(0);
  std::signal(SIGALRM, before);
  SetCpuMemoryLimit(DefaultCpuMemoryLimit());
}

}  // namespace
}  // namespace tenon::testing
