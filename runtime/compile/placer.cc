// SPDX-License-Identifier: Apache-2.0
#include "runtime/compile/placer.h"
#include "core/op/op_traits.h"

#include <algorithm>
#include <numeric>

namespace tenon {
namespace {

bool CarriesState(DType type) { return IsRef(type) || type == DType::kResource; }

/// Ops whose kernels the executor has built in, or whose node only names a place.
bool RunsAnywhere(const Node& node) { return node.is_arg() || node.is_retval(); }

class Placer {
 public:
  Placer(Graph& graph, const std::vector<PlacementDevice>& devices, const PlacementOptions& options)
      : graph_(graph),
        devices_(devices),
        options_(options),
        parent_(graph.num_ids()),
        sizes_(graph.num_ids()) {
    std::iota(parent_.begin(), parent_.end(), 0);
    for (const PlacementDevice& d : devices) {
      names_.push_back(std::make_shared<const std::string>(d.name.ToString()));
    }
  }

  Status Run() {
    for (int id = options_.first_id; id < graph_.num_ids(); ++id) {
      if (Node* const n = graph_.node(id)) nodes_.push_back(n);
    }
    if (std::all_of(nodes_.begin(), nodes_.end(),
                    [](const Node* n) { return !n->assigned_device().empty(); })) {
      return OkStatus();
    }
    for (size_t i = 0, count = nodes_.size(); i < count; ++i) JoinGroups(*nodes_[i]);
    for (const Node* n : nodes_) ++sizes_[Root(n->id())];
    for (Node* n : nodes_) {
      if (const int root = Root(n->id()); sizes_[root] > 1) groups_[root].members.push_back(n);
    }
    for (Node* n : nodes_) {
      if (!n->assigned_device().empty()) continue;
      const auto group = groups_.find(Root(n->id()));
      if (group == groups_.end()) {
        TENON_ASSIGN_OR_RETURN(const PlacementDevice* chosen, Choose(*n, {n}));
        n->set_assigned_device(NameOf(*chosen));
        continue;
      }
      auto& [members, chosen] = group->second;
      if (chosen == nullptr) {
        TENON_ASSIGN_OR_RETURN(chosen, Choose(*n, members));
      }
      n->set_assigned_device(NameOf(*chosen));
    }
    return OkStatus();
  }

 private:
  int Root(int id) {
    while (parent_[id] != id) id = parent_[id] = parent_[parent_[id]];
    return id;
  }
  void Join(const Node& a, Node& b) {
    parent_[Root(a.id())] = Root(b.id());
    if (b.id() < options_.first_id && earlier_.insert(&b).second) nodes_.push_back(&b);
  }

  void JoinGroups(const Node& node) {
    if (const Attribute* classes = node.attrs().Find("_class")) {
      if (const auto* list = classes->get_if<std::vector<std::string>>()) {
        for (const std::string& c : *list) {
          if (!c.starts_with("loc:@")) continue;
          Node* const other = graph_.Find(std::string_view(c).substr(5));
          // Part of a graph may lack the node that another was made beside.
          if (other != nullptr) Join(node, *other);
        }
      }
    }
    if (node.schema().Has(OpTrait::kIdentities)) return;
    for (int i = 0; i < node.num_inputs(); ++i) {
      Endpoint in = node.input(i);
      // An IdentityN may hand on the handles of several devices, and is itself at none of them.
      while (in.node != nullptr && in.node->schema().Has(OpTrait::kIdentities)) {
        in = in.node->input(in.index);
      }
      if (in.node == nullptr) continue;
      const DType type = in.node->output_type(in.index);
      if (CarriesState(type) && CarriesState(node.input_types()[i])) Join(node, *in.node);
    }
  }

  /// The kinds of device that the node has kernels for, in words.
  static std::string KindsOf(const Node& node) {
    std::vector<std::string> names;
    for (const DeviceKind kind : DeviceKind::All()) {
      if (Supports(node, kind)) names.emplace_back(kind.name());
    }
    return names.empty() ? "no device with these types" : tenon::Join(names, " ");
  }

  static bool Supports(const Node& node, DeviceKind kind) {
    // What has no kernel at all is placed too: only a step that needs it fails.
    return RunsAnywhere(node) || node.registration().FindKernel(kind, node.attrs()) != nullptr ||
           !node.registration().HasKernel(node.attrs());
  }

  static bool TakesResource(const Node& node) {
    const DTypeVector& types = node.input_types();
    return std::find(types.begin(), types.end(), DType::kResource) != types.end();
  }

  static bool IsPlaced(const Node& node) { return !node.assigned_device().empty(); }

  /// What the whole group asks for. A member that is placed already decides.
  StatusOr<DeviceName> Wish(const Node& node, const std::vector<Node*>& group, bool soft) const {
    DeviceName wish;
    std::vector<const Node*> order;  // those that yield last
    const auto rank = [](const Node& m) { return IsPlaced(m) ? 0 : TakesResource(m) ? 2 : 1; };
    for (const int wanted : {0, 1, 2}) {
      std::copy_if(group.begin(), group.end(), std::back_inserter(order),
                   [&](const Node* m) { return rank(*m) == wanted; });
    }
    const bool is_decided = IsPlaced(*order.front());
    for (const Node* m : order) {
      const bool placed = IsPlaced(*m);
      auto asked = DeviceName::Parse(placed ? m->assigned_device() : m->requested_device());
      if (!asked.ok()) return Annotate(asked.status(), StrCat("node '", m->name(), "'"));
      DeviceName merged = wish;
      // An op goes to its resource, whatever was asked for it: Python's default device for a
      // variable's own ops is often that of the worker.
      const bool yields = !placed && (TakesResource(*m) || (soft && is_decided));
      if (Status s = merged.MergeConstraint(*asked, soft && !yields && !placed); !s.ok()) {
        if (yields) continue;
        return Failure(node, group,
                       StrCat("the nodes that must be together ask for different "
                              "devices (",
                              Message(s), ")"));
      }
      wish = std::move(merged);
    }
    return wish;
  }

  const std::shared_ptr<const std::string>& NameOf(const PlacementDevice& device) const {
    return names_[&device - devices_.data()];
  }

  StatusOr<const PlacementDevice*> Choose(const Node& node, const std::vector<Node*>& group) const {
    TENON_ASSIGN_OR_RETURN(DeviceName wish, Wish(node, group, options_.allow_soft_placement));
    const PlacementDevice* best = Best(wish, group);
    if (best == nullptr && options_.allow_soft_placement) {
      wish.type.reset();
      wish.id.reset();
      best = Best(wish, group);
    }
    if (best != nullptr) return best;
    const bool exists = std::any_of(devices_.begin(), devices_.end(),
                                    [&](const auto& d) { return wish.Matches(d.name); });
    if (!exists) {
      return Failure(node, group,
                     StrCat("{{node ", node.name(), "}} was explicitly assigned to ",
                            wish.ToString(), " but available devices are [ ", DeviceList(),
                            " ]. Make sure the device specification refers to a valid device.",
                            WhyNoGpu(wish)));
    }
    return Failure(node, group,
                   StrCat("no device that matches '", wish.ToString(),
                          "' has kernels for every node of its group; available devices are [ ",
                          DeviceList(), " ]"));
  }

  const PlacementDevice* Best(const DeviceName& wish, const std::vector<Node*>& group) const {
    const PlacementDevice* best = nullptr;
    // Accelerators come before CPUs, and these before kinds that only other tasks know, as XLA's.
    const auto order = [](DeviceKind kind) {
      return kind == kCpu ? 1 : kind == DeviceKind::kUnknown ? 2 : 0;
    };
    const auto rank = [&](const PlacementDevice& d) {
      return std::tuple(order(d.kind), d.name.SameTask(options_.default_device) ? 0 : 1, d.name.job,
                        d.name.replica, d.name.task, d.name.type, d.name.id);
    };
    for (const PlacementDevice& d : devices_) {
      if (!wish.Matches(d.name)) continue;
      const bool supported = std::all_of(group.begin(), group.end(),
                                         [&](const Node* m) { return Supports(*m, d.kind); });
      if (supported && (best == nullptr || rank(d) < rank(*best))) best = &d;
    }
    return best;
  }

  std::string WhyNoGpu(const DeviceName& wish) const {
    const DeviceName& here = options_.default_device;
    const bool elsewhere =
        wish.job && !(wish.job == here.job && (!wish.task || wish.task == here.task));
    if (options_.why_no_gpu.empty() || wish.type != "GPU" || elsewhere) return "";
    return StrCat(" No GPU is there: ", options_.why_no_gpu, ".");
  }

  std::string DeviceList() const {
    std::string list;
    for (const PlacementDevice& d : devices_) {
      StrAppend(&list, list.empty() ? "" : ", ", d.name.ToString());
    }
    return list;
  }

  Status Failure(const Node& node, const std::vector<Node*>& group, std::string_view why) const {
    std::string members;
    int shown = 0;
    for (const Node* m : group) {
      if (group.size() == 1 && Supports(*m, kCpu)) break;
      if (++shown > 10) {
        StrAppend(&members, "\n  ... and ", group.size() - 10, " more");
        break;
      }
      StrAppend(&members, "\n  ", m->name(), " (", m->op(), ") asked for '", m->requested_device(),
                "', has kernels for ", KindsOf(*m));
    }
    if (!members.empty()) members = StrCat("\nIts colocation group:", members);
    return InvalidArgument("Cannot assign a device for operation ", node.name(), ": ", why, members,
                           "\n\t [[{{node ", node.name(), "}}]]");
  }

  Graph& graph_;
  const std::vector<PlacementDevice>& devices_;
  const PlacementOptions& options_;
  struct Group {
    std::vector<Node*> members;
    const PlacementDevice* chosen = nullptr;
  };

  std::vector<Node*> nodes_;      // those to place, and those that these have to be with
  flat_hash_set<Node*> earlier_;  // of these, those before first_id
  std::vector<std::shared_ptr<const std::string>> names_;  // of the devices
  std::vector<int> parent_;           // by node id, which is its own at the root of a group
  std::vector<int> sizes_;            // of groups, by the id of the root
  flat_hash_map<int, Group> groups_;  // of several nodes
};

}  // namespace

Status PlaceNodes(Graph* graph, const std::vector<PlacementDevice>& devices,
                  const PlacementOptions& options) {
  return Placer(*graph, devices, options).Run();
}

void AssignRequestedDevices(Graph* graph) {
  auto device = std::make_shared<const std::string>();
  for (Node* n : graph->nodes()) {
    const std::string& requested = n->requested_device();
    if (requested != *device) device = std::make_shared<const std::string>(requested);
    n->set_assigned_device(device);
  }
}

}  // namespace tenon
