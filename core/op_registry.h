// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/hash_map.h"
#include "core/kernel.h"
#include "core/op_schema.h"
#include "core/shape_inference.h"

namespace tenon {

class Node;
class Scope;
struct Output;

/// Adds the gradient of `node` to the graph: `dys` are the gradients of its outputs (an Output
/// without a node where none flows), `dxs` gets one per input (again empty where none flows).
using GradientFn = std::function<Status(const Scope& scope, Node& node,
                                        const std::vector<Output>& dys, std::vector<Output>* dxs)>;

using KernelFactory = std::function<std::unique_ptr<Kernel>(KernelConstruction&)>;

/// What is particular about one kernel of an op.
struct KernelOptions {
  /// Type attributes and the dtypes of them that this kernel does; one not named takes any.
  std::vector<std::pair<std::string, DTypeVector>> types = {};
  /// Arguments that are in host memory although the device has its own.
  std::vector<std::string> host_args = {};
};

struct KernelRegistration {
  DeviceKind device;
  KernelOptions options;
  KernelFactory factory;
};

/// One input of an example: a shape, filled with samples of the op's domain, or a fixed value.
using ExampleInput = std::variant<Shape, Tensor>;

/// A valid use of an op, from which the conformance test and the documentation are made.
struct OpExample {
  std::vector<ExampleInput> inputs;
  AttributeMap attrs;
};

/// Where an example's random values lie: gradients are checked away from kinks.
struct Domain {
  double low = -2;
  double high = 2;
};

/// Everything known about one op.
struct OpRegistration {
  OpSchema schema;
  ShapeFn shape = nullptr;
  GradientFn gradient;                 // empty: none is known
  bool not_differentiable = false;     // no gradient flows through it, by definition
  bool is_loop_back = false;           // the op whose edges may close a cycle: NextIteration
  std::vector<KernelRegistration> kernels;
  std::vector<OpExample> examples;
  std::string no_example_reason;       // when it cannot be run alone
  Domain domain;

  /// The kernel for a node with these attributes on that kind of device, or null.
  const KernelRegistration* FindKernel(DeviceKind device, const AttributeMap& attrs) const;
  /// Makes the kernel. NotFound when there is none for the device and dtypes.
  StatusOr<std::unique_ptr<Kernel>> MakeKernel(KernelConstruction& c) const;
};

/// Builds one registration; what is wrong in it is a bug, found when the process starts.
///
///   ops.Add("MatMul").Doc("Matrix product of rank-2 a and b.")
///       .Input("a: T").Input("b: T").Output("product: T")
///       .Attr("T: {float, double}").Attr("transpose_a: bool = false")
///       .Shape(MatMulShape).Kernel<MatMulCpu>(kCpu).Grad(MatMulGrad)
///       .Example({Shape{2, 3}, Shape{3, 4}});
class OpBuilder {
 public:
  explicit OpBuilder(OpRegistration& op) : op_(op) {}
  /// Completes the registration: reads the arguments, which may name attributes given after them.
  ~OpBuilder();
  OpBuilder(const OpBuilder&) = delete;
  OpBuilder& operator=(const OpBuilder&) = delete;

  OpBuilder& Doc(std::string_view text);
  OpBuilder& Input(std::string_view arg);
  OpBuilder& Output(std::string_view arg);
  OpBuilder& Attr(std::string_view attr);
  OpBuilder& Stateful();
  OpBuilder& Commutative();
  OpBuilder& Aggregate();
  OpBuilder& AllowsUninitializedInput();
  OpBuilder& Shape(ShapeFn fn);
  OpBuilder& Grad(GradientFn fn);
  OpBuilder& NotDifferentiable();
  /// Edges out of this op may close a cycle.
  OpBuilder& LoopBack();
  OpBuilder& InDomain(double low, double high);
  OpBuilder& Example(std::vector<ExampleInput> inputs, AttributeMap attrs = {});
  /// For an op that only makes sense inside a larger graph; says which test covers it.
  OpBuilder& NoExample(std::string_view reason);

  /// A kernel class with a constructor from KernelConstruction&.
  template <typename K>
  OpBuilder& Kernel(DeviceKind device, KernelOptions options = {}) {
    return AddKernel(device, std::move(options), [](KernelConstruction& c) {
      return std::unique_ptr<tenon::Kernel>(std::make_unique<K>(c));
    });
  }
  /// A kernel that is one function and needs nothing of the node.
  OpBuilder& Kernel(DeviceKind device, Status (*compute)(KernelContext&),
                    KernelOptions options = {});
  OpBuilder& AddKernel(DeviceKind device, KernelOptions options, KernelFactory factory);

 private:
  OpRegistration& op_;
  std::vector<std::string> inputs_;
  std::vector<std::string> outputs_;
};

/// The ops a program knows. Filled by explicit calls (RegisterXxx(OpRegistry&), one a family) before
/// anything uses it; constant and thread-safe from then on.
class OpRegistry {
 public:
  OpRegistry();
  ~OpRegistry();
  OpRegistry(const OpRegistry&) = delete;
  OpRegistry& operator=(const OpRegistry&) = delete;

  /// A new op. The registration is complete when the expression ends.
  OpBuilder Add(std::string_view name);
  /// An op that is there, to add a kernel for another device.
  OpBuilder Get(std::string_view name);

  /// The op; null when unknown.
  const OpRegistration* Find(std::string_view name) const;
  /// The op; NotFound "Op type not registered 'X' in binary running on <host>" when unknown.
  StatusOr<const OpRegistration*> Lookup(std::string_view name) const;
  /// Every op, sorted by name.
  std::vector<const OpRegistration*> All() const;

 private:
  StringMap<std::unique_ptr<OpRegistration>> ops_;
};

}  // namespace tenon
