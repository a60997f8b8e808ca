// SPDX-License-Identifier: Apache-2.0
#include "train/saver/saver.h"

#include <set>

#include "core/op/op_traits.h"
#include "core/proto/proto_io_graph.h"
#include "data/checkpoint/tensor_bundle.h"
#include "data/files/file.h"
#include "proto/meta_graph.pb.h"
#include "train/one_line.h"
#include "train/saver/collections.h"
#include "train/variables.h"

namespace tenon {
namespace {

using Hours = std::chrono::duration<double, std::ratio<3600>>;

Clock::WallTime::duration PreservingInterval(const SaverOptions& options) {
  return std::chrono::duration_cast<Clock::WallTime::duration>(
      std::min(Hours(options.keep_checkpoint_every_n_hours), Hours(1e6)));
}

/// What the graph has, under its own names.
std::vector<SavedVariable> AllSaved(const Graph& graph) {
  std::vector<SavedVariable> saved;
  for (const VariableEntry& v : graph.variables()) {
    if (v.local) continue;
    saved.push_back({v.part ? v.part->name : v.ref->name(), v.part ? SliceSpec(*v.part) : "", v});
  }
  return saved;
}

StatusOr<std::vector<SavedVariable>> ChosenVariables(const SaverOptions& options,
                                                     const Graph& graph) {
  if (options.variables.empty()) return AllSaved(graph);
  std::vector<SavedVariable> saved;
  for (const auto& [name, variable] : options.variables) {
    const VariableEntry* nodes = FindVariable(variable);
    if (nodes == nullptr) {
      return InvalidArgument("what is to be saved as '", name, "' is no variable of the graph",
                             variable.exists() ? StrCat(": '", variable.name(), "'") : "");
    }
    if (name.empty()) return InvalidArgument("a variable is to be saved without a name");
    saved.push_back({name, nodes->part ? SliceSpec(*nodes->part) : "", *nodes});
  }
  return saved;
}

Status CheckNames(const std::vector<SavedVariable>& saved) {
  std::set<std::pair<std::string, std::string>> seen;
  std::set<std::string> whole;
  for (const SavedVariable& v : saved) {
    const bool added = seen.emplace(v.name, v.slice).second;
    if (v.slice.empty()) whole.insert(v.name);
    if (!added) {
      return InvalidArgument("two variables are to be saved as '", v.name, "'",
                             v.slice.empty() ? "" : StrCat(", slice ", v.slice));
    }
  }
  for (const SavedVariable& v : saved) {
    if (!v.slice.empty() && whole.contains(v.name)) {
      return InvalidArgument("a variable and a part of another are to be saved as '", v.name, "'");
    }
  }
  return OkStatus();
}

/// What a Saver of these options saves, or the mistake in them.
StatusOr<std::vector<SavedVariable>> CheckedVariables(const SaverOptions& options,
                                                      const Graph& graph) {
  TENON_ASSIGN_OR_RETURN(std::vector<SavedVariable> saved, ChosenVariables(options, graph));
  TENON_RETURN_IF_ERROR(CheckNames(saved));
  if (options.max_to_keep < 0) {
    return InvalidArgument("max_to_keep must not be negative, found ", options.max_to_keep);
  }
  if (saved.empty() && !options.allow_empty) {
    return InvalidArgument("there is no variable to save: the graph has none, or only local ones");
  }
  return saved;
}

StatusOr<std::string> PrefixOf(const std::string& path, const SaveOptions& options) {
  const std::string name = NameOf(path);
  if (name.empty()) {
    return InvalidArgument("the path of a checkpoint must end in a name, found '", path, "'");
  }
  if (options.latest_filename.empty() || options.latest_filename.find('/') != std::string::npos) {
    return InvalidArgument("the state file must be a name, without a folder, found '",
                           options.latest_filename, "'");
  }
  if (name == options.latest_filename) {
    return InvalidArgument("the checkpoint and its state file have the same name, '", path, "'");
  }
  return options.global_step ? StrCat(path, "-", *options.global_step) : path;
}

Status WriteMetaGraph(const Saver& saver, const std::string& path) {
  MetaGraphDef meta;
  TENON_RETURN_IF_ERROR(ExportMetaGraph(saver, &meta));
  return WriteStringToFile(path, meta.SerializeAsString());
}

/// The variable that the node named first in the error assigns to; empty when it assigns to none.
std::string AssignedVariable(const Graph& graph, std::string_view message) {
  constexpr std::string_view kBegin = "node '";
  const size_t begin = message.find(kBegin);
  if (begin == std::string_view::npos) return "";
  const std::string_view rest = message.substr(begin + kBegin.size());
  const Node* const node = graph.Find(rest.substr(0, rest.find('\'')));
  return node != nullptr && node->schema().Has(OpTrait::kAssigns) ? node->input(0).node->name()
                                                                  : "";
}

/// The name of the node whose output 0 is what a SaverDef calls `text`, a string.
StatusOr<std::string> TextOfSaver(const Graph& graph, std::string_view what,
                                  const std::string& text) {
  TENON_ASSIGN_OR_RETURN(const TensorName name, ParseTensorName(text));
  const Node* const node = graph.Find(name.node);
  if (node == nullptr || name.index != 0 || node->num_outputs() == 0) {
    return InvalidArgument("the saver's ", what, " '", text, "' is not in the graph");
  }
  if (BaseType(node->output_type(0)) != DType::kString) {
    return InvalidArgument("the saver's ", what, " '", text, "' is ",
                           ToString(node->output_type(0)), ", wanted string");
  }
  return name.node;
}

}  // namespace

Saver::Saver(const SaverOptions& options, Graph* graph, SaverNodes nodes, bool writes_bundles)
    : options_(options),
      graph_(graph),
      nodes_(std::move(nodes)),
      writes_bundles_(writes_bundles),
      next_preserved_(options.clock->WallNow() + PreservingInterval(options)) {}

Status Saver::CheckOptions(const SaverOptions& options, const Graph& graph) {
  return CheckedVariables(options, graph).status();
}

Saver::Saver(const SaverOptions& options)
    : Saver(options, CurrentBuilding(options.location).graph, {}, true) {
  const CalledFrom caller(options.location);
  const BuildContext& context = CurrentBuilding();
  if (!graph_->error().ok()) return;
  const auto saved = CheckedVariables(options, *graph_);
  if (!saved.ok()) context.Fail(saved.status(), options.location);
  if (!saved.ok() || saved->empty()) return;
  for (const SavedVariable& v : *saved) {
    const Output value(v.nodes.value);
    saved_.push_back(
        {v.name, value.dtype(), v.nodes.part ? PartialShape(v.nodes.part->shape) : value.shape()});
  }
  nodes_ = AddSaverNodes(options.name, *saved, options.sharded);
}

Status Saver::RunSave(Session& session, const std::string& prefix) const {
  TENON_RETURN_IF_ERROR(graph_->error());
  if (empty()) return FailedPrecondition("cannot save '", prefix, "': there is no variable");
  if (!writes_bundles_) {
    return FailedPrecondition("cannot save '", prefix,
                              "': the saver that was imported writes the "
                              "first format of checkpoints; wanted a Saver of the variables");
  }
  const Status s = session.Run({{nodes_.filename_tensor, prefix}}, {nodes_.save_tensor}).status();
  if (!s.ok()) {
    return Annotate(WithMessage(s, OneLine(Message(s))), StrCat("cannot save '", prefix, "'"));
  }
  if (!CheckpointExists(prefix)) {
    return FailedPrecondition(
        "the checkpoint '", prefix, "' was written, but this process does not", " see '",
        BundleIndexName(prefix), "': its folder is not shared with the task that wrote it");
  }
  return OkStatus();
}

StatusOr<std::string> Saver::Save(Session& session, const std::string& path,
                                  const SaveOptions& options) {
  TENON_ASSIGN_OR_RETURN(const std::string prefix, PrefixOf(path, options));
  MutexLock lock(mu_);
  if (const Status saved = RunSave(session, prefix); !saved.ok()) {
    RemoveUnfinishedSaves(path);
    return saved;
  }
  if (options.write_meta_graph) TENON_RETURN_IF_ERROR(WriteMetaGraph(*this, prefix + ".meta"));
  if (options.write_state) TENON_RETURN_IF_ERROR(Record(prefix, options.latest_filename));
  RemoveUnfinishedSaves(path);
  return prefix;
}

Status Saver::Record(const std::string& prefix, const std::string& latest_filename) {
  std::deque<Kept> kept = kept_;
  std::erase_if(kept, [&](const Kept& k) { return k.prefix == prefix; });
  kept.push_back({prefix, options_.clock->WallNow()});
  std::vector<Kept> old;
  const auto limit = static_cast<size_t>(std::max(options_.max_to_keep, 1));
  for (; kept.size() > limit; kept.pop_front()) old.push_back(kept.front());
  CheckpointPaths paths{prefix, {}};
  for (const Kept& k : kept) paths.all.push_back(k.prefix);
  TENON_RETURN_IF_ERROR(UpdateCheckpointState(FolderOf(prefix), paths, latest_filename));
  kept_ = std::move(kept);
  for (const Kept& k : old) {
    if (options_.max_to_keep == 0) continue;
    if (k.time > next_preserved_) {
      next_preserved_ += PreservingInterval(options_);
      continue;
    }
    // The new one is saved, whatever became of this.
    RemoveCheckpoint(k.prefix).IgnoreError();
  }
  return OkStatus();
}

Status Saver::Restore(Session& session, const std::string& prefix) const {
  TENON_RETURN_IF_ERROR(graph_->error());
  if (empty()) return FailedPrecondition("cannot restore '", prefix, "': there is no variable");
  if (prefix.empty()) return InvalidArgument("the prefix of a checkpoint is empty");
  const Status s =
      session.Run({{nodes_.filename_tensor, prefix}}, {}, {nodes_.restore_op}).status();
  const std::string variable = AssignedVariable(*graph_, Message(s));
  if (s.ok()) return s;
  return Annotate(s, StrCat("cannot restore '", prefix, "'", WhatIsWrong(prefix),
                            variable.empty() ? "" : StrCat(": variable '", variable, "'")));
}

std::string Saver::WhatIsWrong(const std::string& prefix) const {
  if (!CheckpointExists(prefix)) {
    constexpr std::string_view kIndex = ".index";
    if (const std::string of_file = prefix.substr(0, prefix.rfind(kIndex));
        prefix.ends_with(kIndex) && CheckpointExists(of_file)) {
      return StrCat(", a file of the checkpoint '", of_file, "', which is wanted");
    }
    if (!IsFolder(prefix)) return "";
    return StrCat(", a folder (a checkpoint is named like ", JoinPath(prefix, "model-7"),
                  "; LatestCheckpoint finds the latest one in a folder)");
  }
  const auto reader = BundleReader::Open(prefix);
  if (!reader.ok()) return "";
  std::set<std::string> wanted, lacking, different;
  for (const auto& [name, dtype, shape] : saved_) {
    wanted.insert(name);
    const auto entry = (*reader)->Find(name);
    if (!entry.ok()) {
      lacking.insert(name);
    } else if ((*entry)->dtype != dtype || !shape.IsCompatibleWith((*entry)->shape)) {
      different.insert(StrCat("'", name, "', which is ", ToString(dtype), shape.ToString(),
                              " in the graph and ", ToString((*entry)->dtype),
                              (*entry)->shape.ToString(), " in the checkpoint"));
    }
  }
  if (lacking.empty() && different.empty()) return "";
  const auto list = [](const auto& names) {
    constexpr size_t kMostNames = 20;
    std::vector<std::string> shown(names.begin(), names.end());
    const size_t more = shown.size() - std::min(shown.size(), kMostNames);
    shown.resize(shown.size() - more);
    return StrCat(Join(shown, ", "), more > 0 ? StrCat(" and ", more, " more") : "");
  };
  if (lacking.empty()) return StrCat(" (of another kind: ", list(different), ")");
  return StrCat(" (of ", wanted.size(), " variables it lacks ", list(lacking), "; it has ",
                list((*reader)->names()), ")");
}

std::vector<std::string> Saver::last_checkpoints() const {
  MutexLock lock(mu_);
  std::vector<std::string> prefixes;
  for (const Kept& k : kept_) prefixes.push_back(k.prefix);
  return prefixes;
}

void Saver::RecoverLastCheckpoints(const std::vector<std::string>& prefixes) {
  MutexLock lock(mu_);
  kept_.clear();
  for (const std::string& prefix : prefixes) {
    const auto age = AgeOfFile(BundleIndexName(prefix));
    if (!age.ok()) continue;
    kept_.push_back({prefix, options_.clock->WallNow() -
                                 std::chrono::duration_cast<Clock::WallTime::duration>(*age)});
  }
}

StatusOr<std::unique_ptr<Saver>> Saver::FromProto(const SaverDef& def,
                                                  const std::source_location& location) {
  Graph& graph = *CurrentBuilding(location).graph;
  SaverNodes nodes;
  TENON_ASSIGN_OR_RETURN(nodes.filename_tensor,
                         TextOfSaver(graph, "filename tensor", def.filename_tensor_name()));
  TENON_ASSIGN_OR_RETURN(nodes.save_tensor,
                         TextOfSaver(graph, "save tensor", def.save_tensor_name()));
  if (graph.Find(def.restore_op_name()) == nullptr) {
    return InvalidArgument("the saver's restore op '", def.restore_op_name(),
                           "' is not in the graph");
  }
  nodes.restore_op = def.restore_op_name();
  if (def.max_to_keep() < 0) {
    return InvalidArgument("max_to_keep of the saver must not be negative, found ",
                           def.max_to_keep());
  }
  if (!(def.keep_checkpoint_every_n_hours() >= 0)) {
    return InvalidArgument(
        "keep_checkpoint_every_n_hours of the saver must not be negative, found ",
        def.keep_checkpoint_every_n_hours());
  }
  std::set<std::string> devices;
  for (const SavedVariable& v : AllSaved(graph)) devices.insert(v.nodes.ref->requested_device());
  nodes.devices.assign(devices.begin(), devices.end());
  const SaverOptions options{.sharded = def.sharded(),
                             .max_to_keep = def.max_to_keep(),
                             .keep_checkpoint_every_n_hours = def.keep_checkpoint_every_n_hours(),
                             .location = location};
  const bool writes_bundles = def.version() == SaverDef::V2;
  return std::unique_ptr<Saver>(new Saver(options, &graph, std::move(nodes), writes_bundles));
}

void Saver::ToProto(SaverDef* out) const {
  out->Clear();
  out->set_filename_tensor_name(nodes_.filename_tensor + ":0");
  out->set_save_tensor_name(nodes_.save_tensor + ":0");
  out->set_restore_op_name(nodes_.restore_op);
  out->set_max_to_keep(options_.max_to_keep);
  out->set_sharded(options_.sharded);
  out->set_keep_checkpoint_every_n_hours(
      static_cast<float>(options_.keep_checkpoint_every_n_hours));
  out->set_version(writes_bundles_ ? SaverDef::V2 : SaverDef::V1);
}

Status ExportMetaGraph(const Saver& saver, MetaGraphDef* out) {
  out->Clear();
  // Empty, but there: what tells the message from a graph alone.
  out->mutable_meta_info_def();
  TENON_RETURN_IF_ERROR(GraphToProto(saver.graph(), out->mutable_graph_def()));
  if (!saver.empty()) saver.ToProto(out->mutable_saver_def());
  WriteCollections(saver.graph(), out);
  return OkStatus();
}

}  // namespace tenon
