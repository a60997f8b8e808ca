// SPDX-License-Identifier: Apache-2.0
#include "core/generator/functions.h"

#include <set>
#include <sstream>

#include "core/base/strings.h"

namespace tenon {
namespace {

/// A name that C++ keeps for itself, or that the options have already, gets a '_'.
std::string Identifier(const std::string& name) {
  static const std::set<std::string> taken = {
      "and",      "auto",     "bool",    "break",    "case",    "char",      "class",  "const",
      "continue", "default",  "delete",  "double",   "else",    "enum",      "false",  "float",
      "for",      "if",       "int",     "long",     "lists",   "namespace", "new",    "node",
      "not",      "operator", "options", "or",       "private", "public",    "return", "friend",
      "export",   "short",    "signed",  "sizeof",   "static",  "struct",    "switch", "template",
      "this",     "true",     "union",   "unsigned", "using",   "void",      "while"};
  return taken.contains(name) ? name + "_" : name;
}
/// A member of options, which have these two of their own.
std::string Member(const std::string& attr) {
  return attr == "name" || attr == "location" ? attr + "_" : Identifier(attr);
}

std::string TypeOf(std::string_view kind) {
  if (kind == "string") return "std::string";
  if (kind == "int") return "int64_t";
  if (kind == "float") return "float";
  if (kind == "bool") return "bool";
  if (kind == "type") return "DType";
  if (kind == "shape") return "PartialShape";
  if (kind == "tensor") return "Tensor";
  if (kind == "func") return "FunctionName";
  return StrCat("std::vector<", TypeOf(kind.substr(5, kind.size() - 6)), ">");
}

std::string Quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
  }
  return out + "\"";
}

/// By number.
constexpr const char* kEnumerators[] = {
    "kInvalid",    "kFloat",  "kDouble",    "kInt32",   "kUInt8",   "kInt16",
    "kInt8",       "kString", "kComplex64", "kInt64",   "kBool",    "kQInt8",
    "kQUInt8",     "kQInt32", "kBFloat16",  "kQInt16",  "kQUInt16", "kUInt16",
    "kComplex128", "kHalf",   "kResource",  "kVariant", "kUInt32",  "kUInt64"};

std::string ValueText(const Attribute& value);

template <typename T>
std::string ListText(const std::vector<T>& values) {
  std::vector<std::string> texts;
  for (const T& v : values) texts.push_back(ValueText(Attribute(v)));
  return StrCat("{", Join(texts, ", "), "}");
}

/// The C++ expression for a default.
std::string ValueText(const Attribute& value) {
  if (const auto* v = value.get_if<std::string>()) return Quoted(*v);
  if (const auto* v = value.get_if<int64_t>()) return StrCat(*v);
  if (const auto* v = value.get_if<bool>()) return *v ? "true" : "false";
  if (const auto* v = value.get_if<float>()) {
    std::ostringstream text;
    text.precision(9);
    text << *v;
    const bool whole = text.str().find_first_of(".e") == std::string::npos;
    return StrCat(text.str(), whole ? ".0f" : "f");
  }
  if (const auto* v = value.get_if<DType>()) {
    const auto number = static_cast<size_t>(*v);
    if (number >= std::size(kEnumerators)) return StrCat("static_cast<DType>(", number, ")");
    return StrCat("DType::", kEnumerators[number]);
  }
  if (const auto* v = value.get_if<PartialShape>()) {
    if (!v->rank_known()) return "PartialShape()";
    std::vector<std::string> dims;
    for (const int64_t d : v->dims()) dims.push_back(StrCat(d));
    return StrCat("PartialShape({", Join(dims, ", "), "})");
  }
  if (const auto* v = value.get_if<std::vector<std::string>>()) return ListText(*v);
  if (const auto* v = value.get_if<std::vector<bool>>()) return ListText(*v);
  if (const auto* v = value.get_if<std::vector<int64_t>>()) return ListText(*v);
  if (const auto* v = value.get_if<std::vector<float>>()) return ListText(*v);
  if (const auto* v = value.get_if<std::vector<DType>>()) return ListText(*v);
  if (const auto* v = value.get_if<std::vector<PartialShape>>()) return ListText(*v);
  if (const auto* v = value.get_if<Tensor>()) {
    std::vector<std::string> bytes;
    for (const uint8_t b : v->flat<uint8_t>()) bytes.push_back(StrCat(static_cast<int>(b)));
    return StrCat("Tensor::Vector<uint8_t>({", Join(bytes, ", "), "})");
  }
  return "{}";
}

/// Appends `text` as comment lines of at most 100 columns that begin with `start`.
void AppendComment(std::string* out, std::string_view start, const std::string& text) {
  std::istringstream words(text);
  std::string word, line;
  while (words >> word) {
    if (!line.empty() && start.size() + line.size() + 1 + word.size() > 100) {
      StrAppend(out, start, line, "\n");
      line.clear();
    }
    StrAppend(&line, line.empty() ? "" : " ", word);
  }
  if (!line.empty()) StrAppend(out, start, line, "\n");
}

/// The documentation of an argument, with its declared shape before it.
std::string DocOf(const ArgSchema& arg) {
  if (!arg.shape || arg.doc.starts_with('[')) return arg.doc;
  return StrCat(arg.shape->ToString(), arg.doc.empty() ? "" : ": ", arg.doc);
}

bool IsList(const ArgSchema& arg) {
  return !arg.number_attr.empty() || !arg.type_list_attr.empty();
}

class Function {
 public:
  explicit Function(const OpSchema& op)
      : op_(op), name_(op.function.empty() ? op.name : op.function) {
    std::set<std::string> inferred;
    for (const ArgSchema& arg : op.inputs) {
      for (const auto* attr : {&arg.type_attr, &arg.number_attr, &arg.type_list_attr}) {
        if (!attr->empty()) inferred.insert(*attr);
      }
    }
    for (const AttrSchema& attr : op.attrs) {
      if (inferred.contains(attr.name)) continue;
      if (!attr.default_value) positional_.push_back(&attr);
      if (attr.default_value && attr.kind != "shape") options_.push_back(&attr);
    }
    for (const AttrSchema& attr : op.attrs) {
      if (attr.default_value && attr.kind == "shape") positional_.push_back(&attr);
    }
    takes_seeds_ = op.FindAttr("seed") != nullptr && op.FindAttr("seed2") != nullptr;
  }

  void Append(FunctionCode* code) const {
    AppendOptions(&code->declarations);
    AppendResult(&code->declarations);
    AppendDoc(&code->declarations);
    StrAppend(&code->declarations, ResultType(), " ", name_, "(", Parameters(true), ");\n\n");
    AppendDefinition(&code->definitions);
  }

 private:
  std::string OptionsType() const { return options_.empty() ? "OpOptions" : name_ + "Options"; }

  std::string ResultType() const {
    if (op_.outputs.empty()) return "Node*";
    if (op_.outputs.size() > 1) return name_ + "Outputs";
    return IsList(op_.outputs[0]) ? "std::vector<Output>" : "Output";
  }

  void AppendOptions(std::string* out) const {
    if (options_.empty()) return;
    StrAppend(out, "/// Options of ", name_, ", by name.\nstruct ", OptionsType(), " {\n");
    for (const AttrSchema* attr : options_) {
      AppendComment(out, "  /// ", attr->doc);
      StrAppend(out, "  ", TypeOf(attr->kind), " ", Member(attr->name), " = ",
                ValueText(*attr->default_value), ";\n");
    }
    StrAppend(out, "  std::string name = {};\n",
              "  std::source_location location = std::source_location::current();\n};\n");
  }

  void AppendResult(std::string* out) const {
    if (op_.outputs.size() < 2) return;
    StrAppend(out, "/// What ", name_, " gives.\nstruct ", name_, "Outputs {\n");
    for (const ArgSchema& arg : op_.outputs) {
      AppendComment(out, "  /// ", DocOf(arg));
      StrAppend(out, "  ", IsList(arg) ? "std::vector<Output>" : "Output", " ",
                Identifier(arg.name), ";\n");
    }
    StrAppend(out, "};\n");
  }

  void AppendDoc(std::string* out) const {
    AppendComment(out, "/// ", op_.doc);
    for (const ArgSchema& arg : op_.inputs) {
      const std::string doc = DocOf(arg);
      if (!doc.empty()) AppendComment(out, "/// ", StrCat("`", arg.name, "`: ", doc));
    }
    for (const AttrSchema* attr : positional_) {
      if (!attr->doc.empty()) AppendComment(out, "/// ", StrCat("`", attr->name, "`: ", attr->doc));
    }
    if (op_.outputs.size() == 1 && !DocOf(op_.outputs[0]).empty()) {
      AppendComment(out, "/// ",
                    StrCat("Gives `", op_.outputs[0].name, "`: ", DocOf(op_.outputs[0])));
    }
    if (!op_.function.empty()) AppendComment(out, "/// ", StrCat("(The op ", op_.name, ".)"));
  }

  std::string Parameters(bool with_defaults) const {
    std::vector<std::string> parameters;
    for (const ArgSchema& arg : op_.inputs) {
      parameters.push_back(StrCat(IsList(arg) ? "const Inputs& " : "const Input& ",
                                  Identifier(arg.name),
                                  arg.all_axes && with_defaults ? " = Input()" : ""));
    }
    for (const AttrSchema* attr : positional_) {
      const std::string type = TypeOf(attr->kind);
      const bool small = attr->kind == "int" || attr->kind == "float" || attr->kind == "bool" ||
                         attr->kind == "type";
      parameters.push_back(StrCat(
          small ? type + " " : StrCat("const ", type, "& "), Identifier(attr->name),
          attr->default_value && with_defaults ? " = " + ValueText(*attr->default_value) : ""));
    }
    parameters.push_back(
        StrCat("const ", OptionsType(), "& options", with_defaults ? " = {}" : ""));
    return Join(parameters, ", ");
  }

  void AppendDefinition(std::string* out) const {
    StrAppend(out, ResultType(), " ", name_, "(", Parameters(false), ") {\n");
    if (takes_seeds_) {
      StrAppend(out,
                "  const auto [seed, seed2] = options.seed2 == 0 ? NextSeeds(options.seed, "
                "options.location) : "
                "std::pair(options.seed, options.seed2);\n");
    }
    StrAppend(out, "  NodeBuilder node(\"", op_.name, "\", options.name, options.location);\n");
    for (const ArgSchema& arg : op_.inputs) {
      StrAppend(out, "  node.", IsList(arg) ? "Inputs(" : "Input(", Identifier(arg.name), ");\n");
    }
    for (const AttrSchema* attr : positional_) {
      StrAppend(out, "  node.Attr(\"", attr->name, "\", ", Identifier(attr->name), ");\n");
    }
    for (const AttrSchema* attr : options_) {
      const bool seed = takes_seeds_ && (attr->name == "seed" || attr->name == "seed2");
      StrAppend(out, "  node.Attr(\"", attr->name, "\", ",
                seed ? attr->name : StrCat("options.", Member(attr->name)), ");\n");
    }
    AppendReturn(out);
    StrAppend(out, "}\n\n");
  }

  void AppendReturn(std::string* out) const {
    if (op_.outputs.empty()) {
      StrAppend(out, "  return node.Finish();\n");
    } else if (op_.outputs.size() == 1) {
      StrAppend(out, "  return node.", IsList(op_.outputs[0]) ? "Outputs" : "Output", "();\n");
    } else {
      StrAppend(out, "  auto lists = node.OutputLists(", op_.outputs.size(), ");\n  return {");
      for (size_t i = 0; i < op_.outputs.size(); ++i) {
        StrAppend(out, i == 0 ? "" : ", ");
        if (IsList(op_.outputs[i])) {
          StrAppend(out, "std::move(lists[", i, "])");
        } else {
          StrAppend(out, "lists[", i, "].empty() ? Output() : lists[", i, "][0]");
        }
      }
      StrAppend(out, "};\n");
    }
  }

  const OpSchema& op_;
  const std::string name_;
  std::vector<const AttrSchema*>
      positional_;  // what is no option: it has no default, or is a shape
  std::vector<const AttrSchema*> options_;
  bool takes_seeds_ = false;
};

}  // namespace

FunctionCode FunctionsOf(const std::vector<OpSchema>& ops, bool basic) {
  FunctionCode code;
  for (const OpSchema& op : ops) {
    if (!op.doc.empty() && op.has_function && op.is_basic == basic) Function(op).Append(&code);
  }
  return code;
}

}  // namespace tenon
