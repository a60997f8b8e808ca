// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/hash_map.h"
#include "core/op/function_kernel.h"
#include "core/op/kernel.h"
#include "core/op/op_schema.h"
#include "core/op/shape_inference.h"

namespace tenon {

class GradContext;

/// Adds the gradient of a node to the graph that is being built; see GradContext.
using GradientFn = std::function<void(GradContext&)>;

using KernelFactory = std::function<std::unique_ptr<Kernel>(KernelConstruction&)>;

/// Where a kernel finds its arguments on a device with memory of its own. Those that are declared
/// Host, or of dtypes that only the host understands, are in the host's memory in any case.
enum class KernelMemory : uint8_t {
  kDevice,  ///< In the device's, for which the kernel was written.
  kAny,   ///< In the device's, whichever it is: the kernel moves tensors and never looks into them.
  kHost,  ///< In the host's: the kernel runs there.
};
inline constexpr KernelMemory kAnyMemory = KernelMemory::kAny;
inline constexpr KernelMemory kHostMemory = KernelMemory::kHost;

/// What is particular about one kernel of an op.
struct KernelOptions {
  /// Type attributes and the dtypes of them that this kernel does; one not named takes any.
  std::vector<std::pair<std::string, DTypeVector>> types = {};
  /// The attributes that a kernel which is a function takes, in that order.
  std::vector<std::string> attrs = {};
  /// Whether a kernel which is a function costs less than handing it to another thread.
  bool cheap = false;
  /// A CPU kernel of kAny or kHost serves every kind of device.
  KernelMemory memory = KernelMemory::kDevice;
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
  ShapeValueFn shape_value = nullptr;  // null: nothing is known of it
  std::vector<KernelRegistration> kernels;
  std::vector<OpExample> examples;
  std::string no_example_reason;  // when it cannot be run alone
  Domain domain;

  /// The kernel for a node with these attributes on that kind of device, or null. Where no kernel
  /// was written for the device, it is a CPU kernel that serves every kind.
  const KernelRegistration* FindKernel(DeviceKind device, const AttributeMap& attrs) const;
  /// Where that kernel finds its arguments.
  KernelMemory MemoryOn(DeviceKind device, const AttributeMap& attrs) const;
  /// Whether some kind of device has a kernel for such a node.
  bool HasKernel(const AttributeMap& attrs) const;
  /// Makes the kernel. InvalidArgument, naming those there are, when there is none for the device
  /// and dtypes.
  StatusOr<std::unique_ptr<Kernel>> MakeKernel(KernelConstruction& c) const;
};

/// Adds what a declared op does; what is wrong in it is a bug, found when the process starts.
///
///   ops.Get("MatMul").Shape(MatMulShape).Kernel<MatMulKernel>(kCpu).Grad(MatMulGrad)
///       .Example({Shape{2, 3}, Shape{3, 4}});
class OpBuilder {
 public:
  explicit OpBuilder(OpRegistration& op) : op_(op) {}

  const OpSchema& schema() const { return op_.schema; }
  OpBuilder& Shape(ShapeFn fn);
  /// A function of a GradContext&; it may return a Status, which then fails the gradient.
  template <typename F>
  OpBuilder& Grad(F fn) {
    if constexpr (std::is_void_v<std::invoke_result_t<F&, GradContext&>>) {
      return SetGradient(std::move(fn));
    } else {
      return SetGradient([fn](GradContext& g) { FailGradient(g, fn(g)); });
    }
  }
  /// What output 0 says when it is used as a shape.
  OpBuilder& ShapeValue(ShapeValueFn fn);
  OpBuilder& InDomain(double low, double high);
  OpBuilder& Example(std::vector<ExampleInput> inputs, AttributeMap attrs = {});
  /// For an op that only makes sense inside a larger graph; says which test covers it.
  OpBuilder& NoExample(std::string_view reason);

  /// A kernel class with a constructor from KernelConstruction&.
  template <typename K>
  OpBuilder& Kernel(DeviceKind device, KernelOptions options = {}) {
    CheckClassOptions(options);
    return AddKernel(device, std::move(options), [](KernelConstruction& c) {
      return std::unique_ptr<tenon::Kernel>(std::make_unique<K>(c));
    });
  }
  /// A kernel that is one function: of the context, and of what FunctionKernel says.
  template <typename... Params>
  OpBuilder& Kernel(DeviceKind device, Status (*compute)(KernelContext&, Params...),
                    KernelOptions options = {}) {
    static constexpr Parameter kParameters[] = {ParameterOf<Params>()...,
                                                {ParameterKind::kState, 0}};
    CheckParameters(options, kParameters);
    return AddKernel(device, options,
                     [compute, options, &schema = op_.schema](KernelConstruction& c) {
                       return std::make_unique<FunctionKernel<Params...>>(
                           c, schema, compute, options.attrs, options.cheap);
                     });
  }
  OpBuilder& AddKernel(DeviceKind device, KernelOptions options, KernelFactory factory);

 private:
  OpBuilder& SetGradient(GradientFn fn);
  void CheckClassOptions(const KernelOptions& options) const;
  void CheckParameters(const KernelOptions& options, absl::Span<const Parameter> parameters) const;
  /// In gradients.cc: what a GradContext is stands there.
  static void FailGradient(GradContext& g, const Status& status);

  OpRegistration& op_;
};

class OpRegistry;

/// The ops of a file before they are read: which ones it declares, and what adds what they do.
struct OpFamily {
  std::string_view file;  // names the text in errors
  std::string_view text;  // as ParseOpDeclarations reads it
  std::vector<std::string_view> names;
  /// Asks the registry for ops of its own family alone.
  void (*add)(OpRegistry& ops) = nullptr;
};

/// The ops a program knows. Filled by explicit calls (RegisterXxx(OpRegistry&), one a family)
/// before anything uses it; constant and thread-safe from then on. A family is read when one of its
/// ops is first asked for, so that a process pays for those only that it uses.
class OpRegistry {
 public:
  OpRegistry();
  ~OpRegistry();
  OpRegistry(const OpRegistry&) = delete;
  OpRegistry& operator=(const OpRegistry&) = delete;

  /// The ops that `text` declares, as ParseOpDeclarations reads it. False, and nothing is done,
  /// when `file` has been declared before; a text that cannot be read, or an op that is there
  /// already, is a bug.
  bool Declare(std::string_view text, std::string_view file);
  /// The same of ops that are read later; the texts have to outlive the registry. Names that are
  /// not those of the text are a bug, which shows then.
  void DeclareFamily(OpFamily family);
  /// A declared op, to add what it does.
  OpBuilder Get(std::string_view name);
  /// The same of an op with a kernel for the CPU: a function, or the class K. Without a shape
  /// function the shapes are those that are declared.
  template <typename... Params>
  OpBuilder Add(std::string_view name, ShapeFn shape, Status (*kernel)(KernelContext&, Params...),
                KernelOptions options = {}) {
    return Get(name).Shape(shape).Kernel(kCpu, kernel, std::move(options));
  }
  template <typename... Params>
  OpBuilder Add(std::string_view name, Status (*kernel)(KernelContext&, Params...),
                KernelOptions options = {}) {
    return Get(name).Shape(DeclaredShape).Kernel(kCpu, kernel, std::move(options));
  }
  template <typename K>
  OpBuilder Add(std::string_view name, ShapeFn shape, KernelOptions options = {}) {
    return Get(name).Shape(shape).Kernel<K>(kCpu, std::move(options));
  }

  /// The op; null when unknown.
  const OpRegistration* Find(std::string_view name) const;
  /// The op; NotFound "Op type not registered 'X' in binary running on <host>" when unknown. Of
  /// "ExperimentalX", as TensorFlow 1.13 and 1.14 called datasets, it is X.
  StatusOr<const OpRegistration*> Lookup(std::string_view name) const;
  /// Every op, sorted by name.
  std::vector<const OpRegistration*> All() const;

 private:
  /// A family that was declared, and may have been read.
  struct Pending {
    OpFamily family;
    OpRegistry* registry = nullptr;
    std::once_flag once;

    void Read();
  };
  struct Entry {
    std::unique_ptr<OpRegistration> op;
    Pending* family = nullptr;  // null: the op is as it was declared

    /// The op, after its family has been read.
    OpRegistration& Read() const;
  };

  Entry& AddEntry(std::string_view name, std::string_view file);

  std::set<std::string, std::less<>> files_;
  std::vector<std::unique_ptr<Pending>> families_;
  StringMap<Entry> ops_;
};

}  // namespace tenon
