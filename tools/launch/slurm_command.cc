// SPDX-License-Identifier: Apache-2.0
#include "tools/launch/slurm_command.h"

#include <algorithm>
#include <string_view>

#include "core/base/strings.h"
#include "distributed/resolver/task_credentials.h"
#include "tools/commands.h"
#include "tools/launch/job_token.h"

namespace tenon::tools {
namespace {

/// A shell's words for 32 random bytes as hexadecimal digits, as MakeJobToken.
constexpr char kRandomToken[] = "$(od -An -v -N32 -tx1 /dev/urandom | tr -d ' \\n')";

/// Options that the job itself gives to srun, and some to sbatch, too, with what a user gives
/// instead.
struct OwnOption {
  std::string_view name, letter, instead;
  bool of_script = false;
};
constexpr OwnOption kOwnOptions[] = {
    {"--ntasks", "-n", "--ps and --workers say how many tasks there are", true},
    {"--nodes", "-N", "--nodes of this command says it", true},
    {"--cpus-per-task", "-c", "--cpus_per_task says it", true},
    {"--gpus-per-task", "", "--gpus_per_task says it", true},
    {"--label", "-l", "each line has the name of its task in any case"},
    {"--output", "-o", "--log_dir says it"},
    {"--error", "-e", "--log_dir says it"},
    {"--export", "", "--env says it, and the tasks need the variable of the job's token"},
    {"--multi-prog", "", "all tasks run the same program"},
};

/// Whether the word is this option, with a value in it or not.
bool IsOption(std::string_view word, const OwnOption& option) {
  if (word.substr(0, word.find('=')) == option.name) return true;
  return !option.letter.empty() && !word.starts_with("--") && word.starts_with(option.letter);
}

/// What the job asks for, for srun and sbatch alike.
std::vector<std::string> Resources(const SlurmJob& job) {
  std::vector<std::string> options = {StrCat("--ntasks=", job.num_tasks())};
  if (job.nodes > 0) options.push_back(StrCat("--nodes=", job.nodes));
  if (job.shape.cpus_per_task > 0) {
    options.push_back(StrCat("--cpus-per-task=", job.shape.cpus_per_task));
  }
  if (job.shape.gpus_per_task > 0) {
    options.push_back(StrCat("--gpus-per-task=", job.shape.gpus_per_task));
  }
  return options;
}

/// How the step is run, and what.
std::vector<std::string> Srun(const SlurmJob& job, const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {"srun"};
  const auto add = [&](const std::vector<std::string>& more) {
    words.insert(words.end(), more.begin(), more.end());
  };
  add(Resources(job));
  // SIGINT goes to the tasks at once, which end by themselves, the chief last: the first one that
  // ends must not end the others.
  add({"--label", "--disable-status", "--kill-on-bad-exit=0"});
  // The variables of this process are the tasks', whatever a batch script was told. Ranks are found
  // where this distribution puts them.
  add({"--export=ALL", "--distribution=block", "--input=none"});
  add(arguments);
  add(job.shape.command);
  words.push_back(StrCat("--num_ps=", job.shape.ps));
  return words;
}

/// A shell's word in which the name of a variable is left as it is.
std::string Assignment(const std::string& variable) {
  const size_t equals = variable.find('=');
  return StrCat(variable.substr(0, equals), "=", ShellWord(variable.substr(equals + 1)));
}

}  // namespace

void SlurmFlags::AddTo(CLI::App& launch) {
  CLI::Option* const run = launch.add_flag(
      "--slurm", slurm,
      "Run the tasks by Slurm's srun: as a step of the allocation that this shell is in, else as a "
      "job of their own, which ends with this command");
  launch
      .add_flag("--print_slurm", print_slurm,
                "Start nothing, and print a script for Slurm's sbatch that runs the tasks")
      ->excludes(run);
  launch.add_option("--nodes", nodes, "With these: how many nodes; default: as Slurm places tasks")
      ->check(AtLeast(1));
  launch
      .add_option("--slurm_args", values,
                  "With these: options of srun or sbatch, such as \"--partition=big --time=60\"; a "
                  "flag for each, or one for several")
      ->allow_extra_args(false);
}

StatusOr<std::vector<std::string>> SlurmArguments(const std::vector<std::string>& values,
                                                  bool for_script) {
  std::vector<std::string> words;
  for (const std::string& value : values) {
    const std::vector<std::string> more = CLI::detail::split_up(value);
    words.insert(words.end(), more.begin(), more.end());
  }
  if (!words.empty() && !words[0].starts_with('-')) {
    return WrongUsage(StrCat("--slurm_args: found '", words[0],
                             "', wanted options of srun, such as --partition=big"));
  }
  for (const std::string& word : words) {
    for (const OwnOption& option : kOwnOptions) {
      if (!IsOption(word, option) || (for_script && !option.of_script)) continue;
      return WrongUsage(StrCat("--slurm_args: found ", word, "; ", option.instead));
    }
  }
  return words;
}

std::vector<std::string> SrunCommand(const SlurmJob& job) { return Srun(job, job.arguments); }

std::string SrunLine(const SlurmJob& job) {
  std::string line;
  for (const std::string& variable : job.environment) line += Assignment(variable) + " ";
  if (WantsJobToken(job.shape.command)) StrAppend(&line, kTokenVariable, "=", kRandomToken, " ");
  return line + ShellWords(SrunCommand(job));
}

std::string SbatchScript(const SlurmJob& job) {
  std::string text = StrCat("#!/usr/bin/env bash\n# ", job.shape,
                            ", printed by tenon launch --print_slurm. With this file as job.sh:\n"
                            "#   sbatch job.sh        (add --wait to wait for its end)\n"
                            "#   scancel JOB          (workers end with a checkpoint)\n"
                            "#SBATCH --job-name=tenon\n");
  for (const std::string& option : Resources(job)) StrAppend(&text, "#SBATCH ", option, "\n");
  if (!job.arguments.empty()) StrAppend(&text, "#SBATCH ", ShellWords(job.arguments), "\n");
  text +=
      "# A minute before the time limit workers end with a checkpoint.\n#SBATCH --signal=TERM@60\n"
      "# Change: take one of the two # away, and write what your site has.\n"
      "##SBATCH --partition=NAME\n##SBATCH --time=1-00:00:00\n##SBATCH --output=%x-%j.log\n"
      "set -euo pipefail\n\n";
  for (const std::string& variable : job.environment) {
    StrAppend(&text, "export ", Assignment(variable), "\n");
  }
  if (WantsJobToken(job.shape.command)) {
    StrAppend(&text,
              "# The secret by which the tasks know each other, a new one for each job; srun hands "
              "it on.\n",
              kTokenVariable, "=${", kTokenVariable, ":-", kRandomToken, "}\nexport ",
              kTokenVariable, "\n");
  }
  StrAppend(&text,
            "# Each line of output has the number of its task before it; the first tasks "
            "are the parameter servers.\n",
            "exec ", ShellWords(Srun(job, {})), "\n");
  return text;
}

}  // namespace tenon::tools
