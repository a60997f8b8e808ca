// SPDX-License-Identifier: Apache-2.0
#include "train/saver/saver_nodes.h"

#include <map>

#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/control_flow/control_flow_ops.h"
#include "ops/io/io_ops.h"
#include "ops/strings/strings_ops.h"

namespace tenon {
namespace {

using VariablesOfDevice = std::map<std::string, std::vector<SavedVariable>>;

constexpr std::string_view kHost = "/device:CPU:0";

struct NamesAndSlices {
  std::vector<std::string> names, slices;
  explicit NamesAndSlices(const std::vector<SavedVariable>& variables) {
    for (const SavedVariable& v : variables) {
      names.push_back(v.name);
      slices.push_back(v.slice);
    }
  }
  Output Names(std::string_view op) const {
    return Const(names, {.name = StrCat(op, "/tensor_names")});
  }
  Output Slices(std::string_view op) const {
    return Const(slices, {.name = StrCat(op, "/shape_and_slices")});
  }
};

/// The first name that no node of the scope has: what the parts of an op are named after.
std::string NextName(const std::string& base) {
  const BuildContext& context = CurrentBuilding();
  return context.graph->UniqueName(context.prefix + base).substr(context.prefix.size());
}

/// Gives `path` once the variables are in the checkpoint there.
Output AddSave(const Output& path, const std::vector<SavedVariable>& variables) {
  std::vector<Output> values;
  for (const SavedVariable& v : variables) {
    values.emplace_back(v.nodes.is_resource() ? v.nodes.value : v.nodes.ref);
  }
  const NamesAndSlices parts(variables);
  const std::string name = NextName("SaveV2");
  Node* const save = SaveV2(path, parts.Names(name), parts.Slices(name), values, {.name = name});
  const ControlDependencies after({save});
  return Identity(path, {.name = "control_dependency"});
}

/// Each shard next to where the checkpoint will be, then all together under its name.
Output AddShardedSave(const Output& path, const VariablesOfDevice& shards) {
  const Output parts = StringJoin({path, Const("_temp/part")});
  const Output count = Const(static_cast<int32_t>(shards.size()), {.name = "num_shards"});
  std::vector<Output> names, saved;
  for (const auto& [device, variables] : shards) {
    const DeviceScope on(device);
    const DeviceScope host(kHost);
    const std::string name = NextName("ShardedFilename");
    const Output shard = Const(static_cast<int32_t>(names.size()), {.name = name + "/shard"});
    names.push_back(ShardedFilename(parts, shard, count, {.name = name}));
    saved.push_back(AddSave(names.back(), variables));
  }
  const DeviceScope on(shards.rbegin()->first);
  const DeviceScope host(kHost);
  const ControlDependencies after(saved);
  const Output prefixes = Pack(names, {.name = "MergeV2Checkpoints/checkpoint_prefixes"});
  const ControlDependencies merged({MergeV2Checkpoints(prefixes, path)});
  return Identity(path);
}

/// Gives the variables the values of the checkpoint: a node that is done then, for each device.
void AddRestore(const Output& path, const std::vector<SavedVariable>& variables,
                std::map<std::string, std::vector<Output>>* done) {
  const NamesAndSlices parts(variables);
  DTypeVector dtypes;
  for (const SavedVariable& v : variables) dtypes.push_back(Output(v.nodes.value).dtype());
  std::vector<Output> values;
  {
    const DeviceScope host(kHost);
    const std::string name = NextName("RestoreV2");
    values = RestoreV2(path, parts.Names(name), parts.Slices(name),
                       std::vector<DType>(dtypes.begin(), dtypes.end()), {.name = name});
  }
  for (size_t i = 0; i < variables.size(); ++i) {
    const VariableEntry& v = variables[i].nodes;
    const DeviceScope on(v.ref->requested_device());
    Output value = values[i];
    if (v.is_resource()) value = Identity(value);
    const ColocateWith beside(v.ref);
    done->try_emplace(v.ref->requested_device())
        .first->second.emplace_back(NodeBuilder(v.is_resource() ? "AssignVariableOp" : "Assign")
                                        .Input(Output(v.ref))
                                        .Input(value)
                                        .Attr("validate_shape", true)
                                        .Finish());
  }
}

std::string AddRestores(const Output& path, const VariablesOfDevice& shards,
                        const std::vector<SavedVariable>& variables, bool sharded) {
  std::map<std::string, std::vector<Output>> done;
  if (sharded) {
    for (const auto& [device, of_device] : shards) {
      const DeviceScope on(device);
      AddRestore(path, of_device, &done);
    }
  } else {
    AddRestore(path, variables, &done);
  }
  std::vector<Output> of_devices;
  for (const auto& [device, assignments] : done) {
    const DeviceScope on(device);
    const ControlDependencies after(assignments);
    of_devices.emplace_back(NoOp({.name = sharded ? "restore_shard" : "restore_all/NoOp"}));
  }
  const ControlDependencies after(of_devices);
  return NoOp({.name = "restore_all"})->name();
}

}  // namespace

std::string SliceSpec(const VariablePart& part) {
  std::vector<std::string> extents;
  for (size_t i = 0; i < part.begin.size(); ++i) {
    extents.push_back(StrCat(part.begin[i], ",", part.extent[i]));
  }
  return StrCat(Join(part.shape, " "), " ", Join(extents, ":"));
}

SaverNodes AddSaverNodes(const std::string& name, const std::vector<SavedVariable>& variables,
                         bool sharded) {
  const NoControlDependencies always;
  const NameScope scope(UnusedScope(name));
  VariablesOfDevice shards;
  for (const SavedVariable& v : variables) {
    shards[v.nodes.ref->requested_device()].push_back(v);
  }
  SaverNodes nodes;
  for (const auto& [device, of_device] : shards) nodes.devices.push_back(device);
  // Two placeholders, of which the second is the one to feed: TensorFlow has come to have them.
  const Output file = PlaceholderWithDefault(Const("model", {.name = "filename/input"}), Shape(),
                                             {.name = "filename"});
  const Output path = PlaceholderWithDefault(file, Shape(), {.name = "Const"});
  const Output saved = sharded ? AddShardedSave(path, shards) : AddSave(path, variables);
  nodes.restore_op = AddRestores(path, shards, variables, sharded);
  nodes.filename_tensor = path.name();
  nodes.save_tensor = saved.name();
  return nodes;
}

}  // namespace tenon
