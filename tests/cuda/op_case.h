// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/op/op_registry.h"
#include "tests/cuda/comparison.h"

// Single ops on the GPU beside the CPU, and the table of what came of it.

namespace tenon::testing {

/// One use of an op.
struct OpCase {
  const OpRegistration* op;
  std::vector<Tensor> inputs;
  AttributeMap attrs;
};

/// Whether the op takes shapes like these, and what it gives is not too large to compare.
bool IsSmall(const OpCase& c);

/// The outputs of the op, its inputs fed, in a session of its own.
StatusOr<std::vector<Tensor>> RunCase(const OpCase& c, bool on_gpu);

/// How the inputs of an example are changed.
enum class Sizes { kExample, kLarge, kEmpty, kBroadcast, kSpecial };

/// The case of an example in these dtypes: with its shapes, or with larger odd ones where it has
/// shapes and not values, an empty one, one that broadcasts, or with infinities and NaNs. Whether
/// the op takes it, the CPU tells. Random ops get a seed.
OpCase MakeCase(const OpRegistration& op, const OpExample& example, const AttributeMap& attrs,
                Sizes sizes, uint64_t seed);

/// A line of the table, made while an op's cases run. It goes to the file that TENON_GPU_TABLE
/// names. When no case has been added for TENON_GPU_CASE_SECONDS, by default 60, the process ends.
class OpRow {
 public:
  explicit OpRow(std::string name);
  ~OpRow();

  void AddCase(DType dtype, double error);
  /// Is a test failure too.
  void Fail(const std::string& what);
  /// That there was nothing to compare.
  void Skip(std::string reason) { skipped_ = std::move(reason); }
  bool failed() const { return !failure_.empty(); }

 private:
  const std::string name_;
  std::set<DType> dtypes_;
  int cases_ = 0;
  double error_ = 0;
  std::string failure_, skipped_;
};

/// Ends the process with exit code 3 when the GPU has been lost and the table has a file, whose
/// reader then starts the program again behind the op that it ends with; without a file it is a
/// test failure. False when it has been lost.
bool GpuIsThere();

}  // namespace tenon::testing
