// SPDX-License-Identifier: Apache-2.0
#include "train/glm/report/glm_saved_model.h"

#include <limits>
#include <map>
#include <numbers>
#include <utility>
#include <vector>

#include "core/build/building.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/control_flow/control_flow_ops.h"
#include "ops/lookup/lookup_ops.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/register.h"
#include "ops/strings/strings_ops.h"
#include "runtime/session/local_session.h"
#include "train/glm/result/level_finder.h"
#include "train/saver/saved_model.h"
#include "train/saver/saver.h"

namespace tenon {
namespace {

Output Double(double value) { return Const(Tensor::Scalar(value)); }
Output NotANumber() { return Double(std::numeric_limits<double>::quiet_NaN()); }

/// Builds the graph of an equation.
class EquationGraph {
 public:
  explicit EquationGraph(const GlmEquation& equation)
      : equation_(equation), formula_(equation.formula) {}

  /// False where two inputs would have one name, or there is none.
  bool AddInputs() {
    for (size_t v = 0; v < formula_.variables.size(); ++v) {
      const FormulaVariable& variable = formula_.variables[v];
      const bool is_text = equation_.variables[v].is_factor && !variable.column.empty();
      if (is_text) {
        AddInput(variable.column, DType::kString);
      } else {
        if (!variable.column.empty()) AddInput(variable.column, DType::kDouble);
        AddInputsOf(variable.number);
      }
    }
    for (const NumericExpression& offset : formula_.offsets) AddInputsOf(offset);
    return is_possible_ && !inputs_.empty();
  }

  Output Predictions() {
    for (size_t v = 0; v < formula_.variables.size(); ++v) AddVariable(v);
    const std::vector<double> intercept = equation_.CoefficientsOfTerm(-1);
    Output predictor = Double(intercept[0]);
    for (const NumericExpression& offset : formula_.offsets) predictor = predictor + Value(offset);
    for (size_t t = 0; t < formula_.terms.size(); ++t) {
      predictor = predictor + Term(static_cast<int64_t>(t));
    }
    return Mean(predictor);
  }

  const std::map<std::string, Output>& inputs() const { return inputs_; }
  const std::vector<Node*>& tables() const { return tables_; }

 private:
  void AddInput(const std::string& name, DType dtype) {
    const auto found = inputs_.find(name);
    if (found == inputs_.end()) {
      inputs_[name] = Placeholder(dtype, {-1}, {.name = "column"});
    } else if (found->second.dtype() != dtype) {
      is_possible_ = false;
    }
  }
  void AddInputsOf(const NumericExpression& number) {
    for (const std::string& name : number.columns) AddInput(name, DType::kDouble);
  }

  Output Value(const NumericExpression& number) const {
    using Op = NumericExpression::Op;
    std::vector<Output> stack;
    const auto join = [&](Output (*f)(const Input&, const Input&)) {
      const Output right = stack.back();
      stack.pop_back();
      stack.back() = f(stack.back(), right);
    };
    for (const NumericExpression::Step& step : number.steps) {
      switch (step.op) {
        case Op::kColumn:
          stack.push_back(inputs_.at(number.columns[step.index]));
          break;
        case Op::kNumber:
          stack.push_back(Double(step.number));
          break;
        case Op::kAdd:
          join([](const Input& a, const Input& b) { return a + b; });
          break;
        case Op::kSubtract:
          join([](const Input& a, const Input& b) { return a - b; });
          break;
        case Op::kMultiply:
          join([](const Input& a, const Input& b) { return a * b; });
          break;
        case Op::kDivide:
          join([](const Input& a, const Input& b) { return a / b; });
          break;
        case Op::kPower:
          join([](const Input& a, const Input& b) { return Pow(a, b); });
          break;
        case Op::kNegate:
          stack.back() = Neg(stack.back());
          break;
        case Op::kLog:
          stack.back() = Log(stack.back());
          break;
        case Op::kLog1p:
          stack.back() = Log1p(stack.back());
          break;
        case Op::kSqrt:
          stack.back() = Sqrt(stack.back());
          break;
        case Op::kExp:
          stack.back() = Exp(stack.back());
          break;
        case Op::kAbs:
          stack.back() = Abs(stack.back());
          break;
      }
    }
    // A row with a number that is not finite has no prediction.
    return SelectV2(IsFinite(stack.back()), stack.back(), NotANumber());
  }

  void AddVariable(size_t v) {
    const FormulaVariable& variable = formula_.variables[v];
    numbers_.emplace_back();
    levels_.emplace_back();
    if (!equation_.variables[v].is_factor) {
      const bool is_column = variable.kind == FormulaVariable::Kind::kColumn;
      const NumericExpression alone = {{{NumericExpression::Op::kColumn}}, {variable.column}};
      numbers_.back() = Value(is_column ? alone : variable.number);
      return;
    }
    const LevelFinder finder(equation_, static_cast<int64_t>(v));
    std::vector<int64_t> level_of_code;
    if (variable.kind == FormulaVariable::Kind::kCategory) {
      levels_.back() = Lookup(inputs_.at(variable.column), equation_.variables[v].levels);
      return;
    }
    Output codes;
    if (variable.kind == FormulaVariable::Kind::kHash) {
      const Output text = inputs_.at(variable.column);
      for (int64_t b = 0; b < variable.num_buckets; ++b) {
        level_of_code.push_back(std::max(finder.OfBucket(static_cast<uint64_t>(b)), -1));
      }
      codes = StringToHashBucketFast(text, variable.num_buckets);
    } else {
      // One more than the interval: how many breaks are below the number.
      level_of_code.push_back(-1);
      for (size_t i = 0; i + 1 < variable.breaks.size(); ++i) {
        level_of_code.push_back(std::max(finder.OfInterval(i), -1));
      }
      level_of_code.push_back(-1);
      const Output above = Greater(ExpandDims(Value(variable.number), Int(-1)),
                                   Const(Tensor::Vector<double>(variable.breaks)));
      codes = Sum(Cast(above, DType::kInt64), Int(-1));
    }
    levels_.back() = GatherV2(Const(Tensor::Vector<int64_t>(level_of_code)), codes, Int(0));
    if (variable.kind != FormulaVariable::Kind::kHash) return;
    // A text that stands for a missing value is no level, but would have a bucket.
    const Output none = Const(Tensor::Scalar<int64_t>(-1));
    std::vector<std::string> missing = equation_.format.missing;
    missing.emplace_back();
    for (const std::string& text : missing) {
      const Output is_text =
          Equal(inputs_.at(variable.column), Const(Tensor::Scalar<TString>(TString(text))));
      levels_.back() = SelectV2(is_text, none, levels_.back());
    }
  }

  static Output Int(int32_t value) { return Const(Tensor::Scalar(value)); }

  /// The places of texts among the levels; -1 for others.
  Output Lookup(const Output& texts, const std::vector<std::string>& levels) {
    const std::vector<TString> keys(levels.begin(), levels.end());
    std::vector<int64_t> places;
    for (size_t i = 0; i < levels.size(); ++i) places.push_back(static_cast<int64_t>(i));
    const Output table = HashTableV2(DType::kString, DType::kInt64,
                                     {.shared_name = StrCat("levels_", tables_.size())});
    tables_.push_back(LookupTableImportV2(table, Const(Tensor::Vector<TString>(keys)),
                                          Const(Tensor::Vector<int64_t>(places))));
    return LookupTableFindV2(table, texts, Const(Tensor::Scalar<int64_t>(-1)));
  }

  Output Term(int64_t t) const {
    Output places, known, product;
    int64_t stride = 1;
    const auto zero = Const(Tensor::Scalar<int64_t>(0));
    for (const int64_t v : formula_.terms[t].variables) {
      if (!equation_.variables[v].is_factor) {
        product = product.exists() ? product * numbers_[v] : numbers_[v];
        continue;
      }
      const Output own = Maximum(levels_[v], zero) * Const(Tensor::Scalar(stride));
      const Output is_known = GreaterEqual(levels_[v], zero);
      places = places.exists() ? places + own : own;
      known = known.exists() ? LogicalAnd(known, is_known) : is_known;
      stride *= static_cast<int64_t>(equation_.variables[v].levels.size());
    }
    const std::vector<double> coefficients = equation_.CoefficientsOfTerm(t);
    if (!places.exists()) return product * Double(coefficients[0]);
    const Output own = SelectV2(
        known, GatherV2(Const(Tensor::Vector<double>(coefficients)), places, Int(0)), NotANumber());
    return product.exists() ? product * own : own;
  }

  Output Mean(const Output& predictor) const {
    switch (equation_.link) {
      case GlmLink::kIdentity:
        return Identity(predictor);
      case GlmLink::kLog:
        return Exp(predictor);
      case GlmLink::kLogit:
        return Sigmoid(predictor);
      case GlmLink::kProbit:
        return Double(0.5) * Erfc(predictor * Double(-std::numbers::sqrt2 / 2));
      case GlmLink::kCloglog:
        return -Expm1(-Exp(predictor));
    }
    return predictor;
  }

  const GlmEquation& equation_;
  const Formula& formula_;
  bool is_possible_ = true;
  std::map<std::string, Output> inputs_;
  std::vector<Output> numbers_, levels_;  // by variable
  std::vector<Node*> tables_;             // that fill lookup tables
};

}  // namespace

StatusOr<bool> WriteGlmSavedModel(const GlmEquation& equation, const std::string& folder) {
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  EquationGraph made(equation);
  if (!made.AddInputs()) return false;
  const Output predictions = made.Predictions();
  Node* main_op = nullptr;
  if (!made.tables().empty()) {
    const ControlDependencies all(std::vector<Output>(made.tables().begin(), made.tables().end()));
    main_op = NoOp();
  }
  TENON_RETURN_IF_ERROR(building.status());
  Saver saver({.allow_empty = true});
  TENON_ASSIGN_OR_RETURN(const auto session, MakeLocalSession(graph));
  TENON_RETURN_IF_ERROR(
      ExportSavedModel(*session, saver, folder,
                       {{kDefaultServingSignature,
                         {.inputs = made.inputs(), .outputs = {{"predictions", predictions}}}}},
                       {.main_op = main_op}));
  return true;
}

}  // namespace tenon
