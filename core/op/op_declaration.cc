// SPDX-License-Identifier: Apache-2.0
#include "core/op/op_declaration.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <set>

#include "core/op/op_flags.h"

namespace tenon {
namespace {

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

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool IsOfName(char c) { return IsLetter(c) || IsDigit(c); }
bool IsOfNumber(char c) { return IsOfName(c) || c == '-' || c == '.' || c == '+'; }

class Lexer {
 public:
  explicit Lexer(std::string_view text) : rest_(text) {}

  Token Next() {
    SkipSpace();
    if (rest_.empty()) return {0, "", line_};
    const char c = rest_.front();
    if (c == '"' || c == '\'') return {c, Quoted(c), line_};
    if (rest_.starts_with(">=") || rest_.starts_with("->")) return {c, Take(2), line_};
    if (IsLetter(c)) return {'a', TakeWhile(IsOfName), line_};
    if (IsDigit(c) || c == '-' || c == '.') return {'0', TakeWhile(IsOfNumber), line_};
    return {c, Take(1), line_};
  }

 private:
  void SkipSpace() {
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
  std::string_view Take(size_t n) {
    const std::string_view taken = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return taken;
  }
  std::string_view TakeWhile(bool (*belongs)(char)) {
    size_t n = 0;
    while (n < rest_.size() && belongs(rest_[n])) ++n;
    return Take(n);
  }
  std::string_view Quoted(char quote) {
    size_t end = 1;
    while (end < rest_.size() && rest_[end] != quote && rest_[end] != '\n') {
      end += rest_[end] == '\\' ? 2 : 1;
    }
    if (end >= rest_.size() || rest_[end] != quote) throw Mistake{line_, "a text has no end"};
    return Take(end + 1).substr(1, end - 1);
  }

  std::string_view rest_;
  int line_ = 1;
};

std::string Unescaped(const Token& token) {
  std::string text;
  for (size_t i = 0; i < token.text.size(); ++i) {
    if (token.text[i] != '\\') {
      text += token.text[i];
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

/// The set of types that a word stands for; empty when for none.
DTypeVector NamedTypes(std::string_view name) {
  constexpr DType kFloats[] = {DType::kBFloat16, DType::kHalf, DType::kFloat, DType::kDouble};
  constexpr DType kIntegers[] = {DType::kInt8,  DType::kInt16,  DType::kInt32,  DType::kInt64,
                                 DType::kUInt8, DType::kUInt16, DType::kUInt32, DType::kUInt64};
  constexpr DType kQuantised[] = {DType::kQInt8, DType::kQInt16, DType::kQInt32, DType::kQUInt8,
                                  DType::kQUInt16};
  constexpr DType kComplex[] = {DType::kComplex64, DType::kComplex128};
  DTypeVector types;
  const auto add = [&types](absl::Span<const DType> more) {
    types.insert(types.end(), more.begin(), more.end());
  };
  if (name == "index") return {DType::kInt32, DType::kInt64};
  const bool numeric = name == "numeric", real = name == "real", inexact = name == "inexact";
  if (numeric || real || inexact || name == "floating") add(kFloats);
  if (numeric || real) add(kIntegers);
  if (numeric) add(kQuantised);
  if (numeric || inexact) add(kComplex);
  return types;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : lexer_(text) { Advance(), Advance(); }

  std::vector<OpSchema> Ops() {
    std::vector<OpSchema> ops;
    while (token_.kind != 0) ops.push_back(Op());
    return ops;
  }

 private:
  /// An argument whose type is a name that has not been looked up yet.
  struct Argument {
    ArgSchema schema;
    std::string type;
    int line;
  };

  void Advance() {
    token_ = ahead_;
    ahead_ = lexer_.Next();
  }
  [[noreturn]] void Fail(std::string_view wanted) const {
    const std::string found = token_.kind == 0 ? "the end" : StrCat("'", token_.text, "'");
    throw Mistake{token_.line, StrCat("found ", found, ", wanted ", wanted)};
  }
  bool Is(char kind) const { return token_.kind == kind; }
  bool IsName(std::string_view name) const { return Is('a') && token_.text == name; }
  bool Eat(char kind) {
    if (!Is(kind)) return false;
    Advance();
    return true;
  }
  std::string Want(char kind, std::string_view what) {
    if (!Is(kind)) Fail(what);
    std::string text = kind == '"' || kind == '\'' ? Unescaped(token_) : std::string(token_.text);
    Advance();
    return text;
  }
  std::string Name() { return Want('a', "a name"); }
  void AddText(std::string* doc) { StrAppend(doc, doc->empty() ? "" : " ", Want('"', "a text")); }

  OpSchema Op() {
    if (!IsName("op")) Fail("'op'");
    Advance();
    OpSchema op;
    op.name = Name();
    Want('(', "'('");
    std::vector<Argument> inputs, outputs;
    while (!Eat(')')) {
      if (!inputs.empty()) Want(',', "',' or ')'");
      inputs.push_back(Arg());
    }
    if (Eat('-')) {
      do outputs.push_back(Arg());
      while (Eat(','));
    }
    if (Eat('[')) {
      do Flag(&op);
      while (Eat(','));
      Want(']', "',' or ']'");
    }
    const int line = token_.line;
    while (token_.kind != 0 && !(IsName("op") && ahead_.kind == 'a')) {
      if (Is('"')) {
        AddText(&op.doc);
      } else if (ahead_.kind == ':') {
        Attributes(&op);
      } else {
        ArgumentDoc(inputs, outputs);
      }
    }
    Finish(inputs, &op, &op.inputs);
    Finish(outputs, &op, &op.outputs);
    CheckNames(op, line);
    return op;
  }

  Argument Arg() {
    Argument arg;
    arg.line = token_.line;
    arg.schema.name = Name();
    Want(':', "':'");
    const bool wrapped = ahead_.kind == '(';
    if (wrapped) {
      arg.schema.is_ref = IsName("Ref");
      arg.schema.on_host = IsName("Host");
      if (!arg.schema.is_ref && !arg.schema.on_host) Fail("Ref or Host");
      Advance(), Advance();
    }
    arg.type = Name();
    if (Eat('*')) {
      arg.schema.number_attr = std::move(arg.type);
      arg.type = Name();
    }
    if (wrapped) Want(')', "')'");
    if (Eat('=')) {
      if (!IsName("all_axes")) Fail("all_axes");
      Advance();
      arg.schema.all_axes = true;
    }
    return arg;
  }

  void Flag(OpSchema* op) {
    const std::string_view name = Is('a') ? token_.text : "";
    const auto* const plain = std::find_if(std::begin(kFlags), std::end(kFlags),
                                           [&](const auto& flag) { return flag.first == name; });
    if (plain != std::end(kFlags)) {
      Advance();
      op->*plain->second = plain->first != "no_gradient" && plain->first != "no_function";
    } else if (name == "function") {
      Advance();
      op->function = Name();
    } else if (name == "flow") {
      op->flow = Kind(kFlowKinds);
    } else if (name == "call") {
      op->call = Kind(kCallKinds);
    } else if (name == "neutral_one") {
      op->neutral_one = Kind(kNeutralOnes);
    } else {
      std::string known = "function, flow, call, neutral_one";
      for (const auto& [flag, member] : kFlags) StrAppend(&known, ", ", flag);
      Fail(known);
    }
  }

  /// `flow switch`: the value of the second word.
  template <typename T, size_t kCount>
  T Kind(const std::pair<std::string_view, T> (&kinds)[kCount]) {
    Advance();
    std::string known;
    for (const auto& [name, kind] : kinds) {
      if (IsName(name)) {
        Advance();
        return kind;
      }
      StrAppend(&known, known.empty() ? "" : ", ", name);
    }
    Fail(known);
  }

  /// `names "text"`
  void ArgumentDoc(std::vector<Argument>& inputs, std::vector<Argument>& outputs) {
    std::vector<ArgSchema*> told;
    do {
      const size_t before = told.size();
      for (auto* arguments : {&inputs, &outputs}) {
        for (Argument& arg : *arguments) {
          if (IsName(arg.schema.name)) told.push_back(&arg.schema);
        }
      }
      if (told.size() == before) Fail("an argument's or attribute's name");
      Advance();
    } while (Eat(','));
    std::string doc;
    do AddText(&doc);
    while (Is('"'));
    for (ArgSchema* arg : told) {
      if (!arg->doc.empty()) throw Mistake{token_.line, StrCat(arg->name, " has two texts")};
      arg->doc = doc;
    }
  }

  /// Attributes that commas join, and what is said of them.
  void Attributes(OpSchema* op) {
    const size_t first = op->attrs.size();
    do op->attrs.push_back(Attr());
    while (Eat(','));
    std::string doc;
    while (Is('"')) AddText(&doc);
    for (size_t i = first; i < op->attrs.size(); ++i) op->attrs[i].doc = doc;
  }

  AttrSchema Attr() {
    AttrSchema attr;
    attr.name = Name();
    Want(':', "':'");
    const bool list = IsName("list") && ahead_.kind == '(';
    if (list) Advance(), Advance();
    if (Eat('{')) {
      Allowed(&attr);
    } else {
      attr.allowed_types = NamedTypes(token_.text);
      attr.kind = attr.allowed_types.empty() ? AttrKind() : "type";
      Advance();
    }
    const std::string element = attr.kind;
    if (list) {
      Want(')', "')'");
      attr.kind = StrCat("list(", element, ")");
    }
    if (Eat('>')) {
      if (!list && attr.kind != "int") Fail("no minimum: it is neither int nor list");
      attr.minimum = Number<int64_t>("an integer");
    }
    if (Eat('=')) attr.default_value = list ? List(element) : Value(element);
    return attr;
  }

  std::string AttrKind() const {
    for (const char* kind : {"string", "int", "float", "bool", "type", "shape", "tensor", "func"}) {
      if (IsName(kind)) return kind;
    }
    Fail("a kind of attribute");
  }

  /// Types or texts, up to the closing brace.
  void Allowed(AttrSchema* attr) {
    attr->kind = Is('\'') ? "string" : "type";
    do {
      if (attr->kind == "string") {
        attr->allowed_strings.push_back(Want('\'', "a text in ''"));
      } else {
        attr->allowed_types.push_back(*Value("type").get_if<DType>());
      }
    } while (Eat(','));
    Want('}', "',' or '}'");
  }

  /// `uint8 [1, 2]`
  Attribute VectorValue() {
    const DType type = *Value("type").get_if<DType>();
    if (type != DType::kUInt8) Fail("a tensor of uint8");
    const Attribute elements = List("int");
    std::vector<uint8_t> bytes;
    for (const int64_t e : *elements.get_if<std::vector<int64_t>>()) {
      if (e < 0 || e > 255) Fail("integers from 0 to 255 before");
      bytes.push_back(static_cast<uint8_t>(e));
    }
    return Attribute(Tensor::Vector<uint8_t>(bytes));
  }

  Attribute Value(std::string_view kind) {
    if (kind == "string") return Attribute(Want('\'', "a text in ''"));
    if (kind == "shape") return ShapeValue();
    if (kind == "bool") {
      if (!IsName("true") && !IsName("false")) Fail("true or false");
      return Attribute(Name() == "true");
    }
    if (kind == "tensor") return VectorValue();
    if (kind == "type") {
      const auto type = ParseDType(token_.text);
      if (!type) Fail("a type");
      Advance();
      return Attribute(*type);
    }
    if (kind == "int") return Attribute(Number<int64_t>("an integer"));
    if (kind == "float") return Attribute(Number<float>("a number"));
    Fail(StrCat("no default: there is none for a ", kind));
  }

  template <typename T>
  T Number(std::string_view what) {
    T value{};
    const char* const end = token_.text.data() + token_.text.size();
    const auto [read, error] = std::from_chars(token_.text.data(), end, value);
    if (!Is('0') || error != std::errc() || read != end) Fail(what);
    Advance();
    return value;
  }

  Attribute ShapeValue() {
    if (Eat('?')) return Attribute(PartialShape());
    DimVector dims;
    Want('[', "'[' or '?'");
    while (!Eat(']')) {
      if (!dims.empty()) Want(',', "',' or ']'");
      dims.push_back(Number<int64_t>("an integer"));
    }
    return Attribute(PartialShape(absl::Span<const int64_t>(dims)));
  }

  Attribute List(std::string_view element) {
    std::vector<Attribute> values;
    Want('[', "'['");
    while (!Eat(']')) {
      if (!values.empty()) Want(',', "',' or ']'");
      values.push_back(Value(element));
    }
    return Attribute::ListOf(element, values);
  }

  static void Finish(std::vector<Argument>& from, OpSchema* op, std::vector<ArgSchema>* to) {
    for (Argument& arg : from) {
      ArgSchema& schema = arg.schema;
      const AttrSchema* number = op->FindAttr(schema.number_attr);
      if (!schema.number_attr.empty() && (number == nullptr || number->kind != "int")) {
        throw Mistake{arg.line, StrCat("there is no int attribute ", schema.number_attr)};
      }
      const AttrSchema* attr = op->FindAttr(arg.type);
      if (attr == nullptr) {
        const auto type = ParseDType(arg.type);
        if (!type) throw Mistake{arg.line, StrCat("'", arg.type, "' is no type and no attribute")};
        schema.type = *type;
      } else if (attr->kind == "type") {
        schema.type_attr = arg.type;
      } else if (attr->kind == "list(type)" && number == nullptr) {
        schema.type_list_attr = arg.type;
      } else {
        throw Mistake{arg.line, StrCat("attribute ", arg.type, " is no type")};
      }
      to->push_back(std::move(schema));
    }
  }

  static void CheckNames(const OpSchema& op, int line) {
    std::set<std::string_view> inputs_and_attrs, outputs;
    const auto add = [&](std::set<std::string_view>& names, const std::string& name) {
      if (!names.insert(name).second) {
        throw Mistake{line, StrCat("op ", op.name, " has two of the name ", name)};
      }
    };
    for (const ArgSchema& arg : op.inputs) add(inputs_and_attrs, arg.name);
    for (const AttrSchema& attr : op.attrs) add(inputs_and_attrs, attr.name);
    for (const ArgSchema& arg : op.outputs) add(outputs, arg.name);
  }

  Lexer lexer_;
  Token token_, ahead_;
};

}  // namespace

StatusOr<std::vector<OpSchema>> ParseOpDeclarations(std::string_view text, std::string_view file) {
  try {
    return Parser(text).Ops();
  } catch (const Mistake& mistake) {
    return InvalidArgument(file, ":", mistake.line, ": ", mistake.what);
  }
}

}  // namespace tenon
