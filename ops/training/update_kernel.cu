// SPDX-License-Identifier: Apache-2.0
#include "ops/training/update_kernel.cuh"

#include <bit>

#include "core/graph/graph.h"
#include "ops/cuda/index_check.h"

namespace tenon::cuda {

StepScalars ScalarsOf(const Update& step, absl::Span<const Bound> bounds) {
  StepScalars scalars;
  scalars.count = static_cast<int>(step.inputs.scalars.size());
  for (int k = 0; k < scalars.count; ++k) {
    scalars.values[k] = step.scalar(k).raw_data();
    scalars.is_int64[k] = step.scalar(k).dtype() == DType::kInt64;
    if (k < static_cast<int>(bounds.size())) scalars.bounds[k] = bounds[k];
  }
  return scalars;
}

RunCheck AddStepCheck(const Update& step, const StepScalars& scalars) {
  std::vector<std::string> names;
  for (const int i : step.inputs.scalars) names.push_back(step.inputs.names[i]);
  const int64_t rows = step.current[0]->rank() > 0 ? step.current[0]->dim(0) : 0;
  const auto describe = [scalars, names, rows, name = step.kernel.name(), op = step.kernel.op(),
                         device = step.ctx.device().name()](uint64_t word) {
    const auto annotate = [&](const Status& error) {
      return AnnotateWithNode(error, name, op, device);
    };
    const IndexNote note = NotedIndex(word);
    if (word >> 63 != 0) return annotate(NoSuchRow(note.value, note.place, rows));
    const size_t k = static_cast<size_t>(word >> 32) - 1;
    return annotate(ScalarOutOfBound(names[k], std::bit_cast<float>(static_cast<uint32_t>(word)),
                                     scalars.bounds[k]));
  };
  return step.ctx.device().queue()->AddCheck(step.ctx.device_run().id, describe);
}

}  // namespace tenon::cuda
