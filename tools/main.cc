// SPDX-License-Identifier: Apache-2.0
//
// The command `tenon`.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>

#include "ops/register.h"
#include "tools/commands.h"
#include "tools/suggestions.h"

namespace tenon::tools {

namespace {

constexpr char kUsagePayload[] = "tenon.usage";

/// What CLI11 prints for a help text or a mistake, with a better name for what was misspelt.
int ReportArguments(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  const bool mistake = error.get_exit_code() != 0;
  const std::string wrong =
      mistake ? ExplainArguments(app, std::vector<std::string>(argv + 1, argv + argc)) : "";
  if (wrong.empty()) {
    app.exit(error);
  } else {
    std::fprintf(stderr, "tenon: %s\nRun with --help for more information.\n", wrong.c_str());
  }
  return mistake ? kWrongUsage : FinishOutput(kDone);
}

}  // namespace

Status WrongUsage(std::string_view message) {
  Status status = InvalidArgument(message);
  status.SetPayload(kUsagePayload, {});
  return status;
}

CLI::Validator AtLeast(double minimum) {
  const std::string least = StrCat("at least ", minimum);
  return CLI::Validator(
      [=](std::string& text) -> std::string {
        double value = 0;
        if (!CLI::detail::lexical_cast(text, value)) return StrCat("'", text, "' is not a number");
        return value >= minimum ? "" : StrCat("found ", text, ", wanted ", least);
      },
      least);
}

int FinishOutput(int code) {
  const bool failed = std::fflush(stdout) != 0;
  const int error = errno;
  std::cout.flush();  // CLI11 prints there; it has no buffer of its own
  if (!failed && std::ferror(stdout) == 0 && std::cout.good()) return code;
  std::fprintf(stderr, "tenon: UNAVAILABLE: cannot write to the standard output%s%s\n",
               failed ? ": " : "", failed ? std::strerror(error) : "");
  return code == kDone ? kFailed : code;
}

int Report(const Status& status) {
  if (status.ok()) return kDone;
  // One line: without the lines that TensorFlow's client reads the failing node from.
  std::string line(Message(status));
  line.erase(std::min(line.find("\n\t [[{{node"), line.size()));
  std::replace(line.begin(), line.end(), '\n', ' ');
  std::fprintf(stderr, "tenon: %s: %s\n", absl::StatusCodeToString(status.code()).c_str(),
               line.c_str());
  return status.GetPayload(kUsagePayload).has_value() ? kWrongUsage : kFailed;
}

void PrintNotice(const std::string& line) {
  std::printf("%s%s", line.c_str(), line.ends_with('\n') ? "" : "\n");
  std::fflush(stdout);
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
  AddDevicesCommand(app, &chosen);
  AddInspectCommand(app, ops, &chosen);
  AddOpsCommand(app, ops, &chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return ReportArguments(app, e, argc, argv);
  }
  return FinishOutput(chosen());
}
