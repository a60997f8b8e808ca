// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace tenon {

/// A word of a formula.
struct FormulaToken {
  enum class Kind { kName, kNumber, kText, kSign, kEnd };
  Kind kind = Kind::kEnd;
  std::string text;  // a name without backquotes, a text without quotes
  double number = 0;
  size_t begin = 0, end = 0;  // in the formula

  bool IsSign(std::string_view sign) const { return kind == Kind::kSign && text == sign; }
};

/// The words of a formula, read one after the other. Names are of letters, digits, '_' and '.', and
/// begin with no digit; others stand between backquotes.
class FormulaWords {
 public:
  /// `text` and `columns`, the names of a table's columns, must outlive it. InvalidArgument for a
  /// character that no word has.
  static StatusOr<FormulaWords> Cut(std::string_view text, const std::vector<std::string>& columns);

  const FormulaToken& next() const { return tokens_[at_]; }
  /// The one behind the next, which is not the end.
  const FormulaToken& second() const { return tokens_[at_ + 1]; }
  const std::vector<std::string>& columns() const { return columns_; }
  /// Whether a function's name and a parenthesis come.
  bool IsCall() const;
  /// Whether a point comes that stands for other columns.
  bool IsDot() const;

  FormulaToken TakeToken() { return tokens_[at_++]; }
  /// Passes over a function's name and the parenthesis.
  void TakeCall() { at_ += 2; }
  bool TakeIf(std::string_view sign);
  Status Take(std::string_view sign);
  StatusOr<std::string> TakeColumn();
  /// A number, perhaps with a minus.
  StatusOr<double> TakeNumber();

  /// The text from a place to the end of what was taken last.
  std::string TextFrom(size_t begin) const;

 private:
  FormulaWords(std::string_view text, const std::vector<std::string>& columns,
               std::vector<FormulaToken> tokens)
      : text_(text), columns_(columns), tokens_(std::move(tokens)) {}

  std::string_view text_;
  const std::vector<std::string>& columns_;
  std::vector<FormulaToken> tokens_;  // the last one is the end
  size_t at_ = 0;
};

/// The error at a token.
Status FormulaError(const FormulaToken& found, std::string_view wanted);

}  // namespace tenon
