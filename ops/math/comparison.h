// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/elementwise.h"

namespace tenon::elementwise {

using EquatableTypes = decltype(ConcatTypes(PlainTypes(), TypeList<TString>()));

struct EqualOp : Elementwise<"Equal", EquatableTypes> {
  TENON_HD static bool Apply(const auto& x, const auto& y) { return x == y; }
};

struct NotEqualOp : Elementwise<"NotEqual", EquatableTypes> {
  TENON_HD static bool Apply(const auto& x, const auto& y) { return !(x == y); }
};

struct LessOp : Elementwise<"Less", RealTypes> {
  TENON_HD static bool Apply(auto x, auto y) { return x < y; }
};

struct LessEqualOp : Elementwise<"LessEqual", RealTypes> {
  TENON_HD static bool Apply(auto x, auto y) { return x <= y; }
};

struct GreaterOp : Elementwise<"Greater", RealTypes> {
  TENON_HD static bool Apply(auto x, auto y) { return x > y; }
};

struct GreaterEqualOp : Elementwise<"GreaterEqual", RealTypes> {
  TENON_HD static bool Apply(auto x, auto y) { return x >= y; }
};

using EqualityOps = TypeList<EqualOp, NotEqualOp>;
using OrderOps = TypeList<LessOp, LessEqualOp, GreaterOp, GreaterEqualOp>;
using ComparisonOps = decltype(ConcatTypes(EqualityOps(), OrderOps()));

}  // namespace tenon::elementwise
