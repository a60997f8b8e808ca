// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

// The pieces of the language of op_declaration.h.

namespace tenon {

/// A piece of the declarations. `kind` is the character itself for punctuation, '>' for ">=", '-'
/// for "->", 'a' for a name, '0' for a number, '"' and '\'' for texts, and 0 at the end.
struct Token {
  char kind = 0;
  std::string_view text;  // between the quotes, escapes as they stand
  int line = 1;
};

/// A mistake in a declaration; caught where parsing begins.
struct Mistake {
  int line;
  std::string what;
};

/// Takes a text apart from its beginning.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : rest_(text) {}

  /// The next piece; of kind 0 at the end, and from then on. Throws a Mistake.
  Token Next();

 private:
  void SkipSpace();
  std::string_view Take(size_t n);
  std::string_view TakeWhile(bool (*belongs)(char));
  std::string_view Quoted(char quote);

  std::string_view rest_;
  int line_ = 1;
};

/// The text of a token of kind '"' or '\''. In one of kind '"', which documents, a line's end and
/// the spaces around it are one space. Throws a Mistake.
std::string Unescaped(const Token& token);

}  // namespace tenon
