// SPDX-License-Identifier: Apache-2.0
#include "core/op/op_tokens.h"

#include <algorithm>

namespace tenon {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsOfName(char c) { return IsLetter(c) || IsDigit(c); }
bool IsOfNumber(char c) { return IsOfName(c) || c == '-' || c == '.' || c == '+'; }

}  // namespace

Token Lexer::Next() {
  SkipSpace();
  if (rest_.empty()) return {0, "", line_};
  const char c = rest_.front();
  const int line = line_;
  if (c == '"' || c == '\'') return {c, Quoted(c), line};
  for (const std::string_view sign : {">=", "->", "..."}) {
    if (rest_.starts_with(sign)) return {c, Take(sign.size()), line};
  }
  if (IsLetter(c)) return {'a', TakeWhile(IsOfName), line};
  const bool number =
      IsDigit(c) || c == '.' || (c == '-' && rest_.size() > 1 && IsOfNumber(rest_[1]));
  if (number) return {'0', TakeWhile(IsOfNumber), line};
  return {c, Take(1), line};
}

void Lexer::SkipSpace() {
  while (!rest_.empty()) {
    const char c = rest_.front();
    if (c == '#') {
      rest_.remove_prefix(std::min(rest_.find('\n'), rest_.size()));
    } else if (c == ' ' || c == '\n') {
      line_ += c == '\n';
      rest_.remove_prefix(1);
    } else {
      return;
    }
  }
}

std::string_view Lexer::Take(size_t n) {
  const std::string_view taken = rest_.substr(0, n);
  rest_.remove_prefix(n);
  return taken;
}

std::string_view Lexer::TakeWhile(bool (*belongs)(char)) {
  size_t n = 0;
  while (n < rest_.size() && belongs(rest_[n])) ++n;
  return Take(n);
}

std::string_view Lexer::Quoted(char quote) {
  const int line = line_;
  size_t end = 1;
  while (end < rest_.size() && rest_[end] != quote && (rest_[end] != '\n' || quote == '"')) {
    line_ += rest_[end] == '\n';
    end += rest_[end] == '\\' ? 2 : 1;
  }
  if (end >= rest_.size() || rest_[end] != quote) throw Mistake{line, "a text has no end"};
  return Take(end + 1).substr(1, end - 1);
}

std::string Unescaped(const Token& token) {
  std::string text;
  text.reserve(token.text.size());
  for (size_t i = 0; i < token.text.size(); ++i) {
    const size_t begin = i;
    while (i < token.text.size() && token.text[i] != '\n' && token.text[i] != '\\') ++i;
    text += token.text.substr(begin, i - begin);
    if (i == token.text.size()) break;
    if (token.text[i] == '\n') {
      while (text.ends_with(' ')) text.pop_back();
      while (i + 1 < token.text.size() && token.text[i + 1] == ' ') ++i;
      text += ' ';
      continue;
    }
    const char escaped = token.text[++i];
    if (escaped == 'n') {
      text += '\n';
    } else if (escaped == 't') {
      text += '\t';
    } else if (escaped == '\\' || escaped == token.kind) {
      text += escaped;
    } else {
      throw Mistake{token.line, "a backslash stands before n, t, a quote or a backslash"};
    }
  }
  return text;
}

}  // namespace tenon
