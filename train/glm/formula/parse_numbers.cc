// SPDX-License-Identifier: Apache-2.0
#include "train/glm/formula/parse_numbers.h"

#include <algorithm>

namespace tenon {
namespace {

using Op = NumericExpression::Op;
using TokenKind = FormulaToken::Kind;

constexpr int kDeepest = 100;  // signs, powers and parentheses within each other

struct NumericFunction {
  std::string_view name;
  Op op;
};
constexpr NumericFunction kFunctions[] = {{"log", Op::kLog},
                                          {"log1p", Op::kLog1p},
                                          {"sqrt", Op::kSqrt},
                                          {"exp", Op::kExp},
                                          {"abs", Op::kAbs}};

const NumericFunction* FindFunction(std::string_view name) {
  for (const NumericFunction& function : kFunctions) {
    if (function.name == name) return &function;
  }
  return nullptr;
}

/// Writes the steps of an expression behind each other, an operation behind its operands.
class ExpressionParser {
 public:
  ExpressionParser(FormulaWords* words, NumericExpression* out) : words_(*words), out_(*out) {}

  Status ParseSum() {
    TENON_RETURN_IF_ERROR(ParseProduct());
    while (words_.next().IsSign("+") || words_.next().IsSign("-")) {
      const Op op = words_.TakeToken().text == "+" ? Op::kAdd : Op::kSubtract;
      TENON_RETURN_IF_ERROR(ParseProduct());
      out_.steps.push_back({op});
    }
    return OkStatus();
  }
  Status ParseCall() {
    const FormulaToken name = words_.next();
    const NumericFunction* const function = FindFunction(name.text);
    if (!IsNumericFunction(name.text)) {
      return FormulaError(name, "log, log1p, sqrt, exp, abs or I");
    }
    words_.TakeCall();
    TENON_RETURN_IF_ERROR(ParseSum());
    if (function != nullptr) out_.steps.push_back({function->op});
    return words_.Take(")");
  }

 private:
  Status ParseProduct() {
    TENON_RETURN_IF_ERROR(ParseSigned());
    while (words_.next().IsSign("*") || words_.next().IsSign("/")) {
      const Op op = words_.TakeToken().text == "*" ? Op::kMultiply : Op::kDivide;
      TENON_RETURN_IF_ERROR(ParseSigned());
      out_.steps.push_back({op});
    }
    return OkStatus();
  }
  /// A sign binds less than a power: -x^2 is -(x^2).
  Status ParseSigned() {
    if (depth_ == kDeepest) return FormulaError(words_.next(), "an expression that is less deep");
    ++depth_;
    TENON_RETURN_IF_ERROR(ParseSignedWithin());
    --depth_;
    return OkStatus();
  }
  Status ParseSignedWithin() {
    if (words_.TakeIf("+")) return ParseSigned();
    if (words_.TakeIf("-")) {
      TENON_RETURN_IF_ERROR(ParseSigned());
      out_.steps.push_back({Op::kNegate});
      return OkStatus();
    }
    TENON_RETURN_IF_ERROR(ParseAtom());
    if (!words_.TakeIf("^")) return OkStatus();
    TENON_RETURN_IF_ERROR(ParseSigned());  // from the right, as in R
    out_.steps.push_back({Op::kPower});
    return OkStatus();
  }
  Status ParseAtom() {
    if (words_.IsCall()) return ParseCall();
    if (words_.TakeIf("(")) {
      TENON_RETURN_IF_ERROR(ParseSum());
      return words_.Take(")");
    }
    if (words_.next().kind == TokenKind::kNumber) {
      out_.steps.push_back({Op::kNumber, 0, words_.TakeToken().number});
      return OkStatus();
    }
    if (words_.next().kind != TokenKind::kName) {
      return FormulaError(words_.next(), "a number or a column");
    }
    TENON_ASSIGN_OR_RETURN(const std::string column, words_.TakeColumn());
    const auto found = std::find(out_.columns.begin(), out_.columns.end(), column);
    out_.steps.push_back({Op::kColumn, found - out_.columns.begin()});
    if (found == out_.columns.end()) out_.columns.push_back(column);
    return OkStatus();
  }

  FormulaWords& words_;
  NumericExpression& out_;
  int depth_ = 0;
};

}  // namespace

StatusOr<NumericExpression> ParseNumericExpression(FormulaWords* words) {
  NumericExpression expression;
  TENON_RETURN_IF_ERROR(ExpressionParser(words, &expression).ParseSum());
  return expression;
}

bool IsNumericFunction(std::string_view name) {
  return name == "I" || FindFunction(name) != nullptr;
}

Status ParseNumericFunction(FormulaWords* words, NumericExpression* out) {
  return ExpressionParser(words, out).ParseCall();
}

}  // namespace tenon
