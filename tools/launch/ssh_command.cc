// SPDX-License-Identifier: Apache-2.0
#include "tools/launch/ssh_command.h"

#include <unistd.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cctype>
#include <sstream>

#include "core/base/strings.h"
#include "data/files/path.h"
#include "tools/commands.h"

namespace tenon::tools {
namespace {

constexpr std::string_view kCarriedPrefixes[] = {"TENON_", "OMP_", "AWS_", "S3_", "HADOOP_USER_"};
constexpr std::string_view kCarried[] = {"PATH", "LD_LIBRARY_PATH", "PYTHONPATH"};

/// The line that ssh hands to the account's shell, whichever that is. The bytes are taken one by
/// one, since those that follow are for the script.
constexpr std::string_view kReadScript =
    R"sh(exec sh -c 'read -r n && eval "$(dd bs=1 count=$n 2>/dev/null)"')sh";

constexpr std::string_view kAnswers = R"sh(
tell() { printf 'tenon-launch %s\n' "$*" >&2; }
refuse() { tell refused "$*"; exit 1; }
for program in setsid timeout; do
  command -v $program >/dev/null || refuse "there is no program $program"
done
)sh";

// Sets `cores` to the task's share of those that the account's processes may run on.
constexpr std::string_view kChooseCores = R"sh(
list=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)
all=
IFS=,
for range in $list; do
  core=${range%-*}
  while [ "$core" -le "${range#*-}" ]; do
    all="$all$core,"
    core=$((core + 1))
  done
done
set -- $all
unset IFS
[ $# -ge $cpus ] || refuse "--cpus_per_task: found $cpus, wanted at most $#, the cores there"
while [ $cpus -gt 0 ]; do
  eval "cores=\$cores\${cores:+,}\${$((first % $# + 1))}"
  first=$((first + 1))
  cpus=$((cpus - 1))
done
)sh";

// The task runs in the foreground of the first part, since a shell has what is in its background
// ignore SIGINT; the second part learns its number through the pipe. Descriptor 3 is the input that
// the launcher writes to, 4 what the task prints.
constexpr std::string_view kRunTask = R"sh(
exec 3<&0 4>&1
{
  setsid sh -c 'echo $$ >&5; echo "tenon-launch connected $$ $0" >&2; exec "$@" 2>&1 3<&- 5>&-' \
    "$cores" ${cores:+taskset -c "$cores"} "$@" </dev/null 5>&1 >&4 4>&-
  tell ended $?
} | {
  exec 4>&-
  read -r group || exit
  alive() { kill -0 "-$group" 2>/dev/null; }
  send() { kill "-$1" "-$group" 2>/dev/null; }
  limit=60
  while line=$(timeout $limit sh -c 'read -r line && echo "$line"' <&3 2>/dev/null); do
    case $line in
      beat) ;;
      poll) alive || { tell gone; exit; } ;;
      STOP) send STOP; limit=1000000 ;;
      CONT) send CONT; limit=60 ;;
      *) send "$line" ;;
    esac
  done
  send TERM
  send CONT
  left=30
  while alive && [ $left -gt 0 ]; do sleep 1; left=$((left - 1)); done
  alive && send KILL
}
)sh";

/// A shell could not export a variable of another name.
bool IsShellName(std::string_view name) {
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
         std::ranges::all_of(name,
                             [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

bool IsCarried(std::string_view name) {
  if (!IsShellName(name)) return false;
  return std::ranges::find(kCarried, name) != std::end(kCarried) ||
         std::ranges::any_of(kCarriedPrefixes,
                             [&](std::string_view prefix) { return name.starts_with(prefix); });
}

/// ssh has no brackets around an IPv6 address.
std::string SshHost(const std::string& host) {
  return host.starts_with('[') ? host.substr(1, host.size() - 2) : host;
}

/// A test that the program is there, and a refusal that names it.
std::string CheckProgram(const std::string& program) {
  const std::string word = ShellWord(program);
  const bool is_path = program.find('/') != std::string::npos;
  const std::string test = is_path ? StrCat("[ -f ", word, " ] && [ -x ", word, " ]")
                                   : StrCat("command -v ", word, " >/dev/null");
  return StrCat(test, " || refuse ",
                ShellWord(StrCat("there is no program ", program, " that may be run")), "\n");
}

}  // namespace

StatusOr<std::vector<std::string>> ParseSsh(const std::string& text) {
  std::vector<std::string> words = CLI::detail::split_up(text);
  std::erase(words, "");
  if (words.empty()) return WrongUsage("--ssh: found nothing, wanted a program and its options");
  return words;
}

std::vector<std::string> CarriedVariables(const Environment& environment) {
  std::vector<std::string> carried;
  for (const auto& [name, value] : environment.variables()) {
    if (IsCarried(name)) carried.push_back(StrCat(name, "=", value));
  }
  return carried;
}

Status CheckVariables(const std::vector<std::string>& variables) {
  for (const std::string& variable : variables) {
    if (IsShellName(variable.substr(0, variable.find('=')))) continue;
    return WrongUsage(StrCat("--env: found ", variable,
                             ", wanted a name of letters, digits and _, "
                             "which a shell on another host can export"));
  }
  return OkStatus();
}

std::string_view CarriedNames() {
  return "PATH, LD_LIBRARY_PATH, PYTHONPATH, TENON_*, OMP_*, AWS_*, S3_* and HADOOP_USER_*";
}

std::string SameProgram(const std::string& program, const Environment& environment) {
  const std::string* const path = environment.Find("PATH");
  if (path == nullptr || program.find('/') != std::string::npos) return program;
  std::istringstream folders(*path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string found = JoinPath(folder, program);
    if (folder.starts_with('/') && access(found.c_str(), X_OK) == 0) return found;
  }
  return program;
}

std::vector<std::string> SshCommand(const TaskPlan& task, const SshOptions& options) {
  std::vector<std::string> words = options.program;
  // The first setting of several is the one that ssh takes, so that a user's go before these.
  for (const char* setting :
       {"BatchMode=yes", "ConnectTimeout=15", "ServerAliveInterval=10", "ServerAliveCountMax=3",
        // A connection that others use would end with the task that has made it.
        "ControlMaster=no"}) {
    words.emplace_back("-o");
    words.emplace_back(setting);
  }
  words.insert(words.end(), {"-T", SshHost(task.host), std::string(kReadScript)});
  return words;
}

std::string RemoteScript(const TaskPlan& task, const SshOptions& options,
                         const std::vector<std::string>& variables) {
  std::string script(kAnswers);
  StrAppend(&script, "cd ", ShellWord(options.directory), " 2>/dev/null || refuse ",
            ShellWord(StrCat("the folder ", options.directory, " cannot be entered")), "\n");
  for (const auto* some : {&variables, &task.variables}) {
    for (const std::string& variable : *some) {
      const size_t equals = variable.find('=');
      StrAppend(&script, "export ", variable.substr(0, equals), "=",
                ShellWord(variable.substr(equals + 1)), "\n");
    }
  }
  StrAppend(&script, CheckProgram(task.arguments[0]), "cores=\n");
  if (options.cpus_per_task > 0) {
    StrAppend(&script, "cpus=", options.cpus_per_task,
              " first=", static_cast<int64_t>(options.cpus_per_task) * task.place, kChooseCores);
  }
  StrAppend(&script, "set -- ", ShellWords(task.arguments), kRunTask);
  return StrCat(script.size(), "\n", script);
}

std::string SshLine(const TaskPlan& task, const SshOptions& options,
                    const std::vector<std::string>& environment) {
  std::vector<std::string> words = SshCommand(task, options);
  words.back() = StrCat("cd ", ShellWord(options.directory), " && ", ShellLine(task, environment));
  return ShellWords(words);
}

}  // namespace tenon::tools
