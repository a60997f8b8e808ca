// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <regex>
#include <set>

#include "ops/register.h"
#include "tests/testing/op_runner.h"

// Compares every op with TensorFlow's own declaration of it (tests/data/tf/op_signatures.txt).

namespace tenon::testing {
namespace {

/// An op's declaration with everything as text that compares.
struct Signature {
  std::vector<std::string> inputs, outputs;
  std::map<std::string, std::string> attrs;  // name -> "kind min allowed default"
  std::set<std::string> flags;
};

std::vector<std::string> SplitTopLevel(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::string part;
  int depth = 0;
  bool quoted = false;
  for (const char c : text) {
    if (c == '"') quoted = !quoted;
    if (!quoted && (c == '(' || c == '[')) ++depth;
    if (!quoted && (c == ')' || c == ']')) --depth;
    if (c == separator && depth == 0 && !quoted) {
      parts.push_back(part);
      part.clear();
    } else if (!(c == ' ' && part.empty())) {
      part += c;
    }
  }
  if (!part.empty()) parts.push_back(part);
  return parts;
}

/// One spelling for each dtype: "float16" and "half" are the same.
std::string TypeName(const std::string& text) {
  const auto type = ParseDType(text);
  return type ? ToString(*type) : text;
}

std::string ArgText(std::string arg) {
  const size_t colon = arg.find(':');
  std::string type = arg.substr(colon + 1);
  const bool is_ref = type.starts_with("Ref(");
  if (is_ref) type = type.substr(4, type.size() - 5);
  const size_t star = type.find('*');
  const std::string count = star == std::string::npos ? "" : type.substr(0, star + 1);
  if (star != std::string::npos) type = type.substr(star + 1);
  const std::string text = StrCat(arg.substr(0, colon), ":", count, TypeName(type));
  return is_ref ? StrCat(text, " ref") : text;
}

std::string AllowedText(std::vector<std::string> values) {
  for (std::string& v : values) v = TypeName(v);
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values.empty() ? "" : StrCat(" of ", Join(values, " "));
}

std::string NumberText(double value) { return absl::StrCat(absl::SixDigits(value)); }

/// "kind>=n of a b =default", from TensorFlow's line.
std::string AttrText(const std::string& text) {
  static const std::regex form(
      R"(([a-z]+(?:\([a-z]+\))?)(>=-?\d+)?(?:∈\[([^\]]*)\])?(?:=([^]*))?)");
  std::smatch m;
  if (!std::regex_match(text, m, form)) return StrCat("unreadable: ", text);
  const std::string kind = m[1];
  std::string value = m[4];
  if (kind == "type") value = TypeName(value);
  const auto number = [](const std::string& v) {
    return NumberText(static_cast<float>(std::strtod(v.c_str(), nullptr)));
  };
  if (kind == "float" && !value.empty()) value = number(value);
  if (kind == "list(float)" && value.size() > 2) {
    std::vector<std::string> values = SplitTopLevel(value.substr(1, value.size() - 2), ',');
    std::transform(values.begin(), values.end(), values.begin(), number);
    value = StrCat("[", Join(values, ","), "]");
  }
  return StrCat(kind, m[2].str(), AllowedText(SplitTopLevel(m[3], ',')),
                m[4].matched ? " =" + value : "");
}

std::map<std::string, Signature> ReadTable() {
  std::ifstream file(
      StrCat(std::getenv("TENON_SOURCE_DIR") == nullptr ? "." : std::getenv("TENON_SOURCE_DIR"),
             "/tests/data/tf/op_signatures.txt"));
  static const std::regex form(R"((\w+)\((.*)\) -> \((.*)\) \{(.*)\}(.*))");
  std::map<std::string, Signature> table;
  std::string line;
  while (std::getline(file, line)) {
    std::smatch m;
    if (!std::regex_match(line, m, form)) {
      ADD_FAILURE() << "unreadable line: " << line;
      continue;
    }
    Signature& s = table[m[1]];
    for (const std::string& a : SplitTopLevel(m[2], ',')) s.inputs.push_back(ArgText(a));
    for (const std::string& a : SplitTopLevel(m[3], ',')) s.outputs.push_back(ArgText(a));
    for (const std::string& a : SplitTopLevel(m[4], ';')) {
      const size_t colon = a.find(':');
      s.attrs[a.substr(0, colon)] = AttrText(a.substr(colon + 1));
    }
    for (const std::string& f : SplitTopLevel(m[5], ' ')) {
      if (!f.empty()) s.flags.insert(f);
    }
  }
  return table;
}

std::string DefaultText(const Attribute& value) {
  const auto list = [](const auto& v, auto text) {
    std::vector<std::string> parts;
    for (const auto& e : v) parts.push_back(text(e));
    return StrCat("[", Join(parts, ","), "]");
  };
  if (const auto* v = value.get_if<bool>()) return *v ? "True" : "False";
  if (const auto* v = value.get_if<int64_t>()) return StrCat(*v);
  if (const auto* v = value.get_if<float>()) return NumberText(*v);
  if (const auto* v = value.get_if<DType>()) return ToString(*v);
  if (const auto* v = value.get_if<PartialShape>()) return v->ToString();
  if (const auto* v = value.get_if<std::string>()) {
    std::string text;
    for (const char c : *v) {
      if (c == '\n')
        text += "\\n";
      else if (c == '\t')
        text += "\\t";
      else
        text += c;
    }
    return StrCat("\"", text, "\"");
  }
  if (const auto* v = value.get_if<std::vector<int64_t>>()) {
    return list(*v, [](int64_t e) { return StrCat(e); });
  }
  if (const auto* v = value.get_if<std::vector<float>>()) {
    return list(*v, [](float e) { return NumberText(e); });
  }
  if (const auto* v = value.get_if<std::vector<DType>>()) {
    return list(*v, [](DType e) { return ToString(e); });
  }
  if (const auto* v = value.get_if<std::vector<PartialShape>>()) {
    return list(*v, [](const PartialShape& e) { return e.ToString(); });
  }
  if (const auto* v = value.get_if<std::vector<std::string>>()) {
    return list(*v, [](const std::string& e) { return StrCat("\"", e, "\""); });
  }
  return value.ToString();
}

std::string ArgText(const ArgSchema& a) {
  std::string type = a.type_list_attr;
  if (type.empty()) type = a.type_attr.empty() ? ToString(a.type) : a.type_attr;
  const std::string count = a.number_attr.empty() ? "" : a.number_attr + "*";
  return StrCat(a.name, ":", count, type, a.is_ref ? " ref" : "");
}

Signature Render(const OpSchema& op) {
  Signature s;
  for (const ArgSchema& a : op.inputs) s.inputs.push_back(ArgText(a));
  for (const ArgSchema& a : op.outputs) s.outputs.push_back(ArgText(a));
  for (const AttrSchema& a : op.attrs) {
    std::vector<std::string> allowed = a.allowed_strings;
    for (const DType t : a.allowed_types) allowed.push_back(ToString(t));
    s.attrs[a.name] =
        StrCat(a.kind, a.minimum ? StrCat(">=", *a.minimum) : std::string(), AllowedText(allowed),
               // The table leaves tensors out.
               a.default_value && a.kind != "tensor" ? " =" + DefaultText(*a.default_value) : "");
  }
  if (op.is_stateful) s.flags.insert("STATEFUL");
  if (op.is_commutative) s.flags.insert("commutative");
  if (op.is_aggregate) s.flags.insert("aggregate");
  if (op.allows_uninitialized_input) s.flags.insert("allows_uninit");
  return s;
}

TEST(Signature, OfEveryOpIsTensorFlows) {
  const std::map<std::string, Signature> table = ReadTable();
  ASSERT_EQ(table.size(), 1214u);
  for (const auto& [name, theirs] : table) {
    SCOPED_TRACE(name);
    const OpRegistration* op = AllOps().Find(name);
    if (op == nullptr) {
      ADD_FAILURE() << "is not declared";
      continue;
    }
    const Signature ours = Render(op->schema);
    EXPECT_EQ(ours.inputs, theirs.inputs);
    EXPECT_EQ(ours.outputs, theirs.outputs);
    EXPECT_EQ(ours.flags, theirs.flags);
    EXPECT_EQ(ours.attrs, theirs.attrs);
  }
}

TEST(Signature, NoOpIsDeclaredThatTensorFlowLacksButThoseThatTheRuntimeMakes) {
  const std::set<std::string> made = {"_MaxPoolWithPlaces",
                                      "_MaxPoolGradOfPlaces",
                                      "_Conv2DWithBias",
                                      "_ReluMaxPoolWithPlaces",
                                      "_ReluMaxPoolGradOfPlaces",
                                      "_CopyToDevice",
                                      "_CopyToHost",
                                      "_CaptureKernel",
                                      "_SendToPeer",
                                      "_RecvFromPeer"};
  // The ops of tables and linear models, which train/ alone uses, and Horovod's begin so.
  const auto is_own = [&](const std::string& name) {
    return made.contains(name) || name.starts_with("Tenon") || name.starts_with("Horovod");
  };
  const std::map<std::string, Signature> table = ReadTable();
  for (const OpRegistration* op : AllOps().All()) {
    EXPECT_NE(table.contains(op->schema.name), is_own(op->schema.name)) << op->schema.name;
  }
}

}  // namespace
}  // namespace tenon::testing
