// SPDX-License-Identifier: Apache-2.0
#include "tools/launch/task_plan.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <string_view>

#include "core/base/strings.h"
#include "tools/processes.h"

namespace tenon::tools {

std::string TaskPlan::name() const {
  return StrCat(job, " ", index, host.empty() ? "" : StrCat(" (", host, ")"));
}
std::string TaskPlan::log_name() const { return StrCat(job, "-", index, ".log"); }

std::string ClusterShape::ToString() const {
  return StrCat(ps, ps == 1 ? " parameter server and " : " parameter servers and ", workers,
                workers == 1 ? " worker" : " workers");
}

bool HasFlag(const std::vector<std::string>& command, std::string_view flag) {
  return std::any_of(command.begin(), command.end(), [&](const std::string& word) {
    std::string name = word.substr(0, word.find('='));
    if (name.size() > 2) std::replace(name.begin() + 2, name.end(), '-', '_');
    return name == flag;
  });
}

std::vector<TaskPlan> TasksAt(const std::vector<std::string>& addresses,
                              const ClusterShape& shape) {
  const auto first_worker = addresses.begin() + shape.ps;
  std::vector<std::string> command = shape.command;
  if (shape.ps > 0) {
    const std::vector<std::string> servers(addresses.begin(), first_worker);
    command.push_back(StrCat("--ps_hosts=", Join(servers, ",")));
  }
  const std::vector<std::string> workers(first_worker, addresses.end());
  command.push_back(StrCat("--worker_hosts=", Join(workers, ",")));
  std::vector<TaskPlan> plans;
  for (int i = 0; i < shape.ps + shape.workers; ++i) {
    const bool is_server = i < shape.ps;
    TaskPlan& task = plans.emplace_back();
    task.role = is_server ? TaskRole::kParameterServer : TaskRole::kWorker;
    task.job = is_server ? kParameterServerJob : kWorkerJob;
    task.index = is_server ? i : i - shape.ps;
    task.address = addresses[i];
    task.arguments = command;
    task.arguments.push_back(StrCat("--job_name=", task.job));
    task.arguments.push_back(StrCat("--task_index=", task.index));
  }
  return plans;
}

StatusOr<std::vector<TaskPlan>> PlanTasks(const ClusterShape& shape,
                                          const std::vector<int>& cores) {
  TENON_ASSIGN_OR_RETURN(const std::vector<int> ports, FreePorts(shape.ps + shape.workers));
  std::vector<std::string> addresses;
  for (size_t i = 0; i < ports.size(); ++i) addresses.push_back(LoopbackHosts(ports, i, 1));
  std::vector<TaskPlan> plans = TasksAt(addresses, shape);
  size_t place = 0;
  for (TaskPlan& task : plans) {
    for (int k = 0; k < shape.cpus_per_task; ++k) {
      task.cores.push_back(cores[place++ % cores.size()]);
    }
    std::sort(task.cores.begin(), task.cores.end());
  }
  return plans;
}

void DealGpus(int gpus_per_task, const std::vector<std::string>& visible,
              std::vector<TaskPlan>* plans) {
  std::map<std::string, size_t> next;  // of each host
  for (TaskPlan& task : *plans) {
    std::vector<std::string> gpus;
    for (int k = 0; k < gpus_per_task && task.role == TaskRole::kWorker; ++k) {
      const size_t number = next[task.host]++;
      gpus.push_back(task.host.empty() ? visible[number] : StrCat(number));
    }
    task.variables.push_back(StrCat("CUDA_VISIBLE_DEVICES=", Join(gpus, ",")));
  }
}

std::string CoreList(const std::vector<int>& cores) {
  std::vector<std::string> texts;
  for (const int core : cores) texts.push_back(StrCat(core));
  return Join(texts, ",");
}

std::string ShellWord(std::string_view text) {
  constexpr std::string_view kPlain = "_-./:,=+@%";
  const bool is_plain = std::all_of(text.begin(), text.end(), [&](unsigned char c) {
    return std::isalnum(c) != 0 || kPlain.find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (is_plain && !text.empty()) return std::string(text);
  std::string word = "'";
  for (const char c : text) {
    if (c == '\'') {
      word += "'\\''";
    } else {
      word += c;
    }
  }
  return word + "'";
}

std::string ShellWords(const std::vector<std::string>& texts) {
  std::vector<std::string> words;
  for (const std::string& text : texts) words.push_back(ShellWord(text));
  return Join(words, " ");
}

std::string ShellLine(const TaskPlan& task, const std::vector<std::string>& environment) {
  std::vector<std::string> words;
  if (!environment.empty() || !task.variables.empty()) words.emplace_back("env");
  for (const auto* variables : {&environment, &task.variables}) {
    for (const std::string& variable : *variables) words.push_back(ShellWord(variable));
  }
  if (!task.cores.empty()) words.push_back(StrCat("taskset -c ", CoreList(task.cores)));
  for (const std::string& argument : task.arguments) words.push_back(ShellWord(argument));
  return Join(words, " ");
}

}  // namespace tenon::tools
