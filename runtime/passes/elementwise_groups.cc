// SPDX-License-Identifier: Apache-2.0
#include "runtime/passes/elementwise_groups.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "core/base/hash_map.h"
#include "core/op/op_traits.h"

namespace tenon {
namespace {

/// Sets of numbers, by numbers: equal sets have the same one, and 0 is the empty set.
class SetTable {
 public:
  SetTable() : sets_(1) { numbers_[{}] = 0; }

  int Of(int64_t element) { return Number({element}); }
  /// The union. In the place of one that is large comes a set of `stand_in` alone.
  int Union(int a, int b, int64_t stand_in) {
    if (a == b || b == 0) return a;
    if (a == 0) return b;
    const auto [found, added] = unions_.try_emplace(std::minmax(a, b), -1);
    if (added) {
      std::vector<int64_t> both;
      std::set_union(sets_[a].begin(), sets_[a].end(), sets_[b].begin(), sets_[b].end(),
                     std::back_inserter(both));
      found->second = both.size() > kMost ? kLarge : Number(std::move(both));
    }
    return found->second == kLarge ? Of(stand_in) : found->second;
  }
  const std::vector<int64_t>& at(int set) const { return sets_[set]; }
  int Number(std::vector<int64_t> set) {
    const auto [found, added] = numbers_.try_emplace(set, static_cast<int>(sets_.size()));
    if (added) sets_.push_back(std::move(set));
    return found->second;
  }

 private:
  static constexpr size_t kMost = 64;
  static constexpr int kLarge = -2;

  std::vector<std::vector<int64_t>> sets_;
  std::map<std::vector<int64_t>, int> numbers_;
  std::map<std::pair<int, int>, int> unions_;
};

/// Whether the node may wait for what other nodes do without an edge from them.
bool MayWait(const Node& node) {
  if (node.flow() == FlowKind::kTransfer) return node.num_inputs() == 0;
  const OpSchema& op = node.schema();
  return op.is_stateful && !op.is_arg && !op.is_variable && op.FindAttr("seed") == nullptr &&
         !op.Has(OpTrait::kNeverWaits) && !op.Has(OpTrait::kReadsVariable);
}

/// What is known of a node in the order of the graph. Nodes of one group have all of it in common.
struct Mark {
  bool member = false;
  /// The number of groups that may have to be over before the node runs: a way out of a group leads
  /// to greater ones.
  int stage = 0;
  /// What decides whether it is dead: the outputs of Switch nodes, loops, and nodes of which
  /// nothing more is known. The same set means dead together.
  int alive_with = 0;
  /// The nodes that may wait without an edge and come before it. A way through another task or a
  /// resource ends at one, so that it leads back to no group whose nodes all have it before them.
  int waits_for = 0;
};

class GroupFinder {
 public:
  GroupFinder(const Graph& graph, absl::FunctionRef<bool(const Node&)> may_join)
      : graph_(graph), may_join_(may_join) {}

  StatusOr<std::vector<std::vector<Node*>>> Find() {
    TENON_ASSIGN_OR_RETURN(const std::vector<Node*> order, graph_.TopologicalOrder());
    marks_.resize(graph_.num_ids());
    for (const Node* n : order) MarkNode(*n);
    if (!LoopsAreRegular(order)) return std::vector<std::vector<Node*>>();
    return Connected(order);
  }

 private:
  /// The elements of sets: a node by its number, an output of a Switch, and a loop.
  enum Kind : int64_t { kNode, kCondition, kLoop };
  static int64_t Element(Kind kind, int64_t number) { return number * 4 + kind; }

  /// That the output `port` of a Switch is the one which is alive, if one is. The two of a Switch
  /// with two outputs are neighbours, an even number and an odd one.
  int64_t ConditionOf(const Node& node, int port) {
    const Endpoint& by = node.input(1);
    const bool two_ways = node.num_outputs() == 2;
    const auto key = std::make_tuple(by.node->id(), by.index, two_ways ? -1 : port);
    const auto [found, added] = conditions_.try_emplace(key, conditions_.size());
    const int64_t number = static_cast<int64_t>(found->second) * 2;
    return Element(kCondition, number + (two_ways ? port : 0));
  }
  static bool AreOpposite(int64_t a, int64_t b) {
    return a % 4 == kCondition && b % 4 == kCondition && (a / 4 ^ b / 4) == 1;
  }
  int64_t LoopOf(const Node& enter) {
    const auto name = enter.attrs().GetOr<std::string>("frame_name", "");
    const auto [found, added] = loops_.try_emplace(name, loops_.size());
    return Element(kLoop, static_cast<int64_t>(found->second));
  }
  int AliveWith(const Endpoint& in) {
    const int set = marks_[in.node->id()].alive_with;
    if (in.node->flow() != FlowKind::kSwitch) return set;
    return alive_.Union(set, alive_.Of(ConditionOf(*in.node, in.index)),
                        Element(kNode, in.node->id()));
  }

  void MarkNode(const Node& node);
  int AliveOfMerge(const Node& node);
  int AliveOfExit(const Node& node);
  /// What is alive in the iterations of a loop, and where its condition gives `port`.
  int AliveInLoop(const Node& merge, const Node& by_condition, int port) {
    return alive_.Union(marks_[merge.id()].alive_with, alive_.Of(ConditionOf(by_condition, port)),
                        Element(kNode, merge.id()));
  }
  bool LoopsAreRegular(const std::vector<Node*>& order);
  bool InOneGroup(const Node& a, const Node& b) const {
    const Mark &x = marks_[a.id()], &y = marks_[b.id()];
    return x.member && y.member && x.alive_with == y.alive_with && x.waits_for == y.waits_for &&
           a.output_type(0) == b.output_type(0);
  }
  std::vector<std::vector<Node*>> Connected(const std::vector<Node*>& order) const;

  const Graph& graph_;
  const absl::FunctionRef<bool(const Node&)> may_join_;
  SetTable alive_, waiting_;
  std::map<std::tuple<int, int, int>, size_t> conditions_;
  std::map<std::string, size_t> loops_;
  std::vector<Mark> marks_;  // by the node's number
};

/// The Enter that brings a loop's Merge its first value; null for a Merge of branches.
const Node* EnterOf(const Node& merge) {
  const Node* enter = nullptr;
  bool is_loop = false;
  for (const Endpoint& in : merge.inputs()) {
    is_loop |= in.node->is_next_iteration();
    if (in.node->is_enter()) enter = in.node;
  }
  return is_loop ? enter : nullptr;
}

/// The Switch by which a loop's condition sends the value of a Merge on or out; or null.
const Node* SwitchOf(const Node& merge) {
  for (const OutEdge& e : merge.out_edges()) {
    if (e.output == 0 && e.input == 0 && e.dst->flow() == FlowKind::kSwitch) return e.dst;
  }
  return nullptr;
}

void GroupFinder::MarkNode(const Node& node) {
  Mark& mark = marks_[node.id()];
  const int64_t itself = Element(kNode, node.id());
  mark.member = may_join_(node);
  const auto come_behind = [&](const Node& before) {
    mark.waits_for = waiting_.Union(mark.waits_for, marks_[before.id()].waits_for, itself);
  };
  for (const Endpoint& in : node.inputs()) {
    come_behind(*in.node);
    mark.alive_with = alive_.Union(mark.alive_with, AliveWith(in), itself);
  }
  for (const Node* before : node.control_inputs()) {
    come_behind(*before);
    mark.alive_with = alive_.Union(mark.alive_with, marks_[before->id()].alive_with, itself);
    // A Switch has a control edge whichever way it goes.
    if (before->flow() == FlowKind::kSwitch) mark.alive_with = alive_.Of(itself);
  }
  if (MayWait(node)) mark.waits_for = waiting_.Union(mark.waits_for, waiting_.Of(itself), itself);
  switch (node.flow()) {
    case FlowKind::kMerge:
      mark.alive_with = AliveOfMerge(node);
      if (const Node* const enter = EnterOf(node)) {
        // For what its iterations wait for.
        mark.waits_for = waiting_.Union(mark.waits_for, waiting_.Of(LoopOf(*enter)), itself);
      }
      break;
    case FlowKind::kExit:
      mark.alive_with = AliveOfExit(node);
      break;
    case FlowKind::kTransfer:
    case FlowKind::kControlTrigger:
      mark.alive_with = alive_.Of(itself);
      break;
    default:
      break;
  }
  const auto follow = [&](const Node& before) {
    const Mark& m = marks_[before.id()];
    mark.stage = std::max(mark.stage, m.stage + (m.member && !InOneGroup(before, node) ? 1 : 0));
  };
  for (const Endpoint& in : node.inputs()) follow(*in.node);
  for (const Node* before : node.control_inputs()) follow(*before);
}

int GroupFinder::AliveOfMerge(const Node& node) {
  const int64_t itself = Element(kNode, node.id());
  if (const Node* const enter = EnterOf(node)) {
    return alive_.Union(marks_[enter->id()].alive_with, alive_.Of(LoopOf(*enter)), itself);
  }
  // Two branches of one condition are alive in turn, and what they make is alive with what the
  // condition was asked of.
  if (node.num_inputs() == 2) {
    const std::vector<int64_t>& a = alive_.at(AliveWith(node.input(0)));
    const std::vector<int64_t>& b = alive_.at(AliveWith(node.input(1)));
    std::vector<int64_t> only_a, only_b, both;
    std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(only_a));
    std::set_difference(b.begin(), b.end(), a.begin(), a.end(), std::back_inserter(only_b));
    std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
    if (only_a.size() == 1 && only_b.size() == 1 && AreOpposite(only_a[0], only_b[0])) {
      return alive_.Number(std::move(both));
    }
  }
  return alive_.Of(itself);
}

/// A loop ends where it begins to run: what leaves it is alive with what enters it.
int GroupFinder::AliveOfExit(const Node& node) {
  const Node& from = *node.input(0).node;
  const Node* const merge = from.flow() == FlowKind::kSwitch ? from.input(0).node : nullptr;
  const Node* const enter =
      merge != nullptr && merge->flow() == FlowKind::kMerge ? EnterOf(*merge) : nullptr;
  if (enter != nullptr && AliveWith(node.input(0)) == AliveInLoop(*merge, from, 0)) {
    return marks_[enter->id()].alive_with;
  }
  return alive_.Of(Element(kNode, node.id()));
}

/// Whether all values of each loop enter it together and go on to the next iteration together.
bool GroupFinder::LoopsAreRegular(const std::vector<Node*>& order) {
  std::map<int64_t, std::pair<int, int>> loops;  // what is alive: the iterations, and the next
  for (const Node* merge : order) {
    if (merge->flow() != FlowKind::kMerge) continue;
    const bool is_loop = std::any_of(merge->inputs().begin(), merge->inputs().end(),
                                     [](const Endpoint& e) { return e.node->is_next_iteration(); });
    if (!is_loop) continue;
    const Node* const enter = EnterOf(*merge);
    const Node* const by_condition = SwitchOf(*merge);
    if (enter == nullptr || by_condition == nullptr) return false;
    const int next = AliveInLoop(*merge, *by_condition, 1);
    const auto alive = std::make_pair(marks_[merge->id()].alive_with, next);
    if (loops.try_emplace(LoopOf(*enter), alive).first->second != alive) return false;
    for (const Endpoint& in : merge->inputs()) {
      if (in.node->is_next_iteration() && marks_[in.node->id()].alive_with != next) return false;
    }
  }
  return true;
}

std::vector<std::vector<Node*>> GroupFinder::Connected(const std::vector<Node*>& order) const {
  std::vector<int> parent(marks_.size());
  for (size_t i = 0; i < parent.size(); ++i) parent[i] = static_cast<int>(i);
  const auto root = [&](int id) {
    while (parent[id] != id) id = parent[id] = parent[parent[id]];
    return id;
  };
  for (const Node* n : order) {
    for (const Endpoint& in : n->inputs()) {
      const bool together =
          InOneGroup(*in.node, *n) && marks_[in.node->id()].stage == marks_[n->id()].stage;
      if (together) parent[root(n->id())] = root(in.node->id());
    }
  }
  flat_hash_map<int, size_t> places;
  std::vector<std::vector<Node*>> groups;
  for (Node* n : order) {
    if (!marks_[n->id()].member) continue;
    const auto [found, added] = places.try_emplace(root(n->id()), groups.size());
    if (added) groups.emplace_back();
    groups[found->second].push_back(n);
  }
  std::erase_if(groups, [](const auto& group) { return group.size() < 2; });
  return groups;
}

}  // namespace

StatusOr<std::vector<std::vector<Node*>>> FindGroups(
    const Graph& graph, absl::FunctionRef<bool(const Node&)> may_join) {
  return GroupFinder(graph, may_join).Find();
}

}  // namespace tenon
