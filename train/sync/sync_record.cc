// SPDX-License-Identifier: Apache-2.0
#include "train/sync/sync_record.h"

#include <vector>

namespace tenon {

Tensor SyncRecord::ToTensor() const {
  return Tensor::Vector(std::vector<int64_t>{epoch, over ? 1 : 0, step});
}

StatusOr<SyncRecord> SyncRecord::FromTensor(const Tensor& fields) {
  if (fields.dtype() != DType::kInt64 || fields.num_elements() != kFields) {
    return InvalidArgument("expected ", kFields,
                           " int64 of the record of synchronous replicas, found ",
                           ToString(fields.dtype()), fields.shape().ToString());
  }
  const int64_t* const f = fields.data<int64_t>();
  return SyncRecord{f[0], f[1] != 0, f[2]};
}

}  // namespace tenon
