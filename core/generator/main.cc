// SPDX-License-Identifier: Apache-2.0
//
// tenon_generate_ops FILE.ops FOLDER: writes FILE_ops.h and FILE_ops.cc into the folder: the functions
// that build nodes of the ops that FILE.ops declares, and
//
//   bool DeclareFileOps(OpRegistry& ops);
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iostream>
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

Status Write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  return file ? OkStatus() : Unavailable("cannot write '", path.string(), "'");
}

Status Generate(const std::filesystem::path& in, const std::filesystem::path& folder) {
  std::ifstream file(in, std::ios::binary);
  std::stringstream text;
  if (file) text << file.rdbuf();
  if (!file) return NotFound("cannot read '", in.string(), "'");
  TENON_ASSIGN_OR_RETURN(const std::vector<OpSchema> ops,
                         ParseOpDeclarations(text.str(), in.string()));
  const FunctionCode code = FunctionsOf(ops);
  const std::string name = in.filename().string(), stem = in.stem().string() + "_ops";
  const std::string declare = StrCat("bool Declare", InPascalCase(in.stem().string()), "Ops");
  TENON_RETURN_IF_ERROR(Write(
      folder / (stem + ".h"),
      StrCat("// Made from ", name, ".\n#pragma once\n\n#include \"core/building.h\"\n\n",
             "namespace tenon {\n\nclass OpRegistry;\n\n/// Adds the ops of ", name,
             " to the registry. False when it has them already.\n", declare,
             "(OpRegistry& ops);\n\n", code.declarations, "}  // namespace tenon\n")));
  return Write(
      folder / (stem + ".cc"),
      StrCat("// Made from ", name, ".\n#include \"", stem, ".h\"\n\n",
             "#include \"core/op_registry.h\"\n\nnamespace tenon {\n\n", declare,
             "(OpRegistry& ops) {\n  return ops.Declare(R\"declarations(", text.str(),
             ")declarations\", \"", name, "\");\n}\n\n", code.definitions,
             "}  // namespace tenon\n"));
}

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: tenon_generate_ops FILE.ops FOLDER\n";
    return 2;
  }
  const tenon::Status status = tenon::Generate(argv[1], argv[2]);
  if (!status.ok()) std::cerr << tenon::Message(status) << '\n';
  return status.ok() ? 0 : 1;
}
