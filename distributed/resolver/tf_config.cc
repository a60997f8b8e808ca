// SPDX-License-Identifier: Apache-2.0
#include "distributed/resolver/tf_config.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "core/base/closest_name.h"
#include "core/base/strings.h"
#include "distributed/protocol/task_role.h"

namespace tenon {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kShown = 60;

/// A text or what stands for it, cut where it is long.
std::string Shown(std::string_view text) {
  return StrCat(text.substr(0, kShown), text.size() > kShown ? "..." : "");
}

/// A whole number of at least 0, which many write as a text.
std::optional<int> NumberOf(const Json& json) {
  if (json.is_number_integer()) {
    const auto number = json.get<int64_t>();
    return number >= 0 && number <= INT32_MAX ? std::optional<int>(number) : std::nullopt;
  }
  if (!json.is_string()) return std::nullopt;
  const auto& text = json.get_ref<const std::string&>();
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_read = error == std::errc() && end == text.data() + text.size() && number >= 0;
  return is_read ? std::optional<int>(number) : std::nullopt;
}

class Reader {
 public:
  explicit Reader(std::vector<std::string>* mistakes) : mistakes_(*mistakes) {}

  TfConfig Read(std::string_view text) {
    Json json;
    try {
      json = Json::parse(text);
    } catch (const Json::parse_error& error) {
      AddSyntax(text, error.byte);
      return config_;
    }
    if (!json.is_object()) {
      Add("found ", Shown(json.dump()), R"(, wanted an object {"cluster": ..., "task": ...})");
      return config_;
    }
    CheckMembers(json);
    if (json.contains("cluster")) ReadCluster("cluster", json["cluster"]);
    for (const char* name : {"sparseCluster", "sparse_cluster"}) {
      if (json.contains(name) && !json.contains("cluster")) ReadCluster(name, json[name]);
    }
    if (json.contains("task")) ReadTask(json["task"]);
    return config_;
  }

 private:
  template <typename... Parts>
  void Add(const Parts&... parts) {
    mistakes_.push_back(StrCat(parts...));
  }

  void AddSyntax(std::string_view text, size_t byte) {
    const size_t at = std::min(byte > 0 ? byte - 1 : 0, text.size());
    const size_t quote = text.find('\'');
    const bool is_quoted = quote <= at && quote != std::string_view::npos;
    Add("it is no JSON: found ",
        at < text.size() ? StrCat("'", Shown(text.substr(at)), "'") : "the end", " at byte ",
        at + 1,
        is_quoted
            ? "; JSON has double quotes (\"), and the shell wants single ones around the whole: "
              "TF_CONFIG='{\"cluster\": ...}'"
            : "");
  }

  /// A member that is nearly one of those with a meaning is a slip.
  void CheckMembers(const Json& json) {
    for (const auto& [name, value] : json.items()) {
      const std::vector<std::string> known = {"cluster", "task", "sparseCluster"};
      if (std::count(known.begin(), known.end(), name) > 0 || name == "sparse_cluster") continue;
      const std::string meant = ClosestName(name, known);
      if (!meant.empty() && !json.contains(meant)) {
        Add("found a member '", name, "'; did you mean '", meant, "'?");
      }
    }
  }

  void ReadCluster(std::string_view member, const Json& cluster) {
    if (!cluster.is_object()) {
      Add(member, " is ", Shown(cluster.dump()),
          R"(, wanted an object such as {"ps": ["host:port"]})");
      return;
    }
    for (const auto& [job, tasks] : cluster.items()) {
      const std::vector<std::string> known = {"chief", "master", "worker", "ps", "evaluator"};
      if (std::count(known.begin(), known.end(), job) == 0) {
        if (const std::string meant = ClosestName(job, known); !meant.empty()) {
          Add(member, " has a job '", job, "'; did you mean '", meant, "'?");
        }
      }
      ReadJob(job, tasks);
    }
    if (cluster.contains("chief") && cluster.contains("master")) {
      Add(member, " has both a chief and a master, which are two names of one job");
    }
  }

  void ReadJob(const std::string& job, const Json& tasks) {
    if (tasks.is_array()) {
      for (size_t i = 0; i < tasks.size(); ++i) ReadAddress(job, static_cast<int>(i), tasks[i]);
    } else if (tasks.is_object()) {
      for (const auto& [number, address] : tasks.items()) {
        const std::optional<int> task = NumberOf(Json(number));
        if (task) {
          ReadAddress(job, *task, address);
        } else {
          Add("job '", job, "' has a task '", Shown(number), "', wanted a number");
        }
      }
    } else {
      Add("job '", job, "' is ", Shown(tasks.dump()), R"(, wanted a list such as ["host:port"])");
    }
    const bool is_chief = job == "chief" || job == "master";
    if (is_chief && tasks.size() > 1) {
      Add("job '", job, "' has ", tasks.size(), " tasks; there is one chief");
    }
  }

  void ReadAddress(const std::string& job, int task, const Json& address) {
    if (!address.is_string()) {
      Add("task ", task, " of job '", job, "' is at ", Shown(address.dump()),
          ", wanted a text \"host:port\"");
      return;
    }
    if (job == "evaluator") {
      ++config_.num_evaluators;
      return;
    }
    const Status added = config_.cluster.AddTask(job, task, address.get<std::string>());
    if (!added.ok()) Add(Message(added));
  }

  void ReadTask(const Json& task) {
    if (!task.is_object()) {
      Add("task is ", Shown(task.dump()),
          R"(, wanted an object such as {"type": "worker", "index": 0})");
      return;
    }
    if (!task.contains("type")) {
      Add("task has no \"type\", which is the job: chief, worker, ps or evaluator");
    } else if (!task["type"].is_string()) {
      Add("task's type is ", Shown(task["type"].dump()), ", wanted a text such as \"worker\"");
    } else {
      config_.job = task["type"].get<std::string>();
    }
    if (!task.contains("index")) {
      // There is one chief and, for Estimators, one evaluator.
      config_.task = 0;
      if (config_.job == "worker" || config_.job == "ps") {
        Add("task has no \"index\", which is its number in the job ", *config_.job);
      }
      return;
    }
    config_.task = NumberOf(task["index"]);
    if (!config_.task) Add("task's index is ", Shown(task["index"].dump()), ", wanted a number");
  }

  std::vector<std::string>& mistakes_;
  TfConfig config_;
};

}  // namespace

TfConfig ReadTfConfig(std::string_view text, std::vector<std::string>* mistakes) {
  return Reader(mistakes).Read(text);
}

}  // namespace tenon
