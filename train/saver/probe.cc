// SPDX-License-Identifier: Apache-2.0
#include "train/saver/probe.h"

#include <set>

#include "core/build/building.h"
#include "core/device/device_name.h"
#include "data/files/file.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/io/io_ops.h"
#include "ops/register.h"
#include "train/one_line.h"

namespace tenon {
namespace {

/// A task, the file that it writes, and the nodes that do it.
struct ProbedTask {
  std::string task;
  std::string file;
  Output path, read;
  Node* write;
};

Status RemoveProbe(const std::string& path) {
  const Status s = RemoveFile(path);
  return s.code() == StatusCode::kNotFound ? OkStatus() : s;
}

/// What is wrong with the directory as the task sees it; empty when nothing is.
std::string Probe(Session& session, const ProbedTask& probed, const std::string& file,
                  const std::string& content) {
  const auto seen = session.Run<std::string>({{probed.path, file}}, probed.read);
  if (!seen.ok()) {
    return StrCat("cannot read a file that was written here: ", Message(seen.status()));
  }
  if (*seen != content) return "sees another file where one was written here";
  const Status written = session.Run({}, {}, {probed.write}).status();
  if (!written.ok()) return StrCat("cannot write a file: ", Message(written));
  const auto here = ReadFileToString(probed.file);
  if (!here.ok() || *here != probed.task) {
    return StrCat("wrote '", probed.file, "', which is not to be seen here");
  }
  return "";
}

/// Writes `file` in the directory, whose name is the only one that the error shows: the file's
/// would be none that the user knows.
Status WriteProbe(const std::string& directory, const std::string& file,
                  const std::string& content) {
  if (const Status made = MakeFolders(directory); !made.ok()) {
    return Annotate(made, StrCat("no checkpoint can be written in '", directory, "'"));
  }
  const Status written = WriteStringToFile(file, content);
  std::string reason(Message(written));
  const size_t name = reason.find(file), end = reason.find("': ", std::min(name, reason.size()));
  if (end != std::string::npos) reason.erase(0, end + 3);
  return WithMessage(written,
                     StrCat("no checkpoint can be written in '", directory, "': ", reason));
}

}  // namespace

Status CheckCheckpointDirectory(const std::string& directory) {
  const std::string file = TemporaryName(JoinPath(directory, ".probe"));
  TENON_RETURN_IF_ERROR(WriteProbe(directory, file, ""));
  return RemoveProbe(file);
}

Status ProbeCheckpointDirectory(
    const std::string& directory, const std::vector<std::string>& devices,
    const std::function<StatusOr<std::unique_ptr<Session>>(const Graph&)>& open) {
  const std::string file = TemporaryName(JoinPath(directory, ".probe"));
  const std::string content = NameOf(file);
  Graph graph(AllOps());
  std::vector<ProbedTask> tasks;
  {
    const GraphBuilding building(graph);
    std::set<std::string> known;
    for (const std::string& device : devices) {
      TENON_ASSIGN_OR_RETURN(DeviceName name, DeviceName::Parse(device));
      name.type.reset();
      name.id.reset();
      const std::string task = name.ToString();
      if (!known.insert(task).second) continue;
      const DeviceScope on(task);
      const DeviceScope host("/device:CPU:0");
      const std::string own = StrCat(file, "-", tasks.size());
      // Fed, so that no pass of the master reads it for all.
      const Output path = Placeholder(DType::kString, Shape());
      const std::string text = task.empty() ? "the session's own task" : task;
      tasks.push_back({text, own, path, ReadFile(path), WriteFile(Const(own), Const(text))});
    }
    TENON_RETURN_IF_ERROR(building.status());
  }
  TENON_RETURN_IF_ERROR(WriteProbe(directory, file, content));
  std::vector<std::string> wrong;
  const auto probe = [&]() -> Status {
    TENON_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, open(graph));
    for (const ProbedTask& task : tasks) {
      const std::string mistake = OneLine(Probe(*session, task, file, content));
      if (!mistake.empty()) wrong.push_back(StrCat(task.task, " ", mistake));
      TENON_RETURN_IF_ERROR(RemoveProbe(task.file));
    }
    return OkStatus();
  };
  Status status = probe();
  status.Update(RemoveProbe(file));
  TENON_RETURN_IF_ERROR(status);
  if (wrong.empty()) return OkStatus();
  return FailedPrecondition("the directory of checkpoints, '", directory,
                            "', is not shared by all tasks that write there: ", Join(wrong, "; "));
}

}  // namespace tenon
