// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>

namespace tenon {

/// What a DT_VARIANT element may hold: an immutable object that ops on one device pass to each
/// other, such as a dataset. It has no wire form.
class VariantValue {
 public:
  virtual ~VariantValue() = default;
  virtual std::string_view type_name() const = 0;
};

/// The element type of a variant tensor; empty by default.
struct Variant {
  std::shared_ptr<const VariantValue> value;
};

}  // namespace tenon
