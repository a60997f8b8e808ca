// SPDX-License-Identifier: Apache-2.0
//
// tenon_generate_ops FILE.ops FOLDER [--register SOURCES...]: writes FILE_ops.h and FILE_ops.cc into the
// folder: the functions that build nodes of the ops that FILE.ops declares, and
//
//   bool DeclareFileOps(OpRegistry& ops);
//
// or, with --register, which also calls every `void RegisterXxx(OpRegistry& ops)` of the sources, which
// are functions of namespace tenon,
//
//   void RegisterFileOps(OpRegistry& ops);
//
// What has not changed is not written again.
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <regex>
#include <sstream>

#include "core/generator/functions.h"
#include "core/op_declaration.h"

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
      return InvalidArgument(source, " registers ops, but has no 'void RegisterXxx(OpRegistry& ops) {'");
    }
  }
  return names;
}

/// What adds the ops to a registry.
struct Registration {
  std::string declaration, definition;
};

Registration Declare(const std::string& function, const std::string& file, const std::string& text) {
  return {StrCat("/// Adds the ops of ", file, " to the registry. False when it has them already.\nbool ",
                 function, "(OpRegistry& ops);\n\n"),
          StrCat("bool ", function, "(OpRegistry& ops) {\n  return ops.Declare(R\"declarations(", text,
                 ")declarations\", \"", file, "\");\n}\n\n")};
}

Registration Register(const std::string& function, const std::string& file, const std::string& text,
                      const std::vector<std::string>& called) {
  std::string declarations, calls;
  for (const std::string& name : called) {
    StrAppend(&declarations, "void ", name, "(OpRegistry& ops);\n");
    StrAppend(&calls, "  ", name, "(ops);\n");
  }
  return {StrCat("/// Adds the ops of ", file, " to the registry, with what they do, unless it has them.\n",
                 "void ", function, "(OpRegistry& ops);\n\n"),
          StrCat(declarations, "\nvoid ", function,
                 "(OpRegistry& ops) {\n  if (!ops.Declare(R\"declarations(", text,
                 ")declarations\", \"", file, "\")) return;\n", calls, "}\n\n")};
}

Status Generate(const std::filesystem::path& in, const std::filesystem::path& folder, bool registers,
                const std::vector<std::string>& sources) {
  TENON_ASSIGN_OR_RETURN(const std::string text, Read(in));
  TENON_ASSIGN_OR_RETURN(const std::vector<OpSchema> ops, ParseOpDeclarations(text, in.string()));
  TENON_ASSIGN_OR_RETURN(const std::vector<std::string> called, RegisterFunctions(sources));
  const FunctionCode code = FunctionsOf(ops);
  const std::string file = in.filename().string(), stem = in.stem().string() + "_ops";
  const std::string name = InPascalCase(stem);
  const Registration registration = registers ? Register("Register" + name, file, text, called)
                                              : Declare("Declare" + name, file, text);
  TENON_RETURN_IF_ERROR(
      Write(folder / (stem + ".h"),
            StrCat("// Made from ", file, ".\n#pragma once\n\n#include \"core/building.h\"\n\n",
                   "namespace tenon {\n\nclass OpRegistry;\n\n", registration.declaration,
                   code.declarations, "}  // namespace tenon\n")));
  return Write(folder / (stem + ".cc"),
               StrCat("// Made from ", file, ".\n#include \"", stem, ".h\"\n\n",
                      "#include \"core/op_registry.h\"\n\nnamespace tenon {\n\n",
                      registration.definition, code.definitions, "}  // namespace tenon\n"));
}

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) {
  const bool registers = argc > 3 && std::string_view(argv[3]) == "--register";
  if (argc != 3 && !registers) {
    std::cerr << "usage: tenon_generate_ops FILE.ops FOLDER [--register SOURCES...]\n";
    return 2;
  }
  const std::vector<std::string> sources(argv + (registers ? 4 : 3), argv + argc);
  const tenon::Status status = tenon::Generate(argv[1], argv[2], registers, sources);
  if (!status.ok()) std::cerr << tenon::Message(status) << '\n';
  return status.ok() ? 0 : 1;
}
