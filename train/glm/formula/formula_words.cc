// SPDX-License-Identifier: Apache-2.0
#include "train/glm/formula/formula_words.h"

#include <algorithm>
#include <charconv>

#include "core/base/closest_name.h"
#include "core/base/strings.h"

namespace tenon {
namespace {

bool IsNameStart(char c) {
  const auto u = static_cast<unsigned char>(c);
  return (u | 32) - 'a' < 26u || c == '.' || c == '_' || u >= 0x80;
}
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

/// The token at `at`, which is no white space.
StatusOr<FormulaToken> TokenAt(std::string_view formula, size_t at) {
  using Kind = FormulaToken::Kind;
  const char c = formula[at];
  const bool begins_number =
      IsDigit(c) || (c == '.' && at + 1 < formula.size() && IsDigit(formula[at + 1]));
  if (begins_number) {
    FormulaToken token;
    token.kind = Kind::kNumber;
    token.begin = at;
    const char* const begin = formula.data() + at;
    const auto [end, error] = std::from_chars(begin, formula.data() + formula.size(), token.number);
    if (error != std::errc()) {
      return InvalidArgument("formula, place ", at + 1, ": the number is too large");
    }
    token.end = at + static_cast<size_t>(end - begin);
    token.text = formula.substr(at, token.end - at);
    return token;
  }
  if (IsNameStart(c)) {
    size_t end = at + 1;
    while (end < formula.size() && (IsNameStart(formula[end]) || IsDigit(formula[end]))) ++end;
    return FormulaToken{Kind::kName, std::string(formula.substr(at, end - at)), 0, at, end};
  }
  if (c == '`' || c == '"' || c == '\'') {
    const size_t end = formula.find(c, at + 1);
    if (end == std::string_view::npos) {
      return InvalidArgument("formula, place ", at + 1, ": the ", formula.substr(at, 1),
                             " has no second one");
    }
    return FormulaToken{c == '`' ? Kind::kName : Kind::kText,
                        std::string(formula.substr(at + 1, end - at - 1)), 0, at, end + 1};
  }
  const size_t size = formula.substr(at, 2) == "==" ? 2 : 1;
  if (size == 1 && std::string_view("~+-*/^:(),=").find(c) == std::string_view::npos) {
    return InvalidArgument("formula, place ", at + 1, ": found '", formula.substr(at, 1),
                           "', wanted a name, a number or one of ~ + - * / ^ : ( ) ,");
  }
  return FormulaToken{Kind::kSign, std::string(formula.substr(at, size)), 0, at, at + size};
}

}  // namespace

StatusOr<FormulaWords> FormulaWords::Cut(std::string_view text,
                                         const std::vector<std::string>& columns) {
  std::vector<FormulaToken> tokens;
  size_t at = 0;
  while (true) {
    at = std::min(text.find_first_not_of(" \t\r\n", at), text.size());
    if (at == text.size()) break;
    TENON_ASSIGN_OR_RETURN(FormulaToken token, TokenAt(text, at));
    at = token.end;
    tokens.push_back(std::move(token));
  }
  FormulaToken end;
  end.begin = end.end = text.size();
  tokens.push_back(end);
  return FormulaWords(text, columns, std::move(tokens));
}

bool FormulaWords::IsCall() const {
  return next().kind == FormulaToken::Kind::kName && second().IsSign("(") &&
         text_[next().begin] != '`';
}

bool FormulaWords::IsDot() const {
  return next().kind == FormulaToken::Kind::kName && next().text == "." &&
         text_[next().begin] == '.';
}

bool FormulaWords::TakeIf(std::string_view sign) {
  if (!next().IsSign(sign)) return false;
  ++at_;
  return true;
}

Status FormulaWords::Take(std::string_view sign) {
  return TakeIf(sign) ? OkStatus() : FormulaError(next(), StrCat("'", sign, "'"));
}

StatusOr<std::string> FormulaWords::TakeColumn() {
  const FormulaToken& token = next();
  if (token.kind != FormulaToken::Kind::kName) return FormulaError(token, "the name of a column");
  if (std::find(columns_.begin(), columns_.end(), token.text) == columns_.end()) {
    return InvalidArgument("formula, place ", token.begin + 1, ": there is no column '", token.text,
                           "'", DidYouMeanOrNames(token.text, columns_));
  }
  return TakeToken().text;
}

StatusOr<double> FormulaWords::TakeNumber() {
  const bool negative = TakeIf("-");
  if (next().kind != FormulaToken::Kind::kNumber) return FormulaError(next(), "a number");
  const double number = TakeToken().number;
  return negative ? -number : number;
}

std::string FormulaWords::TextFrom(size_t begin) const {
  return std::string(text_.substr(begin, tokens_[at_ - 1].end - begin));
}

Status FormulaError(const FormulaToken& found, std::string_view wanted) {
  const std::string shown =
      found.kind == FormulaToken::Kind::kEnd ? "the end" : StrCat("'", found.text, "'");
  return InvalidArgument("formula, place ", found.begin + 1, ": found ", shown, ", wanted ",
                         wanted);
}

}  // namespace tenon
