// SPDX-License-Identifier: Apache-2.0
//
// tenon_generate_ops FILE.ops FOLDER [--basic] [--register SOURCES...]: writes FILE_ops.h and
// FILE_ops.cc into the folder: the functions that build nodes of the ops that FILE.ops declares,
// and
//
//   bool DeclareFileOps(OpRegistry& ops);
//
// or, with --register, which also calls every `void RegisterXxx(OpRegistry& ops)` of the sources,
// which are functions of namespace tenon,
//
//   void RegisterFileOps(OpRegistry& ops);
//
// With --basic the functions of ops that are declared as basic stand in FILE_basic_ops.h, which
// FILE_ops.h includes: who needs no others is not compiled again when an op is added to the file.
// What has not changed is not written again.
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <regex>
#include <sstream>

#include "core/generator/functions.h"
#include "core/op/op_declaration.h"

namespace tenon {
namespace {

/// "tensor_array" is TensorArray.
std::string InPascalCase(std::string_view name) {
  std::string out;
  bool begins = true;
  for (const char c : name) {
    if (c != '_') out += static_cast<char>(begins ? std::toupper(c) : c);
    begins = c == '_';
  }
  return out;
}

StatusOr<std::string> Read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  if (file) text << file.rdbuf();
  if (!file) return NotFound("cannot read '", path.string(), "'");
  return text.str();
}

Status Write(const std::filesystem::path& path, const std::string& text) {
  if (const auto before = Read(path); before.ok() && *before == text) return OkStatus();
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  return file ? OkStatus() : Unavailable("cannot write '", path.string(), "'");
}

/// The functions of the sources that say what ops do.
StatusOr<std::vector<std::string>> RegisterFunctions(const std::vector<std::string>& sources) {
  static const std::regex definition(
      R"(\nvoid\s+(Register\w+)\(\s*OpRegistry\s*&\s*\w+\s*\)\s*\{)");
  static const std::regex addition(R"(\bops\.(Add|Get)\b)");
  std::vector<std::string> names;
  for (const std::string& source : sources) {
    TENON_ASSIGN_OR_RETURN(const std::string text, Read(source));
    const size_t before = names.size();
    for (std::sregex_iterator at(text.begin(), text.end(), definition), end; at != end; ++at) {
      names.push_back((*at)[1]);
    }
    if (names.size() == before && std::regex_search(text, addition)) {
      return InvalidArgument(source,
                             " registers ops, but has no 'void RegisterXxx(OpRegistry& ops) {'");
    }
  }
  return names;
}

/// What adds the ops to a registry.
struct Registration {
  std::string declaration, definition;
};

Registration Declare(const std::string& function, const std::string& file,
                     const std::string& text) {
  return {StrCat("/// Adds the ops of ", file,
                 " to the registry. False when it has them already.\nbool ", function,
                 "(OpRegistry& ops);\n\n"),
          StrCat("bool ", function, "(OpRegistry& ops) {\n  return ops.Declare(R\"declarations(",
                 text, ")declarations\", \"", file, "\");\n}\n\n")};
}

Registration Register(const std::string& function, const std::string& file, const std::string& text,
                      const std::vector<OpSchema>& ops, const std::vector<std::string>& called) {
  std::string declarations, names, calls;
  for (const OpSchema& op : ops) StrAppend(&names, "\n       \"", op.name, "\",");
  for (const std::string& name : called) {
    StrAppend(&declarations, "void ", name, "(OpRegistry& ops);\n");
    StrAppend(&calls, "\n         ", name, "(registry);");
  }
  return {StrCat("/// Adds the ops of ", file,
                 " to the registry, with what they do, unless it has them.\n", "void ", function,
                 "(OpRegistry& ops);\n\n"),
          StrCat(declarations, "\nvoid ", function,
                 "(OpRegistry& ops) {\n  ops.DeclareFamily(\n      {\"", file,
                 "\", R\"declarations(", text, ")declarations\",\n       {", names,
                 "},\n       []([[maybe_unused]] OpRegistry& registry) {", calls,
                 "\n       }});\n}\n\n")};
}

/// What is made, and where.
struct Task {
  std::filesystem::path declarations, folder;
  bool basic = false, registers = false;
  std::vector<std::string> sources;  // with `registers`
};

StatusOr<Task> ReadArguments(absl::Span<char* const> arguments) {
  Task task;
  size_t at = 3;
  const auto next_is = [&](std::string_view flag) {
    return at < arguments.size() && arguments[at] == flag && ++at;
  };
  if (arguments.size() >= at) {
    task.declarations = arguments[1];
    task.folder = arguments[2];
    task.basic = next_is("--basic");
    task.registers = next_is("--register");
    if (task.registers || at == arguments.size()) {
      task.sources.assign(arguments.begin() + at, arguments.end());
      return task;
    }
  }
  return InvalidArgument(
      "usage: tenon_generate_ops FILE.ops FOLDER [--basic] [--register SOURCES...]");
}

Status Generate(const Task& task) {
  TENON_ASSIGN_OR_RETURN(const std::string text, Read(task.declarations));
  TENON_ASSIGN_OR_RETURN(const std::vector<OpSchema> ops,
                         ParseOpDeclarations(text, task.declarations.string()));
  TENON_ASSIGN_OR_RETURN(const std::vector<std::string> called, RegisterFunctions(task.sources));
  const FunctionCode basic = FunctionsOf(ops, true), code = FunctionsOf(ops, false);
  const std::string file = task.declarations.filename().string();
  const std::string stem = task.declarations.stem().string(), name = InPascalCase(stem + "_ops");
  const auto write = [&](std::string_view end, const std::string& contents) {
    return Write(task.folder / StrCat(stem, end), StrCat("// Made from ", file, ".\n", contents));
  };
  std::string includes = "#include \"core/build/building.h\"\n";
  if (task.basic) {
    TENON_RETURN_IF_ERROR(
        write("_basic_ops.h", StrCat("#pragma once\n\n", includes, "\nnamespace tenon {\n\n",
                                     basic.declarations, "}  // namespace tenon\n")));
    includes = StrCat("#include \"", stem, "_basic_ops.h\"\n");
  } else if (!basic.declarations.empty()) {
    return InvalidArgument(file, " declares basic ops, for which --basic is wanted");
  }
  const Registration registration = task.registers
                                        ? Register("Register" + name, file, text, ops, called)
                                        : Declare("Declare" + name, file, text);
  TENON_RETURN_IF_ERROR(write(
      "_ops.h", StrCat("#pragma once\n\n", includes, "\nnamespace tenon {\n\nclass OpRegistry;\n\n",
                       registration.declaration, code.declarations, "}  // namespace tenon\n")));
  return write("_ops.cc",
               StrCat("#include \"", stem, "_ops.h\"\n\n#include \"core/op/op_registry.h\"\n\n",
                      "namespace tenon {\n\n", registration.definition, basic.definitions,
                      code.definitions, "}  // namespace tenon\n"));
}

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) {
  const tenon::StatusOr<tenon::Task> task = tenon::ReadArguments({argv, static_cast<size_t>(argc)});
  const tenon::Status status = task.ok() ? tenon::Generate(*task) : task.status();
  if (!status.ok()) std::cerr << tenon::Message(status) << '\n';
  return status.ok() ? 0 : 1;
}
