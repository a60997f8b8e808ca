// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/status.h"
#include "core/op/run.h"
#include "core/tensor/attribute.h"
#include "core/tensor/tensor.h"
#include "core/tensor/variable.h"

namespace tenon {

class FunctionRuntime;

/// What one edge of a graph carries: a tensor, or a reference to a ref variable.
struct Value {
  Tensor tensor;
  VariableResource* ref = nullptr;  // owned by the kernel that made it

  /// False of a dead output, and of one that is not there yet.
  bool live() const { return ref != nullptr || tensor.valid(); }
};

/// What a kernel may read while it is made for a node. Mistakes (a missing attribute, a dtype the
/// kernel cannot do) are collected: the first one is what creating the kernel returns.
class KernelConstruction {
 public:
  KernelConstruction(std::string name, std::string op, const AttributeMap& attrs,
                     DTypeVector input_types, DTypeVector output_types, Device& device,
                     std::shared_ptr<FunctionRuntime> functions = nullptr,
                     absl::Span<Device* const> task_devices = {})
      : name_(std::move(name)),
        op_(std::move(op)),
        attrs_(attrs),
        input_types_(std::move(input_types)),
        output_types_(std::move(output_types)),
        device_(device),
        functions_(std::move(functions)),
        task_devices_(task_devices) {}

  const std::string& name() const { return name_; }
  const std::string& op() const { return op_; }
  const AttributeMap& attrs() const { return attrs_; }
  /// One per tensor, reference types marked.
  const DTypeVector& input_types() const { return input_types_; }
  const DTypeVector& output_types() const { return output_types_; }
  Device& device() const { return device_; }
  /// What runs the functions of the node's graph; null when it has none.
  const std::shared_ptr<FunctionRuntime>& functions() const { return functions_; }
  /// The devices of the task, `device` among them; they live as long as it does. None where a
  /// kernel is made for itself.
  absl::Span<Device* const> task_devices() const { return task_devices_; }

  /// The attribute `attr`; when absent or of another type, a default T, and the error is kept.
  template <typename T>
  T Attr(std::string_view attr) {
    StatusOr<T> value = attrs_.Get<T>(attr);
    if (value.ok()) return *std::move(value);
    Fail(value.status());
    return T();
  }
  void Fail(const Status& error) {
    if (status_.ok()) status_ = error;
  }
  const Status& status() const { return status_; }

 private:
  const std::string name_;
  const std::string op_;
  const AttributeMap& attrs_;
  const DTypeVector input_types_;
  const DTypeVector output_types_;
  Device& device_;
  const std::shared_ptr<FunctionRuntime> functions_;
  const absl::Span<Device* const> task_devices_;
  Status status_;
};

/// One execution of one node: its inputs, where its outputs go, and what is around it. Used by one
/// thread at a time; for an asynchronous kernel it lives until `done` is called.
class KernelContext {
 public:
  KernelContext(const DeviceRun& run, const DTypeVector& output_types, Value* inputs,
                int num_inputs, Value* outputs)
      : run_(&run),
        output_types_(&output_types),
        inputs_(inputs),
        outputs_(outputs),
        num_inputs_(num_inputs) {}

  /// The same execution as `other`, which must outlive it, in another run or on another device.
  KernelContext(const DeviceRun& run, const KernelContext& other) : KernelContext(other) {
    run_ = &run;
  }

  int num_inputs() const { return num_inputs_; }
  int num_outputs() const { return static_cast<int>(output_types_->size()); }
  DType output_type(int i) const { return BaseType((*output_types_)[i]); }

  /// Input `i`; a reference where the op takes a value has been read already.
  const Tensor& input(int i) const { return inputs_[i].tensor; }
  /// Whether input `i` came (Merge is the op that runs with some of its inputs).
  bool has_input(int i) const { return inputs_[i].tensor.valid() || inputs_[i].ref != nullptr; }
  /// The variable behind a Ref(T) input, or null when it is none.
  VariableResource* ref(int i) const { return inputs_[i].ref; }
  /// Takes input `i` out, so that its buffer may have one reference.
  Tensor TakeInput(int i) { return std::move(inputs_[i].tensor); }

  void set_output(int i, Tensor value) { outputs_[i].tensor = std::move(value); }
  /// Output 0 of an op with one, unless there is an error, which is then given back: how most
  /// kernels end.
  Status Return(StatusOr<Tensor> value) {
    if (!value.ok()) return value.status();
    outputs_[0].tensor = *std::move(value);
    return OkStatus();
  }
  void set_output_ref(int i, VariableResource* variable) { outputs_[i].ref = variable; }
  Value& output(int i) { return outputs_[i]; }

  /// New memory for output `i`, uninitialised when plain. ResourceExhausted when there is none.
  StatusOr<Tensor*> AllocateOutput(int i, const Shape& shape);
  /// The same for dimensions from outside, with the errors of Shape::Create.
  StatusOr<Tensor*> CreateOutput(int i, absl::Span<const int64_t> dims);
  /// The buffer of input `from` under `shape` when nobody else needs it and dtype and size fit,
  /// else new memory. An elementwise kernel may then write in place; after the call it reads the
  /// input through pointers taken before.
  StatusOr<Tensor*> ForwardOrAllocate(int from, int i, const Shape& shape);
  StatusOr<Tensor> AllocateTemp(DType dtype, const Shape& shape) {
    return Tensor::Allocate(run_->device.allocator(), dtype, shape);
  }

  const ProgramRun& run() const { return run_->run; }
  const DeviceRun& device_run() const { return *run_; }
  Device& device() const { return run_->device; }
  ResourceStore& resources() const { return run_->device.resources(); }

  /// The loop the node runs in: 0 and 0 outside loops (see RendezvousKey).
  uint64_t frame = 0;
  int64_t iteration = 0;
  /// For the kernels that run on dead inputs (Send and Recv): whether the input was dead, and
  /// whether the output is.
  bool is_input_dead = false;
  bool is_output_dead = false;
  /// Whether the calling thread has nothing to do for the step but to wait for this kernel: an
  /// asynchronous one may then block, and spares two changes of threads.
  bool may_block = false;

 private:
  const DeviceRun* run_;
  const DTypeVector* output_types_;
  Value* inputs_;
  Value* outputs_;
  int num_inputs_;
};

/// What an op does on one kind of device. Made once per node; Compute runs many times, perhaps at
/// once from several threads, so it is const: state lives in resources, or in members that do
/// their own locking.
class Kernel {
 public:
  using Done = std::function<void(Status)>;

  explicit Kernel(const KernelConstruction& c) : name_(c.name()), op_(c.op()) {}
  virtual ~Kernel() = default;
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  const std::string& name() const { return name_; }
  const std::string& op() const { return op_; }

  virtual Status Compute(KernelContext& ctx) const = 0;

  /// Kernels that wait for something return true here and are run by ComputeAsync, which must not
  /// block unless the context's may_block is set, and calls `done` exactly once, from any thread;
  /// an exception ends the kernel in its stead, so none may come once `done` is out of the caller's
  /// hands.
  virtual bool is_async() const { return false; }
  virtual void ComputeAsync(KernelContext& ctx, Done done) const { done(Compute(ctx)); }

  /// False for kernels that cost less than handing them to another thread.
  virtual bool is_expensive() const { return true; }
  /// The value of a kernel that always gives the same one, else null: it then need not run.
  virtual const Tensor* constant() const { return nullptr; }

 private:
  const std::string name_;
  const std::string op_;
};

/// A kernel that waits.
class AsyncKernel : public Kernel {
 public:
  using Kernel::Kernel;
  bool is_async() const final { return true; }
  Status Compute(KernelContext&) const final {
    return Internal("asynchronous kernel run as a call");
  }
  void ComputeAsync(KernelContext& ctx, Done done) const override = 0;
};

}  // namespace tenon
