// SPDX-License-Identifier: Apache-2.0
//
// tenon_generate_ops FILE.ops OUT.cc: writes the C++ file that has the declarations of FILE.ops, as
//
//   bool DeclareFileOps(OpRegistry& ops);
//
// after it has checked them.
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

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

Status Generate(const std::filesystem::path& in, const std::filesystem::path& out) {
  std::ifstream file(in, std::ios::binary);
  std::stringstream text;
  if (file) text << file.rdbuf();
  if (!file) return NotFound("cannot read '", in.string(), "'");
  TENON_RETURN_IF_ERROR(ParseOpDeclarations(text.str(), in.string()).status());
  const std::string code = StrCat(
      "// Made from ", in.filename().string(), ".\n#include \"core/op_registry.h\"\n\n",
      "namespace tenon {\n\nbool Declare", InPascalCase(in.stem().string()),
      "Ops(OpRegistry& ops);\nbool Declare", InPascalCase(in.stem().string()),
      "Ops(OpRegistry& ops) {\n  return ops.Declare(R\"declarations(", text.str(),
      ")declarations\", \"", in.filename().string(), "\");\n}\n\n}  // namespace tenon\n");
  std::ofstream written(out, std::ios::binary);
  written << code;
  written.close();
  return written ? OkStatus() : Unavailable("cannot write '", out.string(), "'");
}

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: tenon_generate_ops FILE.ops OUT.cc\n";
    return 2;
  }
  const tenon::Status status = tenon::Generate(argv[1], argv[2]);
  if (!status.ok()) std::cerr << tenon::Message(status) << '\n';
  return status.ok() ? 0 : 1;
}
