// SPDX-License-Identifier: Apache-2.0
#include "train/glm/formula/formula.h"

#include <algorithm>
#include <cmath>

#include "core/base/strings.h"
#include "train/glm/formula/formula_words.h"
#include "train/glm/formula/parse_numbers.h"

namespace tenon {
namespace {

using TokenKind = FormulaToken::Kind;

/// Variables by their indices, sorted; at least one.
using TermSet = std::vector<int64_t>;
/// Terms in the order in which they came, each once.
using Terms = std::vector<TermSet>;

constexpr int64_t kMostTerms = 10000;
constexpr int kDeepestTerm = 100;  // parentheses within each other

void AddTerm(TermSet term, Terms* terms) {
  if (std::find(terms->begin(), terms->end(), term) == terms->end()) {
    terms->push_back(std::move(term));
  }
}

Terms Sum(Terms a, const Terms& b) {
  for (const TermSet& term : b) AddTerm(term, &a);
  return a;
}

Terms Difference(Terms a, const Terms& b) {
  std::erase_if(a, [&](const TermSet& t) { return std::find(b.begin(), b.end(), t) != b.end(); });
  return a;
}

TermSet Union(const TermSet& a, const TermSet& b) {
  TermSet both;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

class FormulaParser {
 public:
  FormulaParser(FormulaWords words, const std::vector<std::string>& reserved)
      : words_(std::move(words)), reserved_(reserved) {}

  StatusOr<Formula> Parse() {
    TENON_RETURN_IF_ERROR(ParseResponse());
    TENON_RETURN_IF_ERROR(words_.Take("~"));
    TENON_ASSIGN_OR_RETURN(const Terms terms, ParseSum());
    if (words_.next().kind != TokenKind::kEnd) {
      return FormulaError(words_.next(), "an operator (+ - * / : ^) or the end");
    }
    Finish(terms);
    for (const FormulaTerm& term : formula_.terms) {
      for (const int64_t v : term.variables) {
        if (formula_.variables[v].label != formula_.response.label) continue;
        return InvalidArgument("formula: '", formula_.response.label,
                               "' is the response, found it among the terms too");
      }
    }
    return std::move(formula_);
  }

 private:
  // The left side.

  Status ParseResponse() {
    FormulaResponse& response = formula_.response;
    const size_t begin = words_.next().begin;
    if (words_.IsCall() && words_.next().text == "cbind") {
      words_.TakeCall();
      response.kind = FormulaResponse::Kind::kCounts;
      TENON_ASSIGN_OR_RETURN(response.number, ParseNumericExpression(&words_));
      TENON_RETURN_IF_ERROR(words_.Take(","));
      TENON_ASSIGN_OR_RETURN(response.failures, ParseNumericExpression(&words_));
      TENON_RETURN_IF_ERROR(words_.Take(")"));
    } else if (words_.next().kind == TokenKind::kName && words_.second().IsSign("==")) {
      response.kind = FormulaResponse::Kind::kEquals;
      TENON_ASSIGN_OR_RETURN(response.column, words_.TakeColumn());
      words_.TakeToken();
      if (words_.next().kind != TokenKind::kText && words_.next().kind != TokenKind::kNumber) {
        return FormulaError(words_.next(), "a level, such as \"yes\" or 1");
      }
      response.text = words_.TakeToken().text;
    } else {
      TENON_ASSIGN_OR_RETURN(response.number, ParseNumericExpression(&words_));
      if (response.number.columns.empty()) {
        return InvalidArgument("formula: the left side, '", words_.TextFrom(begin),
                               "', has no column");
      }
    }
    response.label = words_.TextFrom(begin);
    return OkStatus();
  }

  // Terms.

  /// 1 and 0 are no terms: wherever they stand, the last one decides on the intercept.
  StatusOr<Terms> ParseSum() {
    Terms terms;
    bool minus = words_.TakeIf("-");
    if (!minus) words_.TakeIf("+");
    while (true) {
      const FormulaToken first = words_.next();
      if (first.kind == TokenKind::kNumber) {  // the intercept
        if (first.number != 0 && first.number != 1) return FormulaError(first, "0, 1 or a term");
        words_.TakeToken();
        formula_.has_intercept = (first.number == 1) == (adds_ != minus);
      } else if (words_.IsCall() && first.text == "offset") {
        if (minus || depth_ > 0) return OffsetError(first);
        TENON_RETURN_IF_ERROR(ParseOffset());
      } else {
        if (minus) adds_ = !adds_;
        TENON_ASSIGN_OR_RETURN(const Terms more, ParseCrossing());
        if (minus) adds_ = !adds_;
        terms = minus ? Difference(std::move(terms), more) : Sum(std::move(terms), more);
      }
      if (static_cast<int64_t>(terms.size()) > kMostTerms) {
        return InvalidArgument("formula: it has more than ", kMostTerms, " terms");
      }
      minus = words_.next().IsSign("-");
      if (!minus && !words_.next().IsSign("+")) return terms;
      words_.TakeToken();
    }
  }
  Status ParseOffset() {
    const FormulaToken name = words_.next();
    words_.TakeCall();
    TENON_ASSIGN_OR_RETURN(NumericExpression offset, ParseNumericExpression(&words_));
    TENON_RETURN_IF_ERROR(words_.Take(")"));
    const FormulaToken& next = words_.next();
    if (next.kind != TokenKind::kEnd && !next.IsSign("+") && !next.IsSign("-")) {
      return OffsetError(name);
    }
    formula_.offsets.push_back(std::move(offset));
    return OkStatus();
  }
  static Status OffsetError(const FormulaToken& found) {
    return FormulaError(found, "an offset to stand alone, with + before it");
  }
  /// a * b stands for a + b + a:b, and a / b for a + a:b.
  StatusOr<Terms> ParseCrossing() {
    TENON_ASSIGN_OR_RETURN(Terms terms, ParseInteraction());
    while (words_.next().IsSign("*") || words_.next().IsSign("/")) {
      const FormulaToken sign = words_.TakeToken();
      TENON_ASSIGN_OR_RETURN(const Terms right, ParseInteraction());
      if (sign.text == "*") {
        TENON_ASSIGN_OR_RETURN(const Terms products, Products(terms, right, sign));
        terms = Sum(Sum(std::move(terms), right), products);
      } else {
        TermSet all;
        for (const TermSet& term : terms) all = Union(all, term);
        TENON_ASSIGN_OR_RETURN(const Terms products, Products({all}, right, sign));
        terms = Sum(std::move(terms), products);
      }
    }
    return terms;
  }
  StatusOr<Terms> ParseInteraction() {
    TENON_ASSIGN_OR_RETURN(Terms terms, ParsePower());
    while (words_.next().IsSign(":")) {
      const FormulaToken sign = words_.TakeToken();
      TENON_ASSIGN_OR_RETURN(const Terms right, ParsePower());
      TENON_ASSIGN_OR_RETURN(terms, Products(terms, right, sign));
    }
    return terms;
  }
  StatusOr<Terms> Products(const Terms& a, const Terms& b, const FormulaToken& sign) {
    if (static_cast<int64_t>(a.size() * b.size()) > kMostTerms) {
      return FormulaError(sign, StrCat("at most ", kMostTerms, " terms"));
    }
    Terms products;
    for (const TermSet& left : a) {
      for (const TermSet& right : b) AddTerm(Union(left, right), &products);
    }
    return products;
  }
  /// (a + b)^2 stands for (a + b) * (a + b).
  StatusOr<Terms> ParsePower() {
    TENON_ASSIGN_OR_RETURN(Terms terms, ParseTerm());
    if (!words_.next().IsSign("^")) return terms;
    const FormulaToken sign = words_.TakeToken();
    const FormulaToken power = words_.next();
    const bool whole = power.kind == TokenKind::kNumber && power.number == std::floor(power.number);
    if (!whole || power.number < 1 || power.number > 10) {
      return FormulaError(power, "a whole number from 1 to 10 (I(x^2) is the square of numbers)");
    }
    words_.TakeToken();
    const Terms base = terms;
    for (int i = 1; i < power.number; ++i) {
      TENON_ASSIGN_OR_RETURN(terms, Products(terms, base, sign));
    }
    return terms;
  }
  StatusOr<Terms> ParseTerm() {
    if (words_.TakeIf("(")) {
      if (++depth_ > kDeepestTerm)
        return FormulaError(words_.next(), "no more parentheses within each other");
      TENON_ASSIGN_OR_RETURN(Terms terms, ParseSum());
      --depth_;
      TENON_RETURN_IF_ERROR(words_.Take(")"));
      return terms;
    }
    if (words_.IsCall()) return ParseCall();
    if (words_.next().kind != TokenKind::kName) return FormulaError(words_.next(), "a term");
    if (words_.IsDot()) {
      words_.TakeToken();
      return AllOthers();
    }
    TENON_ASSIGN_OR_RETURN(const std::string column, words_.TakeColumn());
    return Terms{{IndexOfColumn(column)}};
  }
  /// Every column that is not on the left side.
  Terms AllOthers() {
    const std::vector<std::string> left = ResponseColumns();
    const auto is_in = [](const std::vector<std::string>& names, const std::string& name) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    Terms terms;
    for (const std::string& column : words_.columns()) {
      if (is_in(left, column) || is_in(reserved_, column)) continue;
      AddTerm({IndexOfColumn(column)}, &terms);
    }
    return terms;
  }
  std::vector<std::string> ResponseColumns() const {
    const FormulaResponse& response = formula_.response;
    std::vector<std::string> columns = response.number.columns;
    columns.insert(columns.end(), response.failures.columns.begin(),
                   response.failures.columns.end());
    if (response.kind == FormulaResponse::Kind::kEquals) columns.push_back(response.column);
    return columns;
  }

  StatusOr<Terms> ParseCall() {
    const FormulaToken name = words_.next();
    const size_t begin = name.begin;
    FormulaVariable variable;
    if (IsNumericFunction(name.text)) {
      variable.kind = FormulaVariable::Kind::kNumber;
      TENON_RETURN_IF_ERROR(ParseNumericFunction(&words_, &variable.number));
      if (variable.number.columns.empty()) {
        return InvalidArgument("formula, place ", begin + 1, ": '", words_.TextFrom(begin),
                               "' has no column");
      }
      variable.label = words_.TextFrom(begin);
      return Terms{{IndexOf(std::move(variable))}};
    }
    words_.TakeCall();
    if (name.text == "C") {
      TENON_RETURN_IF_ERROR(ParseCategory(&variable));
    } else if (name.text == "cut") {
      TENON_RETURN_IF_ERROR(ParseCut(&variable));
    } else if (name.text == "hash") {
      TENON_RETURN_IF_ERROR(ParseHash(&variable));
    } else if (name.text == "factor" || name.text == "as.factor") {
      return FormulaError(name, "C(): C(month) has categories, as R's factor(month)");
    } else {
      return name.text == "offset" ? OffsetError(name)
                                   : FormulaError(name, StrCat("C, cut, hash, offset, I, log, ",
                                                               "log1p, sqrt, exp or abs"));
    }
    TENON_RETURN_IF_ERROR(words_.Take(")"));
    if (variable.label.empty()) variable.label = words_.TextFrom(begin);
    return Terms{{IndexOf(std::move(variable))}};
  }
  Status ParseCategory(FormulaVariable* variable) {
    variable->kind = FormulaVariable::Kind::kCategory;
    TENON_ASSIGN_OR_RETURN(variable->column, words_.TakeColumn());
    // The reference is no part of the name: a model has one variable of a column.
    variable->label = StrCat("C(", variable->column, ")");
    if (!words_.TakeIf(",")) return OkStatus();
    if (words_.next().kind != TokenKind::kName || words_.next().text != "ref") {
      return FormulaError(words_.next(), "ref=");
    }
    words_.TakeToken();
    TENON_RETURN_IF_ERROR(words_.Take("="));
    const FormulaToken level = words_.next();
    if (level.kind == TokenKind::kEnd || level.kind == TokenKind::kSign) {
      return FormulaError(level, "a level, or frequent");
    }
    words_.TakeToken();
    variable->frequent_reference = level.kind == TokenKind::kName && level.text == "frequent";
    if (!variable->frequent_reference) variable->reference = level.text;
    return OkStatus();
  }
  Status ParseCut(FormulaVariable* variable) {
    variable->kind = FormulaVariable::Kind::kCut;
    TENON_ASSIGN_OR_RETURN(variable->number, ParseNumericExpression(&words_));
    while (words_.TakeIf(",")) {
      const FormulaToken place = words_.next();
      TENON_ASSIGN_OR_RETURN(const double number, words_.TakeNumber());
      if (!variable->breaks.empty() && number <= variable->breaks.back()) {
        return FormulaError(place, StrCat("a number above ", variable->breaks.back()));
      }
      variable->breaks.push_back(number);
    }
    if (variable->breaks.size() < 2) {
      return FormulaError(words_.next(), "two places to cut at or more: , 1, 5");
    }
    if (variable->number.columns.empty()) return FormulaError(words_.next(), "a column to cut");
    return OkStatus();
  }
  Status ParseHash(FormulaVariable* variable) {
    variable->kind = FormulaVariable::Kind::kHash;
    TENON_ASSIGN_OR_RETURN(variable->column, words_.TakeColumn());
    TENON_RETURN_IF_ERROR(words_.Take(","));
    const FormulaToken place = words_.next();
    TENON_ASSIGN_OR_RETURN(double buckets, words_.TakeNumber());
    if (words_.TakeIf("^")) {
      TENON_ASSIGN_OR_RETURN(const double power, words_.TakeNumber());
      buckets = std::pow(buckets, power);
    }
    if (!(buckets >= 2 && buckets <= 1 << 30) || buckets != std::floor(buckets)) {
      return FormulaError(place, "a whole number of buckets, from 2 to 2^30");
    }
    variable->num_buckets = static_cast<int64_t>(buckets);
    return OkStatus();
  }

  /// The variable of that label; a reference that was chosen once holds everywhere.
  int64_t IndexOf(FormulaVariable variable) {
    std::vector<FormulaVariable>& variables = formula_.variables;
    for (size_t i = 0; i < variables.size(); ++i) {
      if (variables[i].label != variable.label) continue;
      if (variable.reference || variable.frequent_reference) variables[i] = std::move(variable);
      return static_cast<int64_t>(i);
    }
    variables.push_back(std::move(variable));
    return static_cast<int64_t>(variables.size()) - 1;
  }

  int64_t IndexOfColumn(const std::string& column) {
    FormulaVariable variable;
    variable.label = variable.column = column;
    return IndexOf(std::move(variable));
  }

  /// Puts the terms of fewer variables first, and leaves out variables that no term has.
  void Finish(Terms terms) {
    Terms in_order;
    for (size_t degree = 1; in_order.size() < terms.size(); ++degree) {
      for (const TermSet& term : terms) {
        if (term.size() == degree) in_order.push_back(term);
      }
    }
    terms = std::move(in_order);
    std::vector<FormulaVariable> all;
    all.swap(formula_.variables);
    std::vector<int64_t> places(all.size(), -1);
    for (size_t v = 0; v < all.size(); ++v) {
      const auto has = [&](const TermSet& term) {
        return std::find(term.begin(), term.end(), static_cast<int64_t>(v)) != term.end();
      };
      if (std::none_of(terms.begin(), terms.end(), has)) continue;
      places[v] = static_cast<int64_t>(formula_.variables.size());
      formula_.variables.push_back(std::move(all[v]));
    }
    for (const TermSet& term : terms) {
      FormulaTerm made;
      for (const int64_t v : term) {
        made.variables.push_back(places[v]);
        StrAppend(&made.label, made.label.empty() ? "" : ":", formula_.variables[places[v]].label);
      }
      formula_.terms.push_back(std::move(made));
    }
  }

  FormulaWords words_;
  const std::vector<std::string>& reserved_;
  int depth_ = 0;     // of parentheses
  bool adds_ = true;  // or takes away
  Formula formula_;
};

}  // namespace

std::vector<std::string> Formula::Columns() const {
  std::vector<std::string> columns;
  const auto add = [&](const std::string& column) {
    const bool known = std::find(columns.begin(), columns.end(), column) != columns.end();
    if (!column.empty() && !known) columns.push_back(column);
  };
  const auto add_all = [&](const NumericExpression& number) {
    for (const std::string& column : number.columns) add(column);
  };
  add(response.column);
  add_all(response.number);
  add_all(response.failures);
  for (const FormulaVariable& variable : variables) {
    add(variable.column);
    add_all(variable.number);
  }
  for (const NumericExpression& offset : offsets) add_all(offset);
  return columns;
}

StatusOr<Formula> ParseFormula(std::string_view text, const std::vector<std::string>& columns,
                               const std::vector<std::string>& reserved) {
  TENON_ASSIGN_OR_RETURN(FormulaWords words, FormulaWords::Cut(text, columns));
  return FormulaParser(std::move(words), reserved).Parse();
}

}  // namespace tenon
