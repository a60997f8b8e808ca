// SPDX-License-Identifier: Apache-2.0
#include "runtime/compile/collective_order.h"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "core/base/hash_map.h"
#include "core/base/strings.h"
#include "core/op/op_traits.h"

namespace tenon {
namespace {

/// A branch of a Cond, or a loop, in which nodes are; null: neither. Nodes of the same place run
/// all or none, in each iteration.
struct Place {
  const Place* outer = nullptr;
  Endpoint predicate = {};  // without a node: a loop
  int branch = 0;
  std::string frame = {};  // the loop's
  int depth = 1;

  bool is_loop() const { return predicate.node == nullptr; }
};

int DepthOf(const Place* place) { return place == nullptr ? 0 : place->depth; }

/// The places of a graph, one object each.
class Places {
 public:
  const Place* Get(const Place* outer, Endpoint predicate, int branch, const std::string& frame) {
    for (const auto& place : places_) {
      if (place->outer == outer && place->predicate == predicate && place->branch == branch &&
          place->frame == frame) {
        return place.get();
      }
    }
    places_.push_back(
        std::make_unique<Place>(Place{outer, predicate, branch, frame, DepthOf(outer) + 1}));
    return places_.back().get();
  }

 private:
  std::vector<std::unique_ptr<Place>> places_;
};

/// Where a node stands: how many nodes come before it, at most, and in which branch or loop. That
/// of an Enter is the loop.
struct Standing {
  int64_t path = 0;
  const Place* place = nullptr;
};

/// Whether a Switch or Merge belongs to a loop, and not to a branch.
bool IsOfLoop(const Node& node) {
  return std::any_of(node.inputs().begin(), node.inputs().end(), [](const Endpoint& in) {
    return in.node->is_next_iteration() || in.node->schema().Has(OpTrait::kLoopCondition);
  });
}

bool IsEnter(const Node& node) {
  return node.flow() == FlowKind::kEnter || node.flow() == FlowKind::kConstantEnter;
}

/// The standings of all nodes, in an order in which they may run.
class Surveyor {
 public:
  explicit Surveyor(absl::Span<Node* const> order) {
    for (const Node* node : order) Visit(*node);
  }
  const Standing& Of(const Node* node) const { return standings_.at(node); }

 private:
  void Visit(const Node& node) {
    Standing standing;
    const auto follow = [&](const Node* before, int output) {
      if (before->is_next_iteration()) return;
      const Standing& its = standings_[before];
      standing.path = std::max(standing.path, its.path + 1);
      const Place* place = its.place;
      if (output != kControlSlot && before->flow() == FlowKind::kSwitch && !IsOfLoop(*before)) {
        place = places_.Get(place, before->input(1), output, "");
      }
      if (DepthOf(place) > DepthOf(standing.place)) standing.place = place;
    };
    for (const Endpoint& in : node.inputs()) follow(in.node, in.index);
    for (const Node* before : node.control_inputs()) follow(before, kControlSlot);
    if (IsEnter(node)) {
      standing.place =
          places_.Get(standing.place, {}, 0, node.attrs().GetOr("frame_name", std::string()));
    }
    const bool leaves =
        node.flow() == FlowKind::kExit || (node.flow() == FlowKind::kMerge && !IsOfLoop(node));
    if (leaves && standing.place != nullptr) standing.place = standing.place->outer;
    standings_[&node] = standing;
  }

  Places places_;
  flat_hash_map<const Node*, Standing> standings_;
};

/// All nodes that depend on one of these, and these.
flat_hash_set<const Node*> DependentsOf(const std::vector<Node*>& nodes) {
  flat_hash_set<const Node*> found(nodes.begin(), nodes.end());
  std::vector<const Node*> pending(nodes.begin(), nodes.end());
  while (!pending.empty()) {
    const Node* const node = pending.back();
    pending.pop_back();
    if (node->is_next_iteration()) continue;
    for (const OutEdge& e : node->out_edges()) {
      if (found.insert(e.dst).second) pending.push_back(e.dst);
    }
  }
  return found;
}

/// A collective, or a Cond or a loop with collectives inside, that is put in order within a place.
struct Item {
  Node* collective = nullptr;
  Endpoint predicate = {};             // a Cond's
  std::vector<const Place*> branches;  // a Cond's that have collectives, or the loop
  std::vector<Node*> inside;           // all collectives
  /// The first of these by its path and name, which ranks have in common.
  std::pair<int64_t, std::string_view> key = {};

  bool is_loop() const { return !branches.empty() && branches[0]->is_loop(); }
};

class CollectiveOrder {
 public:
  CollectiveOrder(Graph* graph, const std::vector<Node*>& order) : graph_(graph), survey_(order) {
    for (Node* node : order) {
      if (node->schema().Has(OpTrait::kCollective)) AddItems(node);
      const Place* const place = survey_.Of(node).place;
      if (IsEnter(*node)) enters_[place].push_back(node);
      if (node->is_next_iteration()) next_iterations_[place].push_back(node);
      if (node->flow() == FlowKind::kExit) {
        exits_[survey_.Of(node->input(0).node).place].push_back(node);
      }
    }
  }

  /// Puts everything in order.
  Status Run() { return RunIn(nullptr).status(); }

 private:
  /// The item at each place around the collective.
  void AddItems(Node* node) {
    const std::pair<int64_t, std::string_view> key(survey_.Of(node).path, node->name());
    const Place* place = survey_.Of(node).place;
    items_[place].push_back({node, {}, {}, {node}, key});
    for (; place != nullptr; place = place->outer) {
      std::vector<Item>& items = items_[place->outer];
      auto found = std::find_if(items.begin(), items.end(), [&](const Item& item) {
        if (item.collective != nullptr) return false;
        return place->is_loop() ? item.branches[0] == place
                                : !item.is_loop() && item.predicate == place->predicate;
      });
      if (found == items.end()) {
        found = items.insert(items.end(), {nullptr, place->predicate, {}, {}, key});
      }
      if (std::find(found->branches.begin(), found->branches.end(), place) ==
          found->branches.end()) {
        found->branches.push_back(place);
      }
      found->inside.push_back(node);
      found->key = std::min(found->key, key);
    }
  }

  /// The nodes that wait for what comes before the item.
  std::vector<Node*> Beginning(const Item& item) {
    if (item.collective != nullptr) return {item.collective};
    if (item.is_loop()) return enters_[item.branches[0]];
    return item.inside;
  }

  /// The items in an order that follows from the graph alone, each after those that it depends on;
  /// those that depend on each other are left out.
  std::vector<Item> InOrder(std::vector<Item> items) {
    const auto is_first = [](const Item& a, const Item& b) { return a.key < b.key; };
    std::sort(items.begin(), items.end(), is_first);
    const bool are_plain = std::all_of(items.begin(), items.end(),
                                       [](const Item& item) { return item.collective != nullptr; });
    if (are_plain) return items;  // the longer path is that of what depends on the other
    std::vector<std::vector<size_t>> needed(items.size());  // the items that one depends on
    for (size_t before = 0; before < items.size(); ++before) {
      const flat_hash_set<const Node*> later = DependentsOf(Beginning(items[before]));
      for (size_t i = 0; i < items.size(); ++i) {
        if (i == before) continue;
        const bool depends = later.contains(items[i].predicate.node) ||
                             std::any_of(items[i].inside.begin(), items[i].inside.end(),
                                         [&](const Node* n) { return later.contains(n); });
        if (depends) needed[i].push_back(before);
      }
    }
    std::vector<Item> ordered;
    std::vector<bool> is_placed(items.size(), false);
    for (bool goes_on = true; goes_on;) {
      goes_on = false;
      for (size_t i = 0; i < items.size() && !goes_on; ++i) {
        goes_on = !is_placed[i] && std::all_of(needed[i].begin(), needed[i].end(),
                                               [&](size_t n) { return is_placed[n]; });
        if (goes_on) {
          is_placed[i] = true;
          ordered.push_back(items[i]);
        }
      }
    }
    return ordered;
  }

  /// Puts the items of a place in order; the nodes after which all of them have run.
  StatusOr<std::vector<Node*>> RunIn(const Place* place) {
    const std::vector<Item> items = InOrder(items_[place]);
    std::vector<Node*> before;
    for (const Item& item : items) {
      for (Node* last : before) {
        for (Node* node : Beginning(item)) graph_->AddControlEdge(last, node);
      }
      TENON_ASSIGN_OR_RETURN(before, EndOf(item, before, &item == &items.back()));
    }
    return before;
  }

  /// The nodes after which an item and those before it have run; its own ones are put in order.
  /// Nobody waits for the `is_last` one of the graph.
  StatusOr<std::vector<Node*>> EndOf(const Item& item, const std::vector<Node*>& before,
                                     bool is_last) {
    if (item.collective != nullptr) return std::vector<Node*>{item.collective};
    if (item.is_loop()) {
      // An iteration begins when those before it have done theirs.
      TENON_ASSIGN_OR_RETURN(const std::vector<Node*> last, RunIn(item.branches[0]));
      for (Node* next : next_iterations_[item.branches[0]]) {
        for (Node* node : last) graph_->AddControlEdge(node, next);
      }
      return exits_[item.branches[0]];
    }
    std::vector<Node*> lasts[2];
    for (const Place* branch : item.branches) {
      TENON_ASSIGN_OR_RETURN(lasts[branch->branch], RunIn(branch));
    }
    if (is_last && item.branches[0]->outer == nullptr) return std::vector<Node*>();
    return EndOfCond(item, before, lasts);
  }

  /// A node that runs after those before the Cond, and after the branch that is taken, whichever
  /// that is.
  StatusOr<std::vector<Node*>> EndOfCond(const Item& item, const std::vector<Node*>& before,
                                         const std::vector<Node*> (&lasts)[2]) {
    const AttributeMap type({{"T", DType::kBool}});
    const std::string base = StrCat(item.predicate.node->name(), "/collectives");
    TENON_ASSIGN_OR_RETURN(
        Node* const choose,
        Add(base, "Switch", type, {item.predicate, item.predicate}, item.predicate.node));
    for (Node* node : before) graph_->AddControlEdge(node, choose);
    std::vector<Endpoint> ends;
    for (int branch = 0; branch < 2; ++branch) {
      TENON_ASSIGN_OR_RETURN(Node* const end,
                             Add(base, "Identity", type, {{choose, branch}}, choose));
      for (Node* last : lasts[branch]) graph_->AddControlEdge(last, end);
      ends.push_back({end, 0});
    }
    AttributeMap merge = type;
    merge.Set("N", int64_t{2});
    TENON_ASSIGN_OR_RETURN(Node* const either, Add(base, "Merge", std::move(merge), ends, choose));
    return std::vector<Node*>{either};
  }

  StatusOr<Node*> Add(const std::string& base, std::string_view op, AttributeMap attrs,
                      const std::vector<Endpoint>& inputs, const Node* beside) {
    TENON_ASSIGN_OR_RETURN(Node* const node,
                           graph_->AddNode(graph_->UniqueName(base), op, std::move(attrs), inputs));
    node->set_assigned_device(beside->assigned_device());
    return node;
  }

  Graph* const graph_;
  const Surveyor survey_;
  flat_hash_map<const Place*, std::vector<Item>> items_;
  flat_hash_map<const Place*, std::vector<Node*>> enters_, exits_, next_iterations_;
};

}  // namespace

Status OrderCollectives(Graph* graph) {
  const std::vector<Node*> nodes = graph->nodes();
  const auto is_collective = [](const Node* n) { return n->schema().Has(OpTrait::kCollective); };
  if (std::none_of(nodes.begin(), nodes.end(), is_collective)) return OkStatus();
  TENON_ASSIGN_OR_RETURN(const std::vector<Node*> order, graph->TopologicalOrder());
  return CollectiveOrder(graph, order).Run();
}

}  // namespace tenon
