// SPDX-License-Identifier: Apache-2.0
#include "core/op_schema.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace tenon {
namespace {

/// Reads tokens off the front of a text.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  bool Eat(std::string_view token) {
    SkipSpace();
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  std::string_view Word() {
    SkipSpace();
    size_t n = 0;
    while (n < rest_.size() && (std::isalnum(static_cast<unsigned char>(rest_[n])) ||
                                rest_[n] == '_')) {
      ++n;
    }
    const std::string_view word = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return word;
  }
  std::string_view Until(char end) {
    const std::string_view text = rest_.substr(0, rest_.find(end));
    rest_.remove_prefix(text.size());
    return text;
  }
  std::string_view rest() {
    SkipSpace();
    return rest_;
  }
  bool AtEnd() { return rest().empty(); }

 private:
  void SkipSpace() {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
  }
  std::string_view rest_;
};

/// A quoted text, or nullopt.
std::optional<std::string> ReadQuoted(Scanner& in) {
  for (const char quote : {'\'', '"'}) {
    if (in.Eat(std::string_view(&quote, 1))) {
      std::string text(in.Until(quote));
      if (!in.Eat(std::string_view(&quote, 1))) return std::nullopt;
      return text;
    }
  }
  return std::nullopt;
}

std::optional<PartialShape> ReadShape(Scanner& in) {
  if (in.Eat("{")) {  // { unknown_rank: true }
    if (in.Eat("}")) return PartialShape(Shape());
    if (!in.Eat("unknown_rank: true") || !in.Eat("}")) return std::nullopt;
    return PartialShape();
  }
  if (!in.Eat("[")) return std::nullopt;
  DimVector dims;
  while (!in.Eat("]")) {
    dims.push_back(std::atoll(std::string(in.Word()).c_str()));
    in.Eat(",");
    if (in.AtEnd()) return std::nullopt;
  }
  return PartialShape(absl::Span<const int64_t>(dims));
}

std::optional<Attribute> ReadScalar(std::string_view kind, Scanner& in) {
  if (kind == "string") {
    auto text = ReadQuoted(in);
    return text ? std::optional<Attribute>(*text) : std::nullopt;
  }
  if (kind == "shape") {
    auto shape = ReadShape(in);
    return shape ? std::optional<Attribute>(*shape) : std::nullopt;
  }
  if (kind == "bool") {
    if (in.Eat("true")) return Attribute(true);
    if (in.Eat("false")) return Attribute(false);
    return std::nullopt;
  }
  if (kind == "type") {
    const auto type = ParseDType(in.Word());
    return type ? std::optional<Attribute>(*type) : std::nullopt;
  }
  const std::string number(in.rest().substr(0, in.rest().find_first_of(",]} ")));
  in.Eat(number);
  char* end = nullptr;
  if (kind == "int") {
    const int64_t value = std::strtoll(number.c_str(), &end, 10);
    return *end == 0 && !number.empty() ? std::optional<Attribute>(value) : std::nullopt;
  }
  if (kind == "float") {
    const float value = std::strtof(number.c_str(), &end);
    return *end == 0 && !number.empty() ? std::optional<Attribute>(value) : std::nullopt;
  }
  return std::nullopt;
}

template <typename T>
Attribute ListOf(const std::vector<Attribute>& values) {
  std::vector<T> list;
  for (const Attribute& v : values) list.push_back(*v.get_if<T>());
  return Attribute(std::move(list));
}

std::optional<Attribute> MakeList(std::string_view kind, const std::vector<Attribute>& values) {
  if (kind == "string") return ListOf<std::string>(values);
  if (kind == "int") return ListOf<int64_t>(values);
  if (kind == "float") return ListOf<float>(values);
  if (kind == "bool") return ListOf<bool>(values);
  if (kind == "type") return ListOf<DType>(values);
  if (kind == "shape") return ListOf<PartialShape>(values);
  if (kind == "tensor") return ListOf<Tensor>(values);
  if (kind == "func") return ListOf<FunctionName>(values);
  return std::nullopt;
}

std::string_view ListElement(std::string_view kind) {
  return kind.substr(5, kind.size() - 6);  // list(x)
}

std::optional<Attribute> ReadDefault(std::string_view kind, Scanner& in) {
  if (!kind.starts_with("list(")) return ReadScalar(kind, in);
  if (!in.Eat("[")) return std::nullopt;
  std::vector<Attribute> values;
  while (!in.Eat("]")) {
    auto value = ReadScalar(ListElement(kind), in);
    if (!value || in.AtEnd()) return std::nullopt;
    values.push_back(*std::move(value));
    in.Eat(",");
  }
  return MakeList(ListElement(kind), values);
}

/// "{float, double}" or "{'a', 'b'}".
bool ReadAllowed(Scanner& in, AttrSchema* attr) {
  attr->kind = "type";
  while (!in.Eat("}")) {
    if (auto text = ReadQuoted(in)) {
      attr->kind = "string";
      attr->allowed_strings.push_back(*text);
    } else if (const auto type = ParseDType(in.Word())) {
      attr->allowed_types.push_back(*type);
    } else {
      return false;
    }
    in.Eat(",");
    if (in.AtEnd()) return false;
  }
  return true;
}

const std::string_view kKindNames[] = {"string", "int",    "float", "bool",
                                       "type",   "shape",  "tensor", "func"};

template <typename T>
int64_t LengthOf(const std::vector<T>& list) {
  return static_cast<int64_t>(list.size());
}
template <typename T>
int64_t LengthOf(const T&) {
  return 0;
}

Status CheckValue(const AttrSchema& schema, const Attribute& value) {
  const auto allowed_type = [&](DType t) {
    return schema.allowed_types.empty() ||
           std::count(schema.allowed_types.begin(), schema.allowed_types.end(), t) > 0;
  };
  const auto type_error = [&](DType t) {
    std::string wanted;
    for (const DType a : schema.allowed_types) {
      StrAppend(&wanted, wanted.empty() ? "" : ", ", ToString(a));
    }
    return InvalidArgument("attr '", schema.name, "' is ", ToString(t), ", which is not one of {",
                           wanted, "}");
  };
  if (const DType* t = value.get_if<DType>()) {
    if (*t == DType::kInvalid) return InvalidArgument("attr '", schema.name, "' is not a dtype");
    if (!allowed_type(*t)) return type_error(*t);
  }
  if (const auto* list = value.get_if<DTypeVector>()) {
    for (const DType t : *list) {
      if (!allowed_type(t)) return type_error(t);
    }
  }
  if (const auto* s = value.get_if<std::string>(); s != nullptr && !schema.allowed_strings.empty()) {
    if (std::count(schema.allowed_strings.begin(), schema.allowed_strings.end(), *s) == 0) {
      return InvalidArgument("attr '", schema.name, "' is '", *s, "', which is not one of {",
                             Join(schema.allowed_strings, ", "), "}");
    }
  }
  if (schema.minimum) {
    int64_t found = *schema.minimum;
    if (const int64_t* i = value.get_if<int64_t>()) found = *i;
    if (schema.kind.starts_with("list(")) {
      found = std::visit([](const auto& v) { return LengthOf(v); }, value.value());
    }
    if (found < *schema.minimum) {
      return InvalidArgument("attr '", schema.name, "' must be at least ", *schema.minimum,
                             schema.kind.starts_with("list(") ? " long" : "", ", found ", found);
    }
  }
  return OkStatus();
}

}  // namespace

const AttrSchema* OpSchema::FindAttr(std::string_view attr_name) const {
  for (const AttrSchema& a : attrs) {
    if (a.name == attr_name) return &a;
  }
  return nullptr;
}

StatusOr<ArgSchema> ParseArg(std::string_view text, const OpSchema& op) {
  const Status error = InvalidArgument("op ", op.name, ": cannot read argument '", text, "'");
  Scanner in(text);
  ArgSchema arg;
  arg.name = in.Word();
  if (arg.name.empty() || !in.Eat(":")) return error;
  arg.is_ref = in.Eat("Ref(");
  std::string word(in.Word());
  if (in.Eat("*")) {
    arg.number_attr = word;
    word = in.Word();
  }
  if (word.empty() || (arg.is_ref && !in.Eat(")")) || !in.AtEnd()) return error;
  if (const AttrSchema* attr = op.FindAttr(word)) {
    (attr->kind == "list(type)" ? arg.type_list_attr : arg.type_attr) = word;
  } else if (const auto type = ParseDType(word)) {
    arg.type = *type;
  } else {
    return error;
  }
  return arg;
}

StatusOr<AttrSchema> ParseAttr(std::string_view text) {
  const Status error = InvalidArgument("cannot read attribute '", text, "'");
  Scanner in(text);
  AttrSchema attr;
  attr.name = in.Word();
  if (attr.name.empty() || !in.Eat(":")) return error;
  const bool list = in.Eat("list(");
  if (in.Eat("{")) {
    if (!ReadAllowed(in, &attr)) return error;
  } else {
    attr.kind = in.Word();
    if (std::count(std::begin(kKindNames), std::end(kKindNames), attr.kind) == 0) return error;
  }
  if (list) {
    if (!in.Eat(")")) return error;
    attr.kind = StrCat("list(", attr.kind, ")");
  }
  if (in.Eat(">=")) {
    auto minimum = ReadScalar("int", in);
    if (!minimum) return error;
    attr.minimum = *minimum->get_if<int64_t>();
  }
  if (in.Eat("=")) {
    attr.default_value = ReadDefault(attr.kind, in);
    if (!attr.default_value) return error;
  }
  if (!in.AtEnd()) return error;
  return attr;
}

Status ApplySchema(const OpSchema& schema, AttributeMap* attrs) {
  for (const AttrSchema& attr : schema.attrs) {
    const Attribute* found = attrs->Find(attr.name);
    if (found == nullptr) {
      if (!attr.default_value) {
        return InvalidArgument("attr '", attr.name, "' of op ", schema.name, " is missing");
      }
      attrs->Set(attr.name, *attr.default_value);
      continue;
    }
    if (attr.kind.starts_with("list(") && attr.kind != "list(int)") {
      const auto* list = found->get_if<std::vector<int64_t>>();
      if (list != nullptr && list->empty()) {
        attrs->Set(attr.name, *MakeList(ListElement(attr.kind), {}));
        found = attrs->Find(attr.name);
      }
    }
    if (found->kind() != attr.kind) {
      return InvalidArgument("attr '", attr.name, "' of op ", schema.name,
                             " has the wrong type: found ", found->kind(), ", wanted ", attr.kind);
    }
    TENON_RETURN_IF_ERROR(CheckValue(attr, *found));
  }
  return OkStatus();
}

StatusOr<int64_t> ArgLength(const ArgSchema& arg, const AttributeMap& attrs) {
  if (!arg.number_attr.empty()) return attrs.Get<int64_t>(arg.number_attr);
  if (!arg.type_list_attr.empty()) {
    TENON_ASSIGN_OR_RETURN(const auto types, attrs.Get<DTypeVector>(arg.type_list_attr));
    return static_cast<int64_t>(types.size());
  }
  return 1;
}

StatusOr<DTypeVector> ArgTypes(const std::vector<ArgSchema>& args, const AttributeMap& attrs) {
  /// Bounds what an N attribute from outside can make us allocate: some hundred bytes each.
  constexpr int64_t kMaxTensors = 1 << 16;
  DTypeVector types;
  for (const ArgSchema& arg : args) {
    if (!arg.type_list_attr.empty()) {
      TENON_ASSIGN_OR_RETURN(const auto list, attrs.Get<DTypeVector>(arg.type_list_attr));
      for (const DType t : list) types.push_back(arg.is_ref ? MakeRef(t) : t);
      continue;
    }
    DType type = arg.type;
    if (!arg.type_attr.empty()) {
      TENON_ASSIGN_OR_RETURN(type, attrs.Get<DType>(arg.type_attr));
    }
    TENON_ASSIGN_OR_RETURN(const int64_t length, ArgLength(arg, attrs));
    if (length < 0 || length > kMaxTensors) {
      return InvalidArgument("attr '", arg.number_attr, "' is out of range: ", length);
    }
    types.insert(types.end(), length, arg.is_ref ? MakeRef(type) : type);
  }
  return types;
}

}  // namespace tenon
