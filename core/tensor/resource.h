// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"
#include "core/tensor/tstring.h"

namespace tenon {

/// State that outlives a step: a variable, a queue, a stack. Shared by kernels through handles;
/// each kind does its own locking.
class Resource {
 public:
  virtual ~Resource() = default;
  /// The kind, as messages name it: "variable", "queue".
  virtual std::string_view kind() const = 0;
  /// The memory it holds, about.
  virtual int64_t num_bytes() const { return 0; }
};

/// The element type of a resource tensor: names a resource of a device. On the wire it is a
/// ResourceHandleProto, which has no `resource`.
struct ResourceHandle {
  TString device;
  TString container;
  TString name;
  TString type_name;
  uint64_t hash_code = 0;
  CountedVector<std::pair<DType, PartialShape>> dtypes_and_shapes;
  /// A resource that is in no store and ends with its last handle; null where the name is looked
  /// up.
  std::shared_ptr<Resource> resource;
};

}  // namespace tenon
