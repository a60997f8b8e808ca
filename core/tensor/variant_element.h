// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

namespace tenon {

class VariantValue;
using VariantRef = std::shared_ptr<const VariantValue>;

/// The element type of a variant tensor; empty by default. variant.h has what its value is.
struct Variant {
  VariantRef value;
};

}  // namespace tenon
