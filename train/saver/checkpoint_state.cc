// SPDX-License-Identifier: Apache-2.0
#include "train/saver/checkpoint_state.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include "data/checkpoint/tensor_bundle.h"
#include "data/files/file.h"
#include "proto/checkpoint_state.pb.h"

namespace tenon {
namespace {

/// Keeps the parser from writing to the log what the caller says itself.
class SilentParsing : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int, google::protobuf::io::ColumnNumber, const std::string&) override {}
};

bool IsAbsolute(std::string_view path) {
  return path.starts_with('/') || path.find("://") != std::string_view::npos;
}

/// As the state file has it: relative to a directory that is relative itself.
std::string PathInState(const std::string& path, const std::string& directory) {
  if (IsAbsolute(path) || IsAbsolute(directory)) return path;
  return RelativePath(path, directory.empty() ? "." : directory);
}

std::string PathOfState(const std::string& path, const std::string& directory) {
  return IsAbsolute(path) ? path : JoinPath(directory, path);
}

Status RemoveIfThere(const std::string& path) {
  const Status s = RemoveFile(path);
  return s.code() == StatusCode::kNotFound ? OkStatus() : s;
}

/// Whether `name` is what an unfinished save to `base`, or "<base>-<step>", leaves:
/// "m-5.index.tempstate0_1", or the folder "m-5_temp".
bool IsUnfinished(std::string_view name, std::string_view base) {
  if (!name.starts_with(base)) return false;
  name.remove_prefix(base.size());
  if (name.starts_with('-')) {
    name.remove_prefix(std::min(name.find_first_not_of("-0123456789"), name.size()));
  }
  if (name == "_temp") return true;
  const bool ours =
      name.starts_with(".data-") || name.starts_with(".index.") || name.starts_with(".meta.");
  return ours && name.find(".tempstate") != std::string_view::npos;
}

}  // namespace

StatusOr<CheckpointPaths> GetCheckpointState(const std::string& directory,
                                             std::string_view latest_filename) {
  const std::string file = JoinPath(directory, latest_filename);
  TENON_ASSIGN_OR_RETURN(const std::string text, ReadFileToString(file));
  CheckpointState state;
  google::protobuf::TextFormat::Parser parser;
  SilentParsing silent;
  parser.RecordErrorsTo(&silent);
  parser.AllowUnknownField(true);
  if (!parser.ParseFromString(text, &state) || state.model_checkpoint_path().empty()) {
    return DataLoss("'", file, "' is not the state of a directory of checkpoints");
  }
  CheckpointPaths paths;
  paths.latest = PathOfState(state.model_checkpoint_path(), directory);
  for (const std::string& path : state.all_model_checkpoint_paths()) {
    paths.all.push_back(PathOfState(path, directory));
  }
  return paths;
}

Status UpdateCheckpointState(const std::string& directory, const CheckpointPaths& paths,
                             std::string_view latest_filename) {
  CheckpointState state;
  state.set_model_checkpoint_path(PathInState(paths.latest, directory));
  for (const std::string& path : paths.all) {
    state.add_all_model_checkpoint_paths(PathInState(path, directory));
  }
  std::string text;
  if (!google::protobuf::TextFormat::PrintToString(state, &text)) {
    return Internal("the state of '", directory, "' has no text form");
  }
  return WriteStringToFile(JoinPath(directory, latest_filename), text);
}

StatusOr<std::string> LatestCheckpoint(const std::string& directory,
                                       std::string_view latest_filename) {
  TENON_ASSIGN_OR_RETURN(const CheckpointPaths paths,
                         GetCheckpointState(directory, latest_filename));
  if (!CheckpointExists(paths.latest)) {
    return NotFound("'", JoinPath(directory, latest_filename), "' names the checkpoint '",
                    paths.latest, "', which is not there");
  }
  return paths.latest;
}

bool CheckpointExists(const std::string& prefix) { return FileExists(BundleIndexName(prefix)); }

Status RemoveCheckpoint(const std::string& prefix) {
  TENON_RETURN_IF_ERROR(RemoveIfThere(BundleIndexName(prefix)));
  const std::string folder = FolderOf(prefix);
  TENON_ASSIGN_OR_RETURN(const auto names, ListFolder(folder.empty() ? "." : folder));
  for (const std::string& name : names) {
    if (!name.starts_with(NameOf(prefix) + ".data-")) continue;
    TENON_RETURN_IF_ERROR(RemoveIfThere(JoinPath(folder, name)));
  }
  return RemoveIfThere(prefix + ".meta");
}

void RemoveUnfinishedSaves(const std::string& path) {
  const std::string folder = FolderOf(path);
  const auto names = ListFolder(folder.empty() ? "." : folder);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    if (!IsUnfinished(name, NameOf(path))) continue;
    const std::string unfinished = JoinPath(folder, name);
    const auto shards = ListFolder(unfinished);
    if (shards.ok()) {
      for (const std::string& shard : *shards) {
        RemoveFile(JoinPath(unfinished, shard)).IgnoreError();
      }
    }
    RemoveFile(unfinished).IgnoreError();
  }
}

}  // namespace tenon
