// SPDX-License-Identifier: Apache-2.0
#include "core/op/op_declaration.h"

#include <algorithm>
#include <charconv>

#include "core/op/declared_op.h"
#include "core/op/op_flags.h"
#include "core/op/op_tokens.h"
#include "core/op/op_traits.h"

namespace tenon {
namespace {

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

  std::vector<DeclaredOp> Ops() {
    std::vector<DeclaredOp> ops;
    while (token_.kind != 0) ops.push_back(Op());
    return ops;
  }

 private:
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

  DeclaredOp Op() {
    if (!IsName("op")) Fail("'op'");
    Advance();
    DeclaredOp op;
    op.line = token_.line;
    op.schema.name = Name();
    op.has_signature = Is('(');
    if (op.has_signature) Signature(&op);
    if (Eat('=')) {
      Twin(&op);
    } else if (!op.has_signature) {
      Fail("'(' or '='");
    }
    op.has_flags = Eat('[');
    if (op.has_flags) {
      do Flag(&op.schema);
      while (Eat(','));
      Want(']', "',' or ']'");
    }
    while (token_.kind != 0 && !(IsName("op") && ahead_.kind == 'a')) {
      if (Is('"')) {
        AddText(&op.schema.doc);
      } else if (ahead_.kind == ':') {
        Attributes(&op.schema);
      } else {
        ArgumentTexts(&op);
      }
    }
    return op;
  }

  /// `(inputs) -> outputs`
  void Signature(DeclaredOp* op) {
    Want('(', "'('");
    while (!Eat(')')) {
      if (!op->inputs.empty()) Want(',', "',' or ')'");
      op->inputs.push_back(Arg(true));
    }
    if (Eat('-')) {
      do op->outputs.push_back(Arg(false));
      while (Eat(','));
    }
  }

  /// `Base with a: T, b: T before c without d, e`
  void Twin(DeclaredOp* op) {
    op->base = Name();
    if (IsName("with")) {
      do {
        Advance();
        op->changes.push_back({Arg(false), ""});
        if (!IsName("before")) continue;
        Advance();
        op->changes.back().before = Name();
      } while (Is(','));
    }
    if (IsName("without")) {
      do {
        Advance();
        op->without.push_back(Name());
      } while (Is(','));
    }
  }

  DeclaredArg Arg(bool is_input) {
    DeclaredArg arg;
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
    if (Is('[') && !IsFlag(ahead_.text)) arg.schema.shape = Pattern();
    if (is_input && Eat('=')) {
      if (!IsName("all_axes")) Fail("all_axes");
      Advance();
      arg.schema.all_axes = true;
    }
    return arg;
  }

  /// `[..., n, n + 1]`; what the names stand for is found later.
  ShapePattern Pattern() {
    ShapePattern pattern;
    Advance();
    pattern.open = Eat('.');
    bool first = !pattern.open;
    while (!Eat(']')) {
      if (!first) Want(',', "',' or ']'");
      first = false;
      DimPattern dim;
      if (Is('0')) {
        dim.kind = DimPattern::Kind::kNumber;
        dim.number = Number<int64_t>("a size");
      } else if (!Eat('?')) {
        dim.kind = DimPattern::Kind::kSymbol;
        dim.name = Want('a', "a size: a number, a name or '?'");
        if (Eat('[')) {
          dim.element = Number<int>("a place");
          Want(']', "']'");
        }
        const bool minus = Is('-');
        if (minus || Is('+')) {
          Advance();
          dim.number = (minus ? -1 : 1) * Number<int64_t>("a number");
        }
      }
      pattern.dims.push_back(std::move(dim));
    }
    return pattern;
  }

  static bool IsFlag(std::string_view name) {
    return name == "function" || name == "flow" || name == "call" || name == "neutral_one" ||
           FlagOf(kFlags, name) != nullptr || FlagOf(kTraits, name) != nullptr;
  }

  /// The entry of that name in a table of flags; null when there is none.
  template <typename Flag, size_t kCount>
  static const Flag* FlagOf(const Flag (&flags)[kCount], std::string_view name) {
    const Flag* const found = std::find_if(std::begin(flags), std::end(flags),
                                           [&](const Flag& flag) { return flag.first == name; });
    return found == std::end(flags) ? nullptr : found;
  }

  void Flag(OpSchema* op) {
    const std::string_view name = Is('a') ? token_.text : "";
    if (const NamedFlag* const plain = FlagOf(kFlags, name)) {
      Advance();
      op->*plain->second = plain->first != "no_gradient" && plain->first != "no_function";
    } else if (const auto* const trait = FlagOf(kTraits, name)) {
      Advance();
      op->Add(trait->second);
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
      for (const auto& [flag, trait] : kTraits) StrAppend(&known, ", ", flag);
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
  void ArgumentTexts(DeclaredOp* op) {
    const size_t first = op->texts.size();
    do op->texts.push_back({Want('a', "an argument's or attribute's name"), "", token_.line});
    while (Eat(','));
    std::string text;
    do AddText(&text);
    while (Is('"'));
    for (size_t i = first; i < op->texts.size(); ++i) op->texts[i].text = text;
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

  Lexer lexer_;
  Token token_, ahead_;
};

}  // namespace

StatusOr<std::vector<OpSchema>> ParseOpDeclarations(std::string_view text, std::string_view file) {
  try {
    return FinishedOps(Parser(text).Ops());
  } catch (const Mistake& mistake) {
    return InvalidArgument(file, ":", mistake.line, ": ", mistake.what);
  }
}

}  // namespace tenon
