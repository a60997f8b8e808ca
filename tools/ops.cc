// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/graph.h"
#include "tools/commands.h"
#include "tools/suggestions.h"

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
  std::printf("Kernels: %s\n", !devices.empty()           ? devices.c_str()
                               : IsRuntimeOp(op.schema.name) ? "built into the executor"
                                                             : "none: a step that needs it fails");
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
    kernels.push_back({{"device", ToString(k.device)}, {"types", types}});
  }
  return {{"name", op.schema.name},
          {"stateful", op.schema.is_stateful},
          {"gradient", op.gradient ? "yes" : op.not_differentiable ? "none" : "unknown"},
          {"kernels", kernels}};
}

int PrintJson(const OpRegistry& ops) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const OpRegistration* op : ops.All()) list.push_back(AsJson(*op));
  std::printf("%s\n", list.dump(1).c_str());
  return kDone;
}

int ListOrDescribe(const OpRegistry& ops, const std::string& name) {
  if (name.empty()) {
    for (const OpRegistration* op : ops.All()) {
      const bool runs = !op->kernels.empty() || IsRuntimeOp(op->schema.name);
      const std::string doc = StrCat(runs ? "" : "(no kernel) ", op->schema.doc);
      std::printf("%-32s %s\n", op->schema.name.c_str(), doc.substr(0, doc.find('\n')).c_str());
    }
    return kDone;
  }
  const auto op = ops.Lookup(name);
  if (op.ok()) {
    Describe(**op);
    return kDone;
  }
  std::vector<std::string> names;
  for (const OpRegistration* known : ops.All()) names.push_back(known->schema.name);
  return Report(NotFound("there is no op ", name, DidYouMean(name, names)));
}

}  // namespace

void AddOpsCommand(CLI::App& app, const OpRegistry& ops, Command* chosen) {
  auto name = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("ops", "List the ops, or describe one");
  command->add_option("name", *name, "The op");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "All ops with their gradients and kernels, for programs");
  command->callback([=, &ops] {
    *chosen = [=, &ops] { return *json ? PrintJson(ops) : ListOrDescribe(ops, *name); };
  });
}

}  // namespace tenon::tools
