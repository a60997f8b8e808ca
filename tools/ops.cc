// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/closest_name.h"
#include "core/graph/graph.h"
#include "ops/register.h"
#include "runtime/functions/expansion.h"
#include "tools/commands.h"

namespace tenon::tools {
namespace {

std::string ArgText(const ArgSchema& arg) {
  std::string type = arg.type_attr.empty() ? arg.type_list_attr : arg.type_attr;
  if (type.empty()) type = ToString(arg.type);
  if (!arg.number_attr.empty()) type = StrCat(arg.number_attr, " * ", type);
  return StrCat(arg.name, ": ", arg.is_ref ? StrCat("Ref(", type, ")") : type,
                arg.shape ? StrCat(" ", arg.shape->ToString()) : "",
                arg.all_axes ? " = all_axes" : "");
}

std::string ArgList(const std::vector<ArgSchema>& args) {
  std::vector<std::string> texts;
  for (const ArgSchema& a : args) texts.push_back(ArgText(a));
  return Join(texts, ", ");
}

std::string Signature(const OpSchema& s) {
  const bool several = s.outputs.size() != 1;
  return StrCat(s.name, "(", ArgList(s.inputs), ") -> ", several ? "(" : "", ArgList(s.outputs),
                several ? ")" : "");
}

/// "T: type in {float, double} = float"
std::string AttrText(const AttrSchema& a) {
  std::string text = StrCat(a.name, ": ", a.kind);
  if (!a.allowed_types.empty()) {
    std::vector<std::string> names;
    for (const DType t : a.allowed_types) names.push_back(ToString(t));
    StrAppend(&text, " in {", Join(names, ", "), "}");
  }
  if (!a.allowed_strings.empty()) StrAppend(&text, " in {", Join(a.allowed_strings, ", "), "}");
  if (a.minimum) StrAppend(&text, " >= ", *a.minimum);
  if (a.default_value) StrAppend(&text, " = ", a.default_value->ToString());
  return text;
}

std::string GradientText(const OpRegistration& op) {
  return op.gradient ? "yes" : !op.schema.is_differentiable ? "none flows through it" : "not known";
}

/// The kinds of device that have a kernel; `none` when there is none.
std::string KernelsText(const OpRegistration& op, const std::string& none) {
  std::string devices;
  for (const DeviceKind kind : DeviceKind::All()) {
    for (const KernelRegistration& k : op.kernels) {
      if (k.device != kind) continue;
      StrAppend(&devices, devices.empty() ? "" : ", ", kind.name());
      break;
    }
  }
  if (!devices.empty()) return devices;
  if (op.schema.call != CallKind::kNone) return "the body of the function takes its place";
  return op.schema.is_runtime_only() ? "built into the executor" : none;
}

/// What is said of an op; those that are but declared, so that graphs which have them load, have no
/// documentation.
std::string DocOf(const OpRegistration& op) {
  return op.schema.doc.empty()
             ? "Only declared: graphs that have it load, and steps that do not need it run."
             : op.schema.doc;
}

void Describe(const OpRegistration& op) {
  const OpSchema& s = op.schema;
  std::printf("%s\n\n%s\n", Signature(s).c_str(), DocOf(op).c_str());
  bool first = true;
  for (const auto* args : {&s.inputs, &s.outputs}) {
    for (const ArgSchema& a : *args) {
      if (a.doc.empty()) continue;
      std::printf("%s  %s: %s\n", first ? "\n" : "", a.name.c_str(), a.doc.c_str());
      first = false;
    }
  }
  if (!s.attrs.empty()) std::printf("\nAttributes:\n");
  for (const AttrSchema& a : s.attrs) {
    std::printf("  %s\n", AttrText(a).c_str());
    if (!a.doc.empty()) std::printf("      %s\n", a.doc.c_str());
  }
  std::printf("\nGradient: %s\n", GradientText(op).c_str());
  std::printf("Kernels: %s\n", KernelsText(op, "none: a step that needs it fails").c_str());
}

/// `text` without what Markdown would take for itself; `code` stays.
std::string Escaped(const std::string& text) {
  std::string out;
  bool code = false;
  for (const char c : text) {
    if (c == '`') code = !code;
    if (!code && (c == '*' || c == '<' || c == '_')) out += '\\';
    out += c;
  }
  return out;
}

/// One line of a list: what it is about, and the text on it.
void PrintItem(const std::string& what, const std::string& doc) {
  std::printf("- `%s`%s%s\n", what.c_str(), doc.empty() ? "" : " ", Escaped(doc).c_str());
}

void PrintSection(const OpRegistration& op) {
  const OpSchema& s = op.schema;
  std::printf("\n## %s\n\n`%s`\n\n%s\n\n", s.name.c_str(), Signature(s).c_str(),
              Escaped(s.doc).c_str());
  bool listed = !s.attrs.empty();
  for (const auto* args : {&s.inputs, &s.outputs}) {
    for (const ArgSchema& a : *args) {
      if (a.doc.empty()) continue;
      PrintItem(a.name, a.doc);
      listed = true;
    }
  }
  for (const AttrSchema& a : s.attrs) PrintItem(AttrText(a), a.doc);
  std::printf("%sGradient: %s. Kernels: %s.", listed ? "\n" : "", GradientText(op).c_str(),
              KernelsText(op, "none yet").c_str());
  if (!s.function.empty()) std::printf(" In C++: `%s`.", s.function.c_str());
  if (!s.has_function) std::printf(" In C++ it has no function of this form.");
  std::printf("\n");
}

/// The page of all ops with documentation: docs/ops.md.
int PrintMarkdown(const OpRegistry& ops) {
  std::fputs(R"(# Ops

Made by `tenon ops --markdown`. Every op that has documentation, which are those with a function
in C++ of the same name but where it is said. Each has its inputs and outputs, what is not
obvious of them, its attributes with types and defaults, whether it has a gradient, and for which
devices it has a kernel; without one, a step that needs the op fails. `N * T` is a list of N
tensors, `Ref(T)` a variable; an input that is `all_axes` may be left out. `T [n, ?, 3]` is a
tensor of that shape: `n` is the same size wherever an op has it, or an attribute or input of
that name, and `...` any number of sizes.
)",
             stdout);
  for (const OpRegistration* op : ops.All()) {
    if (!op->schema.doc.empty()) PrintSection(*op);
  }
  return kDone;
}

/// The dtypes that the op's kernels take, by type attribute: "T: float, double"; "any" where all
/// do.
std::string DTypesText(const OpRegistration& op) {
  std::vector<std::string> parts;
  for (const AttrSchema& a : op.schema.attrs) {
    if (a.kind != "type" && a.kind != "list(type)") continue;
    std::set<DType> dtypes;
    for (const KernelRegistration& k : op.kernels) {
      const DTypeVector* taken = &a.allowed_types;
      for (const auto& [attr, limited] : k.options.types) {
        if (attr == a.name) taken = &limited;
      }
      dtypes.insert(taken->begin(), taken->end());
    }
    parts.push_back(StrCat(a.name, ": ", dtypes.empty() ? "any" : Join(dtypes, ", ")));
  }
  return Join(parts, "; ");
}

/// The tables of docs/compatibility.md: ops by dtypes and gradient, and those without a kernel.
int PrintCompatibility(const OpRegistry& ops) {
  std::vector<std::string> missing;
  std::printf("| op | dtypes | gradient |\n|---|---|---|\n");
  for (const OpRegistration* op : ops.All()) {
    if (op->kernels.empty()) {
      const std::string& name = op->schema.name;
      if (!op->schema.is_runtime_only() && op->schema.call == CallKind::kNone)
        missing.push_back(name);
      continue;
    }
    std::printf("| %s | %s | %s |\n", op->schema.name.c_str(), DTypesText(*op).c_str(),
                op->gradient                   ? "yes"
                : op->schema.is_differentiable ? "no"
                                               : "none flows");
  }
  std::printf("\nWithout a kernel: %s.\n", Join(missing, ", ").c_str());
  return kDone;
}

/// One object an op: its name, whether it is stateful, its gradient ("yes", "none", "unknown"), and
/// its kernels with the dtypes to which type attributes are limited.
nlohmann::ordered_json AsJson(const OpRegistration& op) {
  nlohmann::ordered_json kernels = nlohmann::ordered_json::array();
  for (const KernelRegistration& k : op.kernels) {
    nlohmann::ordered_json types = nlohmann::ordered_json::object();
    for (const auto& [attr, dtypes] : k.options.types) {
      for (const DType t : dtypes) types[attr].push_back(ToString(t));
    }
    kernels.push_back({{"device", k.device.name()}, {"types", types}});
  }
  return {{"name", op.schema.name},
          {"stateful", op.schema.is_stateful},
          {"gradient", op.gradient                    ? "yes"
                       : !op.schema.is_differentiable ? "none"
                                                      : "unknown"},
          {"kernels", kernels}};
}

int PrintJson(const OpRegistry& ops) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const OpRegistration* op : ops.All()) list.push_back(AsJson(*op));
  std::printf("%s\n", list.dump(1).c_str());
  return kDone;
}

/// What docs/training_reference.md has, and the heading that it is under.
struct TrainingName {
  const char* name;
  const char* heading;
};
constexpr TrainingName kTrainingNames[] = {
#include "tools/training_names.inc"
};

/// Says which op, layer, loss, ... was meant by the name of no op.
Status NoSuchOp(const OpRegistry& ops, const std::string& name) {
  std::vector<std::string> names;
  for (const OpRegistration* known : ops.All()) names.push_back(known->schema.name);
  const std::string closest_op = ClosestName(name, names);
  std::vector<std::string> all = names;
  for (const TrainingName& known : kTrainingNames) all.emplace_back(known.name);
  const std::string closest = ClosestName(name, all);
  if (closest == closest_op) return NotFound("there is no op ", name, DidYouMean(name, names));
  std::vector<std::string> headings;
  for (const TrainingName& known : kTrainingNames) {
    if (closest == known.name) headings.push_back(StrCat("'", known.heading, "'"));
  }
  return NotFound("there is no op ", name,
                  closest == name ? ": it" : StrCat("; did you mean ", closest, "? It"),
                  " is of the C++ API for training, under ", Join(headings, " and "),
                  " in docs/training_reference.md");
}

int ListOrDescribe(const OpRegistry& ops, const std::string& name) {
  if (name.empty()) {
    for (const OpRegistration* op : ops.All()) {
      const bool runs = !op->kernels.empty() || op->schema.is_runtime_only() ||
                        op->schema.call != CallKind::kNone;
      const std::string doc = StrCat(runs ? "" : "(no kernel) ", DocOf(*op));
      std::printf("%-32s %s\n", op->schema.name.c_str(), doc.substr(0, doc.find('\n')).c_str());
    }
    return kDone;
  }
  const auto op = ops.Lookup(name);
  if (op.ok()) {
    Describe(**op);
    return kDone;
  }
  return Report(NoSuchOp(ops, name));
}

}  // namespace

void AddOpsCommand(CLI::App& app, Command* chosen) {
  auto name = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("ops", "List the ops, or describe one");
  command->add_option("name", *name, "The op");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "All ops with their gradients and kernels, for programs");
  auto markdown = std::make_shared<bool>(false);
  command->add_flag("--markdown", *markdown, "The page of all ops with documentation, docs/ops.md");
  auto compatibility = std::make_shared<bool>(false);
  command->add_flag(
      "--compatibility", *compatibility,
      "Which dtypes each op takes, and its gradient: the end of docs/compatibility.md");
  command->callback([=] {
    *chosen = [=] {
      const OpRegistry& ops = AllOps();
      if (*json) return PrintJson(ops);
      if (*compatibility) return PrintCompatibility(ops);
      return *markdown ? PrintMarkdown(ops) : ListOrDescribe(ops, *name);
    };
  });
}

}  // namespace tenon::tools
