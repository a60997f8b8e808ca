// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise.h"
#include "ops/math/register.h"

namespace tenon {
namespace {

struct EqualityOp {
  static constexpr bool kNotDifferentiable = true;
  using Types = decltype(ConcatTypes(PlainTypes(), TypeList<TString>()));
};

struct EqualOp : EqualityOp {
  static constexpr std::string_view kName = "Equal";
  template <typename T>
  TENON_HD static bool Apply(const T& x, const T& y) {
    return x == y;
  }
};

struct NotEqualOp : EqualityOp {
  static constexpr std::string_view kName = "NotEqual";
  template <typename T>
  TENON_HD static bool Apply(const T& x, const T& y) {
    return !(x == y);
  }
};

#define TENON_ORDER_OP(NAME, OPERATOR)                 \
  struct NAME##Op {                                              \
    static constexpr std::string_view kName = #NAME; \
    static constexpr bool kNotDifferentiable = true;             \
    using Types = RealTypes;                                     \
    template <typename T>                                        \
    TENON_HD static bool Apply(T x, T y) {                       \
      return x OPERATOR y;                                       \
    }                                                            \
  };
TENON_ORDER_OP(Less, <)
TENON_ORDER_OP(LessEqual, <=)
TENON_ORDER_OP(Greater, >)
TENON_ORDER_OP(GreaterEqual, >=)
#undef TENON_ORDER_OP

}  // namespace

void RegisterComparison(OpRegistry& ops) {
  RegisterBinaryList(
      ops, TypeList<EqualOp, NotEqualOp, LessOp, LessEqualOp, GreaterOp, GreaterEqualOp>());
}

}  // namespace tenon
