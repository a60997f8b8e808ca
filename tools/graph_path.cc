// SPDX-License-Identifier: Apache-2.0
#include "tools/graph_path.h"

#include "data/files/file.h"
#include "tools/checkpoints.h"
#include "tools/commands.h"
#include "train/saver/checkpoint_state.h"

namespace tenon::tools {
namespace {

constexpr size_t kMostNamed = 8;

bool IsModel(const std::string& folder) {
  return FileExists(JoinPath(folder, "saved_model.pb")) ||
         FileExists(JoinPath(folder, "saved_model.pbtxt"));
}

bool IsGraphName(const std::string& name) {
  return name.ends_with(".pb") || name.ends_with(".pbtxt") || name.ends_with(".meta");
}

/// "m, n and 3 more"
std::string SomeOf(std::vector<std::string> names) {
  const size_t more = names.size() - std::min(names.size(), kMostNamed);
  names.resize(names.size() - more);
  return StrCat(Join(names, ", "), more > 0 ? StrCat(" and ", more, " more") : "");
}

Status CheckpointInsteadOfGraph(const std::string& path, const std::string& prefix,
                                const std::string& command) {
  const std::string what =
      path == prefix ? StrCat("'", path, "' is a checkpoint, not a graph")
                     : StrCat("'", path, "' is a folder of checkpoints, of which the latest is '",
                              prefix, "', not a graph");
  const std::string meta = prefix + ".meta";
  const std::string graph = FileExists(meta) ? meta : "GRAPH";
  if (command == "inspect") {
    return WrongUsage(StrCat(what, graph == meta ? StrCat("; its graph is ", meta) : ""));
  }
  return WrongUsage(
      StrCat(what, "; its variables are restored by: tenon run ", graph, " --checkpoint ", prefix));
}

Status FolderInsteadOfGraph(const std::string& path) {
  const auto names = ListFolder(path);
  if (!names.ok()) return names.status();
  std::vector<std::string> graphs, models, others;
  for (const std::string& name : *names) {
    const std::string inner = JoinPath(path, name);
    if (IsModel(inner)) {
      models.push_back(inner);
    } else if (IsGraphName(name)) {
      graphs.push_back(inner);
    } else {
      others.push_back(name);
    }
  }
  const std::vector<std::string> checkpoints = CheckpointsIn(path);
  std::vector<std::string> found;
  if (!models.empty()) found.push_back(StrCat("SavedModels: ", SomeOf(models)));
  if (!graphs.empty()) found.push_back(StrCat("graphs: ", SomeOf(graphs)));
  if (!checkpoints.empty()) found.push_back(StrCat("checkpoints: ", SomeOf(checkpoints)));
  if (found.empty()) {
    found.push_back(others.empty() ? "nothing" : StrCat("other files: ", SomeOf(others)));
  }
  if (const auto state = GetCheckpointState(path); state.ok()) {
    return NotFound("the folder '", path,
                    "' has no saved_model.pb, and its state file 'checkpoint' ", "names '",
                    state->latest, "', which is not there; it has ", Join(found, "; "));
  }
  return NotFound("the folder '", path, "' has no saved_model.pb and no state file 'checkpoint', ",
                  "so that it is neither a SavedModel nor a folder of checkpoints; it has ",
                  Join(found, "; "));
}

}  // namespace

StatusOr<MetaGraphDef> LoadGraphAt(const std::string& path, const std::vector<std::string>& tags,
                                   const std::string& command) {
  auto meta = LoadMetaGraphDef(path, tags);
  if (meta.ok()) return meta;
  const bool is_folder = IsFolder(path);
  if (is_folder && IsModel(path)) return meta.status();
  const auto checkpoint = FindCheckpoint(path);
  if (checkpoint) return CheckpointInsteadOfGraph(path, *checkpoint, command);
  if (is_folder) return FolderInsteadOfGraph(path);
  if (meta.status().code() == StatusCode::kNotFound && !CheckpointsIn(FolderOf(path)).empty()) {
    const Status none = NoCheckpoint(path);
    return AppendToMessage(meta.status(), StrCat("; ", Message(none)));
  }
  return meta;
}

}  // namespace tenon::tools
