// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "core/graph/graph.h"
#include "core/memory/allocator.h"
#include "core/memory/memory_limit.h"
#include "ops/register.h"
#include "tests/testing/op_runner.h"

// The largest and smallest numbers where sizes, places and counts are computed: a result or an
// error. What overflows the build with UBSan sees.

namespace tenon::testing {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();

/// fn(op, attrs, inputs) for each example.
template <typename Fn>
void ForEachExample(Fn fn) {
  SetCpuMemoryLimit(CpuAllocator().bytes_in_use() + (int64_t{256} << 20));
  for (const OpRegistration* op : AllOps().All()) {
    for (const OpExample& example : op->examples) {
      AttributeMap attrs = TypeChoices(*op, example)[0];
      const std::vector<Tensor> inputs = SampleInputs(*op, example, attrs, 3);
      InferAttributes(op->schema, inputs, &attrs);
      fn(*op, attrs, inputs);
    }
  }
  SetCpuMemoryLimit(DefaultCpuMemoryLimit());
}

/// Their work is as much as the number says.
bool TriesAsOftenAsTold(const std::string& op) {
  return op == "RaggedRange" || op.find("SampleDistortedBoundingBox") != std::string::npos;
}

void RunBoth(const OpRegistration& op, const std::vector<Tensor>& inputs,
             const AttributeMap& attrs) {
  for (const bool hidden : {false, true}) {
    const Status status = RunOp(op.schema.name, inputs, attrs, hidden).status;
    EXPECT_NE(status.code(), StatusCode::kInternal) << status;
  }
}

TEST(ExtremeValues, OfShapes) {
  ForEachExample(
      [](const OpRegistration& op, const AttributeMap& attrs, const std::vector<Tensor>& inputs) {
        for (size_t i = 0; i < inputs.size(); ++i) {
          for (int d = 0; d < inputs[i].rank(); ++d) {
            SCOPED_TRACE(StrCat(op.schema.name, " input ", i, " dimension ", d));
            const auto known = PartialShape(inputs[i].shape().dims());
            const auto unknown = PartialShape::OfRank(inputs[i].rank());
            for (const PartialShape& shape : {known, unknown}) {
              Graph graph(AllOps());
              std::vector<Endpoint> sources;
              for (size_t k = 0; k < inputs.size(); ++k) {
                AttributeMap source;
                source.Set("dtype", inputs[k].dtype());
                const bool large = k == i;
                if (large) {
                  source.Set("shape", shape.WithDim(d, kMost));
                } else {
                  source.Set("value", inputs[k]);
                }
                const auto node = graph.AddNode(StrCat("input", k), large ? "Placeholder" : "Const",
                                                std::move(source));
                ASSERT_TRUE(node.ok()) << node.status();
                sources.push_back({*node, 0});
              }
              const auto node = graph.AddNode("op", op.schema.name, attrs, sources);
              if (!node.ok()) {
                EXPECT_EQ(node.status().code(), StatusCode::kInvalidArgument) << node.status();
              }
            }
          }
        }
      });
}

TEST(ExtremeValues, OfAttributes) {
  ForEachExample(
      [](const OpRegistration& op, const AttributeMap& attrs, const std::vector<Tensor>& inputs) {
        if (TriesAsOftenAsTold(op.schema.name)) return;
        for (const AttrSchema& a : op.schema.attrs) {
          const bool counts =
              std::any_of(op.schema.inputs.begin(), op.schema.inputs.end(),
                          [&](const ArgSchema& arg) { return arg.number_attr == a.name; }) ||
              std::any_of(op.schema.outputs.begin(), op.schema.outputs.end(),
                          [&](const ArgSchema& arg) { return arg.number_attr == a.name; });
          if (counts) continue;
          for (const int64_t number : {kMost, kLeast, kMost / 2 + 1, -kMost / 4}) {
            SCOPED_TRACE(StrCat(op.schema.name, " ", a.name, " = ", number));
            AttributeMap extreme = attrs;
            if (a.kind == "int") {
              extreme.Set(a.name, number);
              RunBoth(op, inputs, extreme);
            } else if (const auto list = attrs.Get<std::vector<int64_t>>(a.name); list.ok()) {
              for (size_t i = 0; i < list->size(); ++i) {
                std::vector<int64_t> numbers = *list;
                numbers[i] = number;
                extreme.Set(a.name, numbers);
                RunBoth(op, inputs, extreme);
              }
            }
          }
        }
      });
}

TEST(ExtremeValues, OfInputs) {
  ForEachExample([](const OpRegistration& op, const AttributeMap& attrs,
                    const std::vector<Tensor>& inputs) {
    if (TriesAsOftenAsTold(op.schema.name)) return;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!IsInteger(inputs[i].dtype()) || inputs[i].num_elements() == 0) continue;
      Dispatch(inputs[i].dtype(), PlainTypes(), [&]<typename T>(T) {
        if constexpr (std::is_integral_v<T>) {
          constexpr T kHigh = std::numeric_limits<T>::max(), kLow = std::numeric_limits<T>::min();
          for (const T number : {kHigh, kLow, static_cast<T>(kHigh / 2 + 1)}) {
            for (const int64_t at : {int64_t{0}, inputs[i].num_elements() - 1}) {
              SCOPED_TRACE(StrCat(op.schema.name, " input ", i, " [", at, "] = ", number));
              std::vector<Tensor> extreme = inputs;
              extreme[i] = *inputs[i].Copy();
              extreme[i].data<T>()[at] = number;
              RunBoth(op, extreme, attrs);
            }
          }
        }
      });
    }
  });
}

}  // namespace
}  // namespace tenon::testing
