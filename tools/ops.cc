// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "tools/commands.h"

namespace tenon::tools {
namespace {

std::string ArgText(const ArgSchema& arg) {
  std::string type = arg.type_attr.empty() ? arg.type_list_attr : arg.type_attr;
  if (type.empty()) type = ToString(arg.type);
  if (!arg.number_attr.empty()) type = StrCat(arg.number_attr, " * ", type);
  return StrCat(arg.name, ": ", arg.is_ref ? StrCat("Ref(", type, ")") : type);
}

std::string ArgList(const std::vector<ArgSchema>& args) {
  std::vector<std::string> texts;
  for (const ArgSchema& a : args) texts.push_back(ArgText(a));
  return Join(texts, ", ");
}

void Describe(const OpRegistration& op) {
  const OpSchema& s = op.schema;
  std::printf("%s(%s) -> (%s)\n\n%s\n", s.name.c_str(), ArgList(s.inputs).c_str(),
              ArgList(s.outputs).c_str(), s.doc.c_str());
  if (!s.attrs.empty()) std::printf("\nAttributes:\n");
  for (const AttrSchema& a : s.attrs) {
    std::string line = StrCat("  ", a.name, ": ", a.kind);
    if (!a.allowed_types.empty()) {
      std::vector<std::string> names;
      for (const DType t : a.allowed_types) names.push_back(ToString(t));
      StrAppend(&line, " in {", Join(names, ", "), "}");
    }
    if (!a.allowed_strings.empty()) StrAppend(&line, " in {", Join(a.allowed_strings, ", "), "}");
    if (a.minimum) StrAppend(&line, " >= ", *a.minimum);
    if (a.default_value) StrAppend(&line, " = ", a.default_value->ToString());
    std::printf("%s\n", line.c_str());
  }
  std::printf("\nGradient: %s\n", op.gradient             ? "yes"
                                  : op.not_differentiable ? "none flows through it"
                                                          : "not known");
  std::string devices;
  for (const DeviceKind kind : {kCpu, kCuda}) {
    for (const KernelRegistration& k : op.kernels) {
      if (k.device != kind) continue;
      StrAppend(&devices, devices.empty() ? "" : ", ", ToString(kind));
      break;
    }
  }
  std::printf("Kernels: %s\n", devices.empty() ? "built into the executor" : devices.c_str());
}

int ListOrDescribe(const OpRegistry& ops, const std::string& name) {
  if (name.empty()) {
    for (const OpRegistration* op : ops.All()) {
      const std::string& doc = op->schema.doc;
      std::printf("%-32s %s\n", op->schema.name.c_str(), doc.substr(0, doc.find('\n')).c_str());
    }
    return kDone;
  }
  const auto op = ops.Lookup(name);
  if (op.ok()) Describe(**op);
  return Report(op.status());
}

}  // namespace

void AddOpsCommand(CLI::App& app, const OpRegistry& ops, Command* chosen) {
  auto name = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("ops", "List the ops, or describe one");
  command->add_option("name", *name, "The op");
  command->callback([=, &ops] { *chosen = [name, &ops] { return ListOrDescribe(ops, *name); }; });
}

}  // namespace tenon::tools
