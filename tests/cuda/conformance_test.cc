// SPDX-License-Identifier: Apache-2.0
//
// Every op that can be on a GPU gives there what it gives on the CPU, each time the same.
// TENON_GPU_ROUNDS is how many random sizes are tried besides the examples, TENON_GPU_OP the only
// op, TENON_GPU_AFTER the op behind which to begin. Of TENON_GPU_PARTS processes beside each other,
// TENON_GPU_PART (0 and up) says which ops are this one's.
#include <algorithm>
#include <cstdlib>

#include "ops/cuda/device_kind.h"
#include "ops/register.h"
#include "tests/cuda/gpu_test.h"
#include "tests/cuda/op_case.h"
#include "tests/cuda/variable_cases.h"
#include "tests/testing/op_runner.h"

namespace tenon::testing {
namespace {

std::string TextOf(const OpCase& c) {
  std::string text = "inputs";
  for (const Tensor& t : c.inputs) StrAppend(&text, " ", t.dtype(), t.shape().ToString());
  for (const auto& [name, value] : c.attrs) StrAppend(&text, " ", name, "=", value.ToString());
  return text;
}

/// The dtype by which a case is counted: of what it computes with. (T of a draw is its shape's.)
DType MainType(const OpCase& c, const std::vector<Tensor>& outputs) {
  if (c.op->schema.name.starts_with("Stateless") && c.attrs.Find("dtype") != nullptr) {
    return c.attrs.GetOr<DType>("dtype", DType::kInvalid);
  }
  if (c.attrs.Find("T") != nullptr) return c.attrs.GetOr<DType>("T", DType::kInvalid);
  return !outputs.empty()    ? outputs[0].dtype()
         : !c.inputs.empty() ? c.inputs[0].dtype()
                             : DType::kInvalid;
}

void CompareCase(const OpCase& c, OpRow* row) {
  if (!IsSmall(c)) return;
  const auto wanted = RunCase(c, false);
  // What the CPU refuses is no use of the op; the branch that Switch does not take has no value.
  if (!wanted.ok()) return;
  const auto found = RunCase(c, true);
  if (!found.ok()) return row->Fail(StrCat(found.status().ToString(), "; ", TextOf(c)));
  const bool computed = c.op->MemoryOn(kCuda, c.attrs) == KernelMemory::kDevice;
  const DType dtype = MainType(c, *wanted);
  const Closeness closeness = computed ? ClosenessOf(c.op->schema.name, dtype) : Closeness::kSame;
  const Comparison comparison = Compare(*found, *wanted, closeness);
  if (!comparison.difference.empty()) {
    // Draws without a seed are others each time, on the CPU too.
    const auto other = RunCase(c, false);
    if (other.ok() && !Compare(*other, *wanted, Closeness::kSame).difference.empty()) return;
    return row->Fail(StrCat(comparison.difference, "; ", TextOf(c)));
  }
  row->AddCase(dtype, comparison.error);
  if (!WhyNotRepeatable(c.op->schema.name).empty()) return;
  const auto again = RunCase(c, true);
  if (!again.ok()) return row->Fail(StrCat("run again: ", again.status().ToString()));
  if (auto d = Compare(*again, *found, Closeness::kSame).difference; !d.empty()) {
    row->Fail(StrCat("run again, it gives something else: ", d, "; ", TextOf(c)));
  }
}

/// The choices of dtypes in which an example can be on a GPU.
std::vector<AttributeMap> GpuChoices(const OpRegistration& op, const OpExample& example) {
  std::vector<AttributeMap> choices;
  for (AttributeMap& attrs : TypeChoices(op, example)) {
    if (op.FindKernel(kCuda, attrs) != nullptr) choices.push_back(std::move(attrs));
  }
  return choices;
}

/// Whether the inputs can come from the host: elements of a list would stay there.
bool IsFed(const std::vector<Tensor>& inputs) {
  return std::none_of(inputs.begin(), inputs.end(),
                      [](const Tensor& t) { return t.dtype() == DType::kVariant; });
}

void CompareOp(const OpRegistration& op, int rounds, OpRow* row) {
  uint64_t seed = 7;
  for (const OpExample& example : op.examples) {
    for (const AttributeMap& attrs : GpuChoices(op, example)) {
      const OpCase first = MakeCase(op, example, attrs, Sizes::kExample, seed);
      if (IsFed(first.inputs)) {
        CompareCase(first, row);
      } else {
        row->Skip("takes a list, which has its elements where it was made; the programs cover it");
      }
      if (op.MemoryOn(kCuda, attrs) != KernelMemory::kDevice) continue;
      for (int round = 0; round < rounds; ++round) {
        for (const Sizes sizes : {Sizes::kLarge, Sizes::kEmpty, Sizes::kBroadcast}) {
          CompareCase(MakeCase(op, example, attrs, sizes, ++seed), row);
        }
      }
      const DType dtype = attrs.GetOr<DType>("T", DType::kInvalid);
      // Which of several NaNs is the least, and what whole number it is, is nobody's promise.
      if (rounds > 0 && IsFloating(dtype) &&
          ClosenessOf(op.schema.name, dtype) == Closeness::kPlaces) {
        CompareCase(MakeCase(op, example, attrs, Sizes::kSpecial, ++seed), row);
      }
    }
  }
}

bool HasGpuKernel(const OpRegistration& op) {
  for (const KernelRegistration& k : op.kernels) {
    if (k.device == kCuda || k.options.memory != KernelMemory::kDevice) return true;
  }
  return false;
}

class GpuConformanceTest : public GpuTest {};

/// What the environment asks for.
bool IsAsked(const OpRegistration& op) {
  const char* const only = std::getenv("TENON_GPU_OP");
  const char* const after = std::getenv("TENON_GPU_AFTER");
  return (only == nullptr || op.schema.name == only) &&
         (after == nullptr || op.schema.name > after);
}

/// Whether all went well; the row is written then.
bool CompareInRow(const OpRegistration& op, int rounds) {
  OpRow row(op.schema.name);
  if (HasVariableCases(op)) {
    CompareVariableCases(op, &row);
  } else if (op.examples.empty()) {
    row.Skip(op.no_example_reason);
  } else {
    CompareOp(op, rounds, &row);
  }
  return !row.failed();
}

TEST_F(GpuConformanceTest, EveryOpGivesWhatItGivesOnTheCpu) {
  const int rounds = EnvironmentNumber("TENON_GPU_ROUNDS", 2);
  const int parts = EnvironmentNumber("TENON_GPU_PARTS", 1);
  const int part = EnvironmentNumber("TENON_GPU_PART", 0);
  int number = 0;
  for (const OpRegistration* op : AllOps().All()) {
    if (!HasGpuKernel(*op)) continue;
    if (number++ % parts != part || !IsAsked(*op)) continue;
    if (!CompareInRow(*op, rounds) && !GpuIsThere()) return;
  }
}

/// One small case of the kernel that the op has for these attributes.
void RunOnce(const OpRegistration& op, const OpExample& example, const AttributeMap& attrs) {
  const OpCase c = MakeCase(op, example, attrs, Sizes::kExample, 7);
  if (!IsFed(c.inputs) || !RunCase(c, false).ok()) return;
  OpRow row(op.schema.name);
  const auto found = RunCase(c, true);
  if (!found.ok()) row.Fail(StrCat(found.status().ToString(), "; ", TextOf(c)));
  row.AddCase(MainType(c, {}), 0);
}

/// Each kernel that was written for GPUs runs on something small: for tools that make all slow.
TEST_F(GpuConformanceTest, EveryKernelRunsOnce) {
  for (const OpRegistration* op : AllOps().All()) {
    if (!IsAsked(*op)) continue;
    if (HasVariableCases(*op)) {
      OpRow row(op->schema.name);
      CompareVariableCases(*op, &row, /*once=*/true);
      continue;
    }
    std::set<const KernelRegistration*> ran;
    for (const OpExample& example : op->examples) {
      for (const AttributeMap& attrs : GpuChoices(*op, example)) {
        const KernelRegistration* const kernel = op->FindKernel(kCuda, attrs);
        if (kernel->device == kCuda && ran.insert(kernel).second) RunOnce(*op, example, attrs);
      }
    }
  }
}

}  // namespace
}  // namespace tenon::testing
