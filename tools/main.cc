// SPDX-License-Identifier: Apache-2.0
//
// The command `tenon`.
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <optional>

#include "core/base/program_version.h"
#include "data/files/file.h"
#include "data/files/path.h"
#include "tools/arguments.h"
#include "tools/commands.h"
#include "tools/help.h"
#include "tools/suggestions.h"

namespace tenon::tools {

namespace {

constexpr char kUsagePayload[] = "tenon.usage";

/// "tenon run", the subcommand that runs, which the help of wrong usage is about.
std::string& RunningCommand() {
  static std::string name = "tenon";
  return name;
}

void RememberCommand(const CLI::App& app, const std::vector<std::string>& arguments) {
  const CLI::App* command = &app;
  for (const std::string& word : arguments) {
    if (word.starts_with('-')) continue;
    const auto named =
        command->get_subcommands([&](const CLI::App* sub) { return sub->get_name() == word; });
    if (named.empty()) return;
    StrAppend(&RunningCommand(), " ", word);
    command = named[0];
  }
}

/// What is printed must not come in the midst of what the standard output has in its buffer.
void PrintError(const std::string& line) {
  std::fflush(stdout);
  std::fprintf(stderr, "tenon: %s\n", line.c_str());
}

int ReportWrongUsage(std::string message) {
  // The hint belongs to the first line; what follows says more.
  message.insert(std::min(message.find('\n'), message.size()),
                 StrCat(" (see ", RunningCommand(), " --help)"));
  PrintError(message);
  return kWrongUsage;
}

/// What the parser has to say: a help text, or a mistake.
int ReportArguments(const CLI::App& app, const CLI::ParseError& error,
                    const std::vector<std::string>& arguments) {
  if (error.get_exit_code() == 0) {
    app.exit(error);
    return FinishOutput(kDone);
  }
  const std::string misspelt = ExplainArguments(app, arguments);
  return ReportWrongUsage(misspelt.empty() ? DescribeMistake(app, error) : misspelt);
}

/// Parses the arguments; the exit code when that is all.
std::optional<int> Parse(CLI::App& app, const std::vector<std::string>& arguments) {
  RememberCommand(app, arguments);
  const auto normal = NormaliseArguments(app, arguments);
  if (!normal.ok()) return ReportWrongUsage(std::string(Message(normal.status())));
  try {
    app.parse(std::vector<std::string>(normal->rbegin(), normal->rend()));
    CheckNumbersAreFinite(app);
  } catch (const CLI::ParseError& e) {
    return ReportArguments(app, e, *normal);
  }
  return std::nullopt;
}

}  // namespace

Status WrongUsage(std::string_view message) {
  Status status = InvalidArgument(message);
  status.SetPayload(kUsagePayload, {});
  return status;
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
  if (status.GetPayload(kUsagePayload).has_value()) {
    return ReportWrongUsage(std::string(Message(status)));
  }
  // All but the lines that TensorFlow's client reads the failing node from.
  std::string message(Message(status));
  message.erase(std::min(message.find("\n\t [[{{node"), message.size()));
  // A server's line, which is above the error, is the beginning of it.
  const size_t end = message.find('\n');
  if (message.starts_with("From /job:") && end != std::string::npos) message[end] = ' ';
  PrintError(StrCat(absl::StatusCodeToString(status.code()), ": ", message));
  return kFailed;
}

int SignalCode(int signal) { return signal == 0 ? kDone : 128 + signal; }

int ReportStop(int signal, std::string_view what) {
  PrintError(StrCat("stopped by ", signal == SIGINT ? "SIGINT" : "SIGTERM", " ", what));
  return SignalCode(signal);
}

void PrintNotice(const std::string& line) {
  std::printf("%s%s", line.c_str(), line.ends_with('\n') ? "" : "\n");
  std::fflush(stdout);
}

Status WriteTextFile(const std::string& path, const std::string& text) {
  if (!SchemeOf(path).empty()) return WriteStringToFile(path, text);
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return StatusOfErrno(errno, "write", path);
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const int error = errno;
  if (std::fclose(file) != 0) return StatusOfErrno(errno, "write", path);
  return written ? OkStatus() : StatusOfErrno(error, "write", path);
}

}  // namespace tenon::tools

int main(int argc, char** argv) {
  using namespace tenon::tools;  // NOLINT: the command's own names
  CLI::App app("Tenon: runs and trains dataflow graphs, here and on clusters.", "tenon");
  app.require_subcommand(1);
  app.set_version_flag("--version", tenon::StrCat("tenon ", tenon::kProgramVersion));
  app.footer(
      "Flags may be written with '-' or '_'. Exit codes: 0 done, 1 the job failed, 2 wrong usage.");
  SetHelpFormat(&app);
  Command chosen;
  AddRunCommand(app, &chosen);
  AddServeCommand(app, &chosen);
  AddLaunchCommand(app, &chosen);
  AddStopCommand(app, &chosen);
  AddStatusCommand(app, &chosen);
  AddTrainCommand(app, &chosen);
  AddPredictCommand(app, &chosen);
  AddBenchCommand(app, &chosen);
  AddDevicesCommand(app, &chosen);
  AddInspectCommand(app, &chosen);
  AddOpsCommand(app, &chosen);
  AddShellCommands(app, &chosen);
  ShowDefaults(&app);
  const std::optional<int> ended = Parse(app, std::vector<std::string>(argv + 1, argv + argc));
  return ended ? *ended : FinishOutput(chosen());
}
