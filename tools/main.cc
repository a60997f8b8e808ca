// SPDX-License-Identifier: Apache-2.0
//
// The command `tenon`.
#include <algorithm>
#include <cstdio>
#include <fstream>

#include "ops/register.h"
#include "tools/commands.h"

namespace tenon::tools {

int Report(const Status& status) {
  if (status.ok()) return kDone;
  // One line: without the lines that TensorFlow's client reads the failing node from.
  std::string line(Message(status));
  line.erase(std::min(line.find("\n\t [[{{node"), line.size()));
  std::replace(line.begin(), line.end(), '\n', ' ');
  std::fprintf(stderr, "tenon: %s: %s\n", absl::StatusCodeToString(status.code()).c_str(),
               line.c_str());
  return kFailed;
}

Status WriteTextFile(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  return out.good() ? OkStatus() : Unavailable("cannot write ", path);
}

}  // namespace tenon::tools

int main(int argc, char** argv) {
  using namespace tenon::tools;  // NOLINT: the command's own names
  tenon::OpRegistry ops;
  tenon::RegisterAllOps(ops);
  CLI::App app("Tenon: runs and trains dataflow graphs, here and on clusters.", "tenon");
  app.require_subcommand(1);
  app.set_version_flag("--version", "tenon 0.1.0");
  Command chosen;
  AddRunCommand(app, ops, &chosen);
  AddServeCommand(app, ops, &chosen);
  AddLaunchCommand(app, &chosen);
  AddStopCommand(app, &chosen);
  AddStatusCommand(app, &chosen);
  AddTrainCommand(app, ops, &chosen);
  AddBenchCommand(app, ops, &chosen);
  AddOpsCommand(app, ops, &chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? kDone : kWrongUsage;
  }
  return chosen();
}
