// SPDX-License-Identifier: Apache-2.0
#include "runtime/collectives/run_groups.h"

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon {
namespace {

/// The number of an input by its name, of an op without lists before it; -1: it has none.
int InputNamed(const Node& node, std::string_view name) {
  const std::vector<ArgSchema>& inputs = node.schema().inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

/// The group that the node names by its input `group_key`.
std::optional<int32_t> GroupOfInput(const Node& node) {
  const int number = InputNamed(node, "group_key");
  if (number < 0) return std::nullopt;
  const Attribute* const value = node.input(number).node->attrs().Find("value");
  const Tensor* const key = value == nullptr ? nullptr : value->get_if<Tensor>();
  if (key == nullptr || key->dtype() != DType::kInt32 || key->num_elements() != 1) {
    return std::nullopt;
  }
  return key->flat<int32_t>()[0];
}

/// The group of a node that is a part of one.
std::optional<int32_t> GroupOf(const Node& node) {
  if (node.attrs().Find("instance_key") != nullptr) {
    return static_cast<int32_t>(node.attrs().GetOr("group_key", int64_t{0}));
  }
  if (InputNamed(node, "instance_key") >= 0) return GroupOfInput(node);
  const int communicator = InputNamed(node, "communicator");
  if (communicator >= 0) return GroupOfInput(*node.input(communicator).node);
  return std::nullopt;
}

}  // namespace

GroupCounts CountGroupParts(const Graph& graph) {
  GroupCounts counts;
  for (const Node* node : graph.nodes()) {
    if (const auto group = GroupOf(*node)) ++counts[*group];
  }
  return counts;
}

void RunGroups::Start(GroupPart part, Communicator::Done done) {
  {
    MutexLock lock(mu_);
    ++begun_[part.group];
  }
  groups_->Start(std::move(part), std::move(done));
}

void RunGroups::HandleFailure(const Status& why) {
  for (const auto& [group, parts] : parts_) {
    bool all_begun = false;
    {
      MutexLock lock(mu_);
      all_begun = begun_[group] == parts;
    }
    if (!all_begun) groups_->Abort(group, why);
  }
}

}  // namespace tenon
