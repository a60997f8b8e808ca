// SPDX-License-Identifier: Apache-2.0
#include "ops/training/update_kernel.cuh"

#include <bit>

#include "core/graph/graph.h"
#include "ops/cuda/index_check.h"

namespace tenon::cuda {

UpdateScalars ScalarsOf(const Update& update, absl::Span<const Bound> bounds) {
  UpdateScalars scalars;
  scalars.count = static_cast<int>(update.inputs.scalars.size());
  for (int k = 0; k < scalars.count; ++k) {
    scalars.values[k] = update.scalar(k).raw_data();
    scalars.is_int64[k] = update.scalar(k).dtype() == DType::kInt64;
    if (k < static_cast<int>(bounds.size())) scalars.bounds[k] = bounds[k];
  }
  return scalars;
}

RunCheck AddUpdateCheck(const Update& update, const UpdateScalars& scalars) {
  std::vector<std::string> names;
  for (const int i : update.inputs.scalars) names.push_back(update.inputs.names[i]);
  const int64_t rows = update.current[0]->rank() > 0 ? update.current[0]->dim(0) : 0;
  const auto describe = [scalars, names, rows, name = update.kernel.name(), op = update.kernel.op(),
                         device = update.ctx.device().name()](uint64_t word) {
    const auto annotate = [&](const Status& error) {
      return AnnotateWithNode(error, name, op, device);
    };
    const IndexNote note = NotedIndex(word);
    if (word >> 63 != 0) return annotate(NoSuchRow(note.value, note.place, rows));
    const size_t k = static_cast<size_t>(word >> 32) - 1;
    return annotate(ScalarOutOfBound(names[k], std::bit_cast<float>(static_cast<uint32_t>(word)),
                                     scalars.bounds[k]));
  };
  return update.ctx.device().queue()->AddCheck(update.ctx.device_run().id, describe);
}

}  // namespace tenon::cuda
