// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/build/operand.h"

// Building a graph in C++. Functions of Outputs add nodes to the graph that is being built, which,
// and how, is said by objects that are entered like Python's `with` and left at the end of their
// block, on the thread that made them:
//
//   Graph graph(AllOps());
//   GraphBuilding building(graph);
//   Output x = Placeholder(DType::kFloat, {-1, 784}, {.name = "x"});
//   {
//     NameScope scope("hidden");
//     DeviceScope on("/job:ps");
//     ...
//   }
//
// The first mistake is kept in the graph, with the line of the program that made it; what is built
// after it does nothing. Opening a session on the graph returns it: `building.status()` does too.

namespace tenon {

/// Chooses a device for each node from its op; see ReplicaDeviceSetter.
using DeviceFunction = std::function<std::string(const Node& node)>;

/// What every function that builds a node takes last.
struct OpOptions {
  /// The node's name, made unique; by default its op's.
  std::string name = {};
  /// Where mistakes are reported.
  std::source_location location = std::source_location::current();
};

/// A branch or a loop's body that is being built, into which values from outside must be brought:
/// see Cond and WhileLoop.
class FlowContext {
 public:
  virtual ~FlowContext() = default;
  /// `value` as nodes inside see it: itself when it is made inside.
  virtual Endpoint Bring(Endpoint value) = 0;
  /// Says that a new node is inside.
  virtual void Add(Node* node) = 0;
  /// What a node inside waits for that has no input.
  virtual Node* pivot() const = 0;
};

/// What new nodes get; entered through the classes below.
struct BuildContext {
  Graph* graph = nullptr;
  std::string prefix;  // ends with '/' unless empty
  std::string device;
  DeviceFunction device_function;
  std::vector<Node*> control_inputs;
  std::vector<std::string> colocated_with;
  /// The branch or body that new nodes are in; null outside all.
  FlowContext* flow = nullptr;
  /// Where the program called what now builds several nodes; null outside such a function.
  std::optional<std::source_location> caller;

  /// Keeps the error in the graph, unless there is one, after the place it was made at.
  void Fail(const Status& error, const std::source_location& at) const;
  /// Whether `value` has a node of the graph; `what` it is for begins the reason.
  Status CheckBuilt(const Output& value, std::string_view what) const;
  /// The same, and whether that node has such an output.
  Status CheckValue(const Output& value, std::string_view what) const;
};

/// The context that was entered last on this thread. Ends the process with a line that names `at`
/// when there is none: there is no graph to keep the mistake in.
const BuildContext& CurrentBuilding(
    const std::source_location& at = std::source_location::current());
/// Makes a changed context the current one while it lives. The base of the classes below.
class EnteredContext {
 public:
  EnteredContext(const EnteredContext&) = delete;
  EnteredContext& operator=(const EnteredContext&) = delete;

 protected:
  explicit EnteredContext(BuildContext context);
  ~EnteredContext();

  const BuildContext context_;

 private:
  const BuildContext* const outer_;
};

/// New nodes go into `graph`, which must outlive this, without prefix, device or dependencies of
/// what was entered before.
class [[nodiscard]] GraphBuilding : private EnteredContext {
 public:
  explicit GraphBuilding(Graph& graph);
  /// The first mistake made in building the graph.
  const Status& status() const { return context_.graph->error(); }
};

/// Names of new nodes begin with "<those of outer scopes>/<name>/".
class [[nodiscard]] NameScope : private EnteredContext {
 public:
  using Location = std::source_location;
  explicit NameScope(std::string_view name, const Location& at = Location::current());
};

/// The requested device of new nodes, merged over that of outer scopes: "/job:ps" and in it
/// "/task:1" is "/job:ps/task:1". A device function gives what these leave open.
class [[nodiscard]] DeviceScope : private EnteredContext {
 public:
  using Location = std::source_location;
  explicit DeviceScope(std::string_view device, const Location& at = Location::current());
  explicit DeviceScope(DeviceFunction function, const Location& at = Location::current());
};

/// New nodes wait for these.
class [[nodiscard]] ControlDependencies : private EnteredContext {
 public:
  using Location = std::source_location;
  explicit ControlDependencies(const std::vector<Output>& nodes,
                               const Location& at = Location::current());
};

/// New nodes are placed where `node` is: they request its device, whatever was entered before.
class [[nodiscard]] ColocateWith : private EnteredContext {
 public:
  using Location = std::source_location;
  explicit ColocateWith(const Output& node, const Location& at = Location::current());
};

/// New nodes wait for nothing that was entered before, and are in no branch or loop: variables,
/// whose value is no part of what they are made between.
class [[nodiscard]] NoControlDependencies : private EnteredContext {
 public:
  using Location = std::source_location;
  explicit NoControlDependencies(const Location& at = Location::current());
};

/// New nodes have no prefix, device, dependencies or colocation: what variables and updates are
/// made in, wherever they are built. They stay in their branch or loop.
class [[nodiscard]] AtRoot : private EnteredContext {
 public:
  using Location = std::source_location;
  explicit AtRoot(const Location& at = Location::current());
};

/// Mistakes in new nodes are reported at `caller`, unless this stands inside another: for functions
/// that build several nodes on behalf of their caller.
class [[nodiscard]] CalledFrom : private EnteredContext {
 public:
  explicit CalledFrom(const std::source_location& caller);
};

/// New nodes are in this branch or loop and wait for nothing that was entered before.
class [[nodiscard]] InFlow : private EnteredContext {
 public:
  explicit InFlow(FlowContext* flow);
};

/// `name`, or name_1, name_2, ... whichever is the first scope, within those that were entered,
/// that no node is in.
std::string UnusedScope(const std::string& name,
                        const std::source_location& at = std::source_location::current());

/// Makes every random op built into the graph from now on reproducible (tf.set_random_seed).
void SetRandomSeed(int64_t seed, const std::source_location& at = std::source_location::current());
/// Seeds for the next random op, from the graph's seed and the op's, as TensorFlow 2.15's get_seed
/// picks them (0, 0 means nondeterministic).
std::pair<int64_t, int64_t> NextSeeds(
    int64_t op_seed, const std::source_location& at = std::source_location::current());

/// Collects the parts of one node. Finishing it adds the node to the graph being built, after
/// constants for literals, fills in the attributes that follow from the inputs, and infers shapes.
/// For ops without a function of their own; those are made of it.
class NodeBuilder {
 public:
  using Location = std::source_location;

  /// A node of kind `op`, called `name`, or by default after its op, made unique.
  explicit NodeBuilder(std::string_view op, std::string_view name = "",
                       const Location& at = Location::current())
      : op_(op), name_(name), at_(at) {}

  /// The next argument: one tensor.
  NodeBuilder& Input(const tenon::Input& value) {
    args_.push_back({value});
    return *this;
  }
  /// The next argument: a list of tensors.
  NodeBuilder& Inputs(const tenon::Inputs& values) {
    args_.push_back(values.values());
    return *this;
  }
  NodeBuilder& Attr(std::string_view name, Attribute value) {
    attrs_.Set(name, std::move(value));
    return *this;
  }

  /// The node; FailedNode() after a mistake.
  Node* Finish();
  /// Its first output, for ops with one.
  tenon::Output Output() { return tenon::Output(Finish(), 0); }
  /// The outputs of each of its first output arguments; after a mistake as many without a node as
  /// the attributes tell.
  std::vector<std::vector<tenon::Output>> OutputLists(size_t arguments);
  /// All of them, one after the other.
  std::vector<tenon::Output> Outputs();

 private:
  using Argument = std::vector<tenon::Input>;

  StatusOr<Node*> Build();
  int64_t LengthAfterMistake(size_t argument);
  Status CheckArguments(const OpSchema& schema) const;
  /// Whether the tensors among the arguments have values.
  Status CheckTensors() const;
  Status CheckLengths(const OpSchema& schema) const;
  Status CheckLoop(const std::vector<Endpoint>& inputs) const;
  Status InferAttrs(const OpSchema& schema);
  Status InferFromOutputs(const ArgSchema& arg, const Argument& values);
  Status InferFromLiterals(const OpSchema& schema, const ArgSchema& arg, const Argument& values);
  StatusOr<std::vector<Endpoint>> Endpoints(const OpSchema& schema);
  Node* InLoop() const;
  StatusOr<tenon::Output> Constant(Tensor value) const;
  StatusOr<tenon::Output> AllAxes(const tenon::Output& of) const;

  std::string op_;
  std::string name_;
  Location at_;
  std::vector<Argument> args_;
  AttributeMap attrs_;
};

}  // namespace tenon
