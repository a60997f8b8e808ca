// SPDX-License-Identifier: Apache-2.0
#include "ops/math/bitwise.h"

#include "core/op/op_registry.h"

namespace tenon {

void RegisterBitwise(OpRegistry& ops) {
  RegisterBinaryList(ops, elementwise::BitwiseBinaryOps());
  RegisterUnaryList(ops, elementwise::BitwiseUnaryOps());
}

}  // namespace tenon
