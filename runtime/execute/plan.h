// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/op/kernel.h"
#include "runtime/execute/frames.h"
#include "runtime/execute/kernel_cache.h"

namespace tenon {

/// An output's way to one consumer.
struct PlanEdge {
  int32_t dst;     // a node of the plan
  int32_t slot;    // the consumer's input slot in its frame; kControlSlot for control
  int32_t output;  // of the source; kControlSlot for control
  bool last;       // the last consumer of that output: the value may be moved
  bool only;       // the consumer waits for nothing else
  /// The consumer does nothing, and at most one node waits for it.
  bool to_passage;
};

/// One node, laid out for the executor.
struct alignas(64) PlanNode {
  /// A node of kOrder does nothing: it is there for what waits for it.
  enum class Role : uint8_t { kKernel, kConstant, kArg, kRetval, kOrder };

  const Kernel* kernel = nullptr;  // null for args and retvals
  const DTypeVector* output_types = nullptr;
  int32_t first_slot = 0;  // of its inputs, in its frame
  union {
    int32_t state = 0;    // with control flow: its place among the nodes of its frame
    int32_t output_slot;  // without: the only place to which its only output goes, or -1
  };
  int32_t edges_begin = 0;
  int32_t edges_end = 0;
  int32_t pending = 0;       // edges to wait for; of a Merge, only the control edges
  int32_t merge_inputs = 0;  // of a Merge: data inputs that can come in iteration 0
  int32_t frame = 0;
  union {
    int32_t index = 0;    // of an arg or retval
    int32_t child_frame;  // of an Enter
  };
  int32_t num_inputs = 0;
  int32_t num_outputs = 0;
  Role role = Role::kKernel;
  FlowKind flow = FlowKind::kPlain;
  bool async = false;
  bool reads_refs = false;         // some input is a reference that the op takes as a value
  bool renews = false;             // some input may follow a ref variable (Tensor::follows)
  bool assumed_expensive = false;  // until it has been measured
  uint16_t constant_inputs = 0;    // a bit for each input that no edge brings (PlanConstant)

  static constexpr int kMaxConstantInputs = 16;
  bool input_is_constant(int i) const { return i < kMaxConstantInputs && constant_inputs >> i & 1; }
};
static_assert(sizeof(PlanNode) == 64, "a node's layout is one line of the cache");

/// The value of an input that is the same in all steps and iterations: it stays in their states.
struct PlanConstant {
  int32_t slot;
  const Tensor* value;  // its kernel's
};

/// What repeated steps over one partition of a graph share: its nodes as flat arrays, with their
/// kernels. Made once per signature (feeds, fetches, targets); immutable; used by any number of
/// steps at once.
///
/// Values fed and fetched come in through _Arg nodes and out through _Retval nodes.
class ExecutionPlan {
 public:
  /// `graph` must be valid and is not needed afterwards. The kernels come from `kernel_of`; what
  /// they belong to must outlive the plan, as `device` must.
  static StatusOr<std::unique_ptr<ExecutionPlan>> Create(const Graph& graph, Device& device,
                                                         const KernelOf& kernel_of);

  const std::vector<PlanNode>& nodes() const { return nodes_; }
  const PlanNode& node(int32_t i) const { return nodes_[i]; }
  const PlanEdge* edges() const { return edges_.data(); }
  /// Nodes that wait for nothing, and have something to do.
  const std::vector<int32_t>& roots() const { return roots_; }
  /// PlanNode::pending of each node, in one piece: a step begins with a copy.
  const std::vector<int32_t>& pending() const { return pending_; }
  const std::string& name(int32_t i) const { return names_[i]; }
  const std::string& op(int32_t i) const { return ops_[i]; }
  Device& device() const { return device_; }

  /// Input slots and nodes of each frame. As many iterations run at once as the graph wishes, and
  /// as a bounded amount of memory holds.
  struct Frame {
    FrameInfo::Frame info;
    uint64_t name_hash = 0;    // see LoopNameHash
    int32_t place = 0;         // among the loops within the same one
    int32_t num_children = 0;  // loops within this one
    int32_t num_slots = 0;
    int32_t num_nodes = 0;
    std::vector<PlanConstant> constants;  // by slot
  };
  const std::vector<Frame>& frames() const { return frames_; }
  /// Whether steps need frames and merges; without, a cheaper step state does.
  bool has_control_flow() const { return has_control_flow_; }

  /// The dtypes of args and retvals by index.
  const DTypeVector& arg_types() const { return arg_types_; }
  const DTypeVector& retval_types() const { return retval_types_; }

  /// What feeds input `input` of node `i`, as messages name it.
  const std::string& input_name(int32_t i, int input) const { return input_names_.at({i, input}); }
  bool input_is_ref_arg(int32_t i, int input) const { return IsRef((*input_types_[i])[input]); }

  /// About 70 µs: what waking a thread costs on a virtual machine.
  static constexpr int64_t kWakeTicks = 200000;

  /// What running node `i` takes, in ticks of the time stamp counter, measured on some runs. 0 when
  /// that is not known yet.
  uint32_t ticks(int32_t i) const { return costs_[i].load(std::memory_order_relaxed); }
  /// Whether running node `i` takes long enough to be given to another thread on its own.
  bool expensive(int32_t i) const {
    const uint32_t t = ticks(i);
    return t == 0 ? nodes_[i].assumed_expensive : t > kExpensiveTicks;
  }
  /// Whether running node `i` is known to take less than waking another thread.
  bool quick(int32_t i) const { return ticks(i) - 1 < kWakeTicks; }
  void RecordCost(int32_t i, uint64_t ticks) const;

 private:
  explicit ExecutionPlan(Device& device) : device_(device) {}
  Status AddNodes(const std::vector<Node*>& order, const FrameInfo& info,
                  const KernelOf& kernel_of);
  Status AddNode(const Node& node, const FrameInfo& info, const KernelOf& kernel_of);
  /// Finds the nodes that renew their inputs: those to which a value may come that was read from a
  /// ref variable, here or before, and kept.
  void FindFollowers(const std::vector<Node*>& order);
  void AddFrames(const FrameInfo& info);
  /// Puts constants where they are wanted, and has their consumers wait for what they wait for:
  /// returns these as edges, by their sources.
  std::vector<std::pair<int32_t, int32_t>> PlaceConstants(const std::vector<Node*>& order);
  /// Whether the value that `edge` brings can be there before, if it is a constant's.
  bool CanBePlaced(const OutEdge& edge) const;
  void AddEdges(const std::vector<Node*>& order);
  /// Notes which nodes wait for nothing, and what the others wait for.
  void FindRoots();
  void LimitIterations();

  static constexpr uint32_t kExpensiveTicks = 25000;  // about 10 µs
  /// The cost of nodes that nobody measures: constants, arguments, starting an asynchronous kernel.
  static constexpr uint32_t kUnmeasuredTicks = 500;

  Device& device_;
  std::vector<PlanNode> nodes_;
  std::vector<PlanEdge> edges_;
  std::vector<int32_t> roots_;
  std::vector<int32_t> pending_;
  std::vector<Frame> frames_;
  bool has_control_flow_ = false;
  DTypeVector arg_types_;
  DTypeVector retval_types_;
  std::vector<std::shared_ptr<const Kernel>> kernels_;
  std::vector<std::string> names_;
  std::vector<std::string> ops_;
  std::set<DTypeVector> types_;  // each list once: most nodes share few
  std::vector<const DTypeVector*> input_types_;
  flat_hash_map<std::pair<int32_t, int>, std::string> input_names_;
  mutable std::vector<std::atomic<uint32_t>> costs_;
  std::vector<int32_t> index_of_;         // node id -> plan index, while building
  std::vector<bool> placed_;              // constants that need not run, while building
  StringViewMap<int32_t> frame_of_name_;  // while building
};

}  // namespace tenon
