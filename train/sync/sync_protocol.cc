// SPDX-License-Identifier: Apache-2.0
#include "train/sync/sync_protocol.h"

namespace tenon {
namespace {

StatusOr<const int64_t*> SyncFields(const Tensor& fields, int count, int64_t kinds) {
  if (fields.dtype() != DType::kInt64 || fields.num_elements() != count) {
    return InvalidArgument("expected ", count,
                           " int64 of the protocol of synchronous replicas, found ",
                           ToString(fields.dtype()), fields.shape().ToString());
  }
  const int64_t* const at = fields.data<int64_t>();
  if (at[0] < 1 || at[0] > kinds) {
    return InvalidArgument("the protocol of synchronous replicas has no kind ", at[0]);
  }
  return at;
}

}  // namespace

Tensor SyncMessage::ToTensor() const {
  return Tensor::Vector(std::vector<int64_t>{kind, worker, incarnation, epoch, step, shard});
}

StatusOr<SyncMessage> SyncMessage::FromTensor(const Tensor& fields) {
  TENON_ASSIGN_OR_RETURN(const int64_t* const f, SyncFields(fields, kFields, kLeft));
  return SyncMessage{static_cast<Kind>(f[0]), f[1], f[2], f[3], f[4], f[5]};
}

Tensor SyncTurn::ToTensor() const {
  return Tensor::Vector(std::vector<int64_t>{kind, epoch, step, shard, missing});
}

StatusOr<SyncTurn> SyncTurn::FromTensor(const Tensor& fields) {
  TENON_ASSIGN_OR_RETURN(const int64_t* const f, SyncFields(fields, kFields, kOver));
  return SyncTurn{static_cast<Kind>(f[0]), f[1], f[2], f[3], f[4]};
}

}  // namespace tenon
