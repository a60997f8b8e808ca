// SPDX-License-Identifier: Apache-2.0
#include "runtime/compile/collective_order.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <queue>
#include <string>
#include <string_view>
#include <tuple>
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
    std::unique_ptr<Place>& place =
        places_[{outer, predicate.node, predicate.index, branch, frame}];
    if (place == nullptr) {
      place = std::make_unique<Place>(Place{outer, predicate, branch, frame, DepthOf(outer) + 1});
    }
    return place.get();
  }

 private:
  using Key = std::tuple<const Place*, const Node*, int, int, std::string>;
  flat_hash_map<Key, std::unique_ptr<Place>> places_;
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
  CollectiveOrder(Graph* graph, const std::vector<Node*>& order)
      : graph_(graph), survey_(order), order_(order) {}

  /// Puts everything in order.
  Status Run() {
    for (Node* node : order_) {
      if (node->schema().Has(OpTrait::kCollective)) TENON_RETURN_IF_ERROR(AddItems(node));
      const Place* const place = survey_.Of(node).place;
      if (IsEnter(*node)) enters_[place].push_back(node);
      if (node->is_next_iteration()) next_iterations_[place].push_back(node);
      if (node->flow() == FlowKind::kExit) {
        exits_[survey_.Of(node->input(0).node).place].push_back(node);
      }
    }
    return RunAll();
  }

 private:
  /// Counts work that may grow faster than the graph, for which others would wait.
  Status Charge(int64_t work) {
    work_left_ -= work;
    if (work_left_ >= 0) return OkStatus();
    return ResourceExhausted(
        "to put the graph's collectives in order takes too long: it has too many branches and "
        "loops with collectives, or these are too deep in each other");
  }

  /// The item at each place around the collective.
  Status AddItems(Node* node) {
    const std::pair<int64_t, std::string_view> key(survey_.Of(node).path, node->name());
    const Place* place = survey_.Of(node).place;
    items_[place].push_back({node, {}, {}, {node}, key});
    for (; place != nullptr; place = place->outer) {
      TENON_RETURN_IF_ERROR(Charge(64));  // memory too
      std::vector<Item>& items = items_[place->outer];
      const Place* const loop = place->is_loop() ? place : nullptr;
      const auto [at, added] = item_at_.try_emplace(
          {place->outer, loop, place->predicate.node, place->predicate.index}, items.size());
      if (added) items.push_back({nullptr, place->predicate, {}, {}, key});
      Item& item = items[at->second];
      if (std::find(item.branches.begin(), item.branches.end(), place) == item.branches.end()) {
        item.branches.push_back(place);
      }
      item.inside.push_back(node);
      item.key = std::min(item.key, key);
    }
    return OkStatus();
  }

  /// Flags by id: the nodes that depend on one of `nodes`, and these.
  StatusOr<std::vector<bool>> DependentsOf(const std::vector<Node*>& nodes) {
    std::vector<bool> found(graph_->num_ids(), false);
    int64_t work = graph_->num_ids() / 64;
    std::vector<const Node*> pending(nodes.begin(), nodes.end());
    for (const Node* node : nodes) found[node->id()] = true;
    while (!pending.empty()) {
      const Node* const node = pending.back();
      pending.pop_back();
      if (node->is_next_iteration()) continue;
      work += static_cast<int64_t>(node->out_edges().size());
      for (const OutEdge& e : node->out_edges()) {
        if (found[e.dst->id()]) continue;
        found[e.dst->id()] = true;
        pending.push_back(e.dst);
      }
    }
    TENON_RETURN_IF_ERROR(Charge(work));
    return found;
  }

  /// The nodes that wait for what comes before the item.
  std::vector<Node*> Beginning(const Item& item) {
    if (item.collective != nullptr) return {item.collective};
    if (item.is_loop()) return enters_[item.branches[0]];
    return item.inside;
  }

  /// The items in an order that follows from the graph alone, each after those that it depends on;
  /// those that depend on each other are left out.
  StatusOr<std::vector<Item>> InOrder(std::vector<Item> items) {
    const auto is_first = [](const Item& a, const Item& b) { return a.key < b.key; };
    std::sort(items.begin(), items.end(), is_first);
    const bool are_plain = std::all_of(items.begin(), items.end(),
                                       [](const Item& item) { return item.collective != nullptr; });
    // The longer path is that of what depends on the other.
    if (are_plain || items.size() == 1) return items;
    std::vector<std::vector<size_t>> later_items(items.size());  // those that depend on one
    std::vector<int> waits(items.size(), 0);
    for (size_t before = 0; before < items.size(); ++before) {
      TENON_ASSIGN_OR_RETURN(const std::vector<bool> later, DependentsOf(Beginning(items[before])));
      for (size_t i = 0; i < items.size(); ++i) {
        TENON_RETURN_IF_ERROR(Charge(static_cast<int64_t>(items[i].inside.size())));
        if (i == before) continue;
        const Node* const predicate = items[i].predicate.node;
        const bool depends = (predicate != nullptr && later[predicate->id()]) ||
                             std::any_of(items[i].inside.begin(), items[i].inside.end(),
                                         [&](const Node* n) { return later[n->id()]; });
        if (!depends) continue;
        later_items[before].push_back(i);
        ++waits[i];
      }
    }
    std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;  // the first ones first
    for (size_t i = 0; i < items.size(); ++i) {
      if (waits[i] == 0) ready.push(i);
    }
    std::vector<Item> ordered;
    while (!ready.empty()) {
      const size_t i = ready.top();
      ready.pop();
      ordered.push_back(std::move(items[i]));
      for (const size_t later : later_items[i]) {
        if (--waits[later] == 0) ready.push(later);
      }
    }
    return ordered;
  }

  /// Lets each of `nodes` wait for all that are `before`.
  Status LetWait(const std::vector<Node*>& nodes, const std::vector<Node*>& before) {
    const auto a = static_cast<int64_t>(nodes.size()), b = static_cast<int64_t>(before.size());
    TENON_RETURN_IF_ERROR(Charge(a * b * std::min(a, b)));  // the graph looks for each edge first
    for (Node* last : before) {
      for (Node* node : nodes) graph_->AddControlEdge(last, node);
    }
    return OkStatus();
  }

  /// A place whose items are being put in order.
  struct Visit {
    std::vector<Item> items;
    size_t at = 0;      // the item that is looked at
    size_t branch = 0;  // how many of its branches are done
    /// The nodes after which the items before it have run, and those of its branches.
    std::vector<Node*> before = {};
    std::vector<Node*> lasts[2] = {};
  };

  /// Puts the items of all places in order, those within an item before the next one.
  Status RunAll() {
    std::deque<Visit> visits;  // the outermost first: places may be very deep
    const auto begin = [&](const Place* place) -> Status {
      TENON_ASSIGN_OR_RETURN(std::vector<Item> items, InOrder(std::move(items_[place])));
      visits.push_back({std::move(items)});
      return OkStatus();
    };
    TENON_RETURN_IF_ERROR(begin(nullptr));
    while (true) {
      Visit& visit = visits.back();
      if (visit.at == visit.items.size()) {
        const std::vector<Node*> last = std::move(visit.before);
        visits.pop_back();
        if (visits.empty()) return OkStatus();
        Visit& outer = visits.back();
        outer.lasts[outer.items[outer.at].branches[outer.branch++]->branch] = last;
        continue;
      }
      const Item& item = visit.items[visit.at];
      if (visit.branch == 0) TENON_RETURN_IF_ERROR(LetWait(Beginning(item), visit.before));
      if (visit.branch < item.branches.size()) {
        TENON_RETURN_IF_ERROR(begin(item.branches[visit.branch]));
        continue;
      }
      const bool is_last = visit.at + 1 == visit.items.size();
      TENON_ASSIGN_OR_RETURN(visit.before, EndOf(item, visit.before, visit.lasts, is_last));
      for (std::vector<Node*>& last : visit.lasts) last.clear();
      ++visit.at;
      visit.branch = 0;
    }
  }

  /// The nodes after which an item and those before it have run. `lasts` has those of its branches,
  /// or of an iteration. Nobody waits for the `is_last` one of the graph.
  StatusOr<std::vector<Node*>> EndOf(const Item& item, const std::vector<Node*>& before,
                                     const std::vector<Node*> (&lasts)[2], bool is_last) {
    if (item.collective != nullptr) return std::vector<Node*>{item.collective};
    if (item.is_loop()) {
      // An iteration begins when those before it have done theirs.
      TENON_RETURN_IF_ERROR(LetWait(next_iterations_[item.branches[0]], lasts[0]));
      return exits_[item.branches[0]];
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
  const std::vector<Node*>& order_;
  int64_t work_left_ = int64_t{1} << 30;
  flat_hash_map<const Place*, std::vector<Item>> items_;
  /// The number of each Cond and loop among the items of its place.
  flat_hash_map<std::tuple<const Place*, const Place*, const Node*, int>, size_t> item_at_;
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
