// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

#include <functional>
#include <string>
#include <string_view>

#include "core/base/status.h"
#include "tools/flag_checks.h"

// The subcommands of `tenon`. Each adds its flags to the command line and, when it is the one that
// the user named, sets `chosen` to what runs it.

namespace tenon::tools {

/// Exit codes of the command.
inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;
inline constexpr int kWrongUsage = 2;

/// Runs the subcommand and returns the process's exit code.
using Command = std::function<int()>;

void AddRunCommand(CLI::App& app, Command* chosen);
void AddServeCommand(CLI::App& app, Command* chosen);
void AddLaunchCommand(CLI::App& app, Command* chosen);
void AddStopCommand(CLI::App& app, Command* chosen);
void AddStatusCommand(CLI::App& app, Command* chosen);
void AddTrainCommand(CLI::App& app, Command* chosen);
void AddPredictCommand(CLI::App& app, Command* chosen);
void AddBenchCommand(CLI::App& app, Command* chosen);
void AddDevicesCommand(CLI::App& app, Command* chosen);
void AddInspectCommand(CLI::App& app, Command* chosen);
void AddOpsCommand(CLI::App& app, Command* chosen);
/// Adds commands that know all others which have been added when they run.
void AddShellCommands(CLI::App& app, Command* chosen);

/// An error that is a mistake in the command's arguments, though only found while it runs. Its
/// lines after the first, if any, are printed as they are.
Status WrongUsage(std::string_view message);

/// kDone, or prints "tenon: <message>" to the error stream, after what was printed to the standard
/// output, and returns kFailed, or kWrongUsage for WrongUsage.
int Report(const Status& status);

/// The exit code of a command that `signal` has ended in good order, "stopped by SIGINT <what>"
/// being printed.
int ReportStop(int signal, std::string_view what);
/// The exit code of what a signal has ended in good order, 128 and its number, as shells have it;
/// kDone for 0.
int SignalCode(int signal);

/// Prints a line at once, for who watches; from any thread.
void PrintNotice(const std::string& line);

/// To be called last: hands to the system what was printed. `code`, or kFailed and a message on the
/// error stream when some of it could not be written.
int FinishOutput(int code);

/// Writes text to a file; an error names it.
Status WriteTextFile(const std::string& path, const std::string& text);

}  // namespace tenon::tools
