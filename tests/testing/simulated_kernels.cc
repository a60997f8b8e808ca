// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/simulated_kernels.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "core/base/denormals.h"
#include "core/base/exceptions.h"
#include "core/base/interruption.h"
#include "core/device/device_queue.h"
#include "core/graph/graph.h"
#include "core/op/host_args.h"
#include "ops/cuda/device_kind.h"
#include "ops/math/accumulate.h"
#include "ops/state/assign.h"
#include "ops/tensor_array/array_writes.h"
#include "runtime/device/cpu_device.h"
#include "tests/testing/simulated_driver.h"

namespace tenon::testing {
namespace {

/// Whether something of a step has failed: then nothing more of it runs.
bool HasFailed(const RunFailure* failure) {
  return failure != nullptr && std::atomic_ref(*failure->word).load(std::memory_order_acquire) != 0;
}

/// A tensor in the device's memory, without a share in that: as a kernel that is queued has it.
struct DeviceView {
  DeviceView() = default;
  explicit DeviceView(const Tensor& t)
      : dtype(t.dtype()), shape(t.shape()), memory(t.raw_data()), bytes(t.num_bytes()) {}

  Tensor OnDevice(const SimulatedDriver& driver) const {
    return Tensor(dtype, shape,
                  WrapBuffer(
                      driver.OnDevice(memory), bytes, [](void*) {}, nullptr));
  }
  DType dtype = DType::kInvalid;
  Shape shape;
  const void* memory = nullptr;
  size_t bytes = 0;
};

/// A variable on the device, and one with the same value for the CPU kernel.
struct VariableView {
  VariableResource* real;
  std::shared_ptr<VariableResource> shadow;
  DeviceView value;
  Tensor* on_host;  // of texts and other objects, which the host has; valid while it is locked
  bool reads_only;
};

/// One run of a CPU kernel on the device's memory.
struct SimulatedCall {
  struct Input {
    Tensor host;  // of an input in host memory
    DeviceView device;
    VariableResource* ref = nullptr;  // a shadow
  };
  ProgramRun run;
  Device* device = nullptr;
  int64_t run_id = 0;
  uint64_t frame = 0;
  int64_t iteration = 0;
  const Kernel* kernel = nullptr;
  const DTypeVector* output_types = nullptr;
  std::vector<Input> inputs;
  std::vector<VariableView> variables;
  std::vector<Value> results;
  bool needs_cpu = false;  // the CPU kernel's error is wanted at once

  Status Run(const SimulatedDriver& driver) {
    const FlushDenormals flush;
    const InterruptibleBy interruption(run.cancellation);
    std::vector<Value> in(inputs.size());
    std::vector<Tensor> kept;  // a second reference, so that no kernel writes into its inputs
    for (size_t i = 0; i < inputs.size(); ++i) {
      in[i].ref = inputs[i].ref;
      in[i].tensor =
          inputs[i].device.memory != nullptr ? inputs[i].device.OnDevice(driver) : inputs[i].host;
      kept.push_back(in[i].tensor);
    }
    for (VariableView& v : variables) {
      TENON_RETURN_IF_ERROR(v.shadow->Assign(v.value.memory != nullptr ? v.value.OnDevice(driver)
                                             : v.on_host != nullptr    ? *v.on_host
                                                                       : Tensor()));
    }
    results.assign(std::max<size_t>(output_types->size(), 1), Value());
    const DeviceRun on_device{run, *device, run_id};
    KernelContext ctx(on_device, *output_types, in.data(), static_cast<int>(in.size()),
                      results.data());
    ctx.frame = frame;
    ctx.iteration = iteration;
    Status status = CatchExceptions([&] { return kernel->Compute(ctx); });
    for (VariableView& v : variables) {
      const Tensor after = v.shadow->Read();
      if (status.ok() && v.on_host != nullptr) {
        *v.on_host = after;
      } else if (status.ok() && !v.reads_only && after.valid()) {
        void* const memory = driver.OnDevice(v.value.memory);
        if (after.num_bytes() != v.value.bytes) {
          status = Internal("an update has changed the shape of a variable on the device");
        } else if (after.raw_data() != memory) {
          std::memcpy(memory, after.raw_data(), v.value.bytes);
        }
      }
      status.Update(v.shadow->Assign(Tensor()));
    }
    return status;
  }
};

class SimulatedKernel final : public Kernel {
 public:
  SimulatedKernel(KernelConstruction& c, const OpRegistration& op, const OpRegistry& ops)
      : Kernel(c),
        ops_(ops),
        attrs_(c.attrs()),
        output_types_(c.output_types()),
        host_(c.device().name(),
              std::make_shared<ResourceStore>(c.device().resources().default_container()),
              c.device().files()) {
    KernelConstruction inner(c.name(), c.op(), c.attrs(), c.input_types(), c.output_types(), host_,
                             c.functions());
    StatusOr<std::unique_ptr<Kernel>> kernel = op.MakeKernel(inner);
    const auto inputs = HostArgs(op.schema.inputs, c.attrs());
    const auto outputs = HostArgs(op.schema.outputs, c.attrs());
    for (const Status& s : {kernel.status(), inputs.status(), outputs.status()}) c.Fail(s);
    if (!c.status().ok()) return;
    kernel_ = *std::move(kernel);
    if (kernel_->is_async()) c.Fail(Internal("the simulated device cannot run ", c.op()));
    host_inputs_ = *inputs;
    host_outputs_ = *outputs;
    reads_only_ = c.op().find("Gather") != std::string::npos;
  }

  Status Compute(KernelContext& ctx) const override {
    auto call = std::make_shared<SimulatedCall>();
    call->run = ctx.run();
    call->device = &host_;
    call->run_id = ctx.device_run().id;
    call->frame = ctx.frame;
    call->iteration = ctx.iteration;
    call->kernel = kernel_.get();
    call->output_types = &output_types_;
    for (int i = 0; i < ctx.num_inputs(); ++i) {
      TENON_RETURN_IF_ERROR(AddInput(ctx, i, *call));
    }
    // In one order, whoever locks several.
    std::sort(call->variables.begin(), call->variables.end(),
              [](const VariableView& a, const VariableView& b) { return a.real < b.real; });
    return LockAndQueue(ctx, call, 0);
  }
  bool is_expensive() const override { return kernel_->is_expensive(); }

 private:
  /// Takes the values of the variables from that on, under their locks unless they are only read,
  /// and queues the call.
  Status LockAndQueue(KernelContext& ctx, const std::shared_ptr<SimulatedCall>& call,
                      size_t next) const {
    if (next == call->variables.size()) return Queue(ctx, call);
    VariableView& view = call->variables[next];
    if (!view.real->initialized()) {
      call->needs_cpu = true;  // which says what is wrong
      return LockAndQueue(ctx, call, next + 1);
    }
    const auto take = [&](Tensor* value) {
      if (value->IsHostMemory()) {
        view.on_host = value;
        call->needs_cpu = true;
      } else {
        view.value = DeviceView(*value);
      }
      return LockAndQueue(ctx, call, next + 1);
    };
    if (!reads_only_) return view.real->ModifyInPlace(take);
    Tensor value = view.real->Read();
    return take(&value);
  }

  Status Queue(KernelContext& ctx, const std::shared_ptr<SimulatedCall>& call) const {
    auto& driver = *static_cast<SimulatedDriver*>(ctx.device().queue()->stream());
    std::vector<SimulatedDriver::Access> accesses;
    for (const auto& input : call->inputs) {
      if (input.device.memory != nullptr) {
        accesses.push_back({input.device.memory, input.device.bytes, false});
      }
    }
    for (const VariableView& v : call->variables) {
      if (v.value.memory == nullptr) continue;
      accesses.push_back({v.value.memory, v.value.bytes, false});
      if (!v.reads_only) accesses.push_back({v.value.memory, v.value.bytes, true});
    }
    bool on_host = call->needs_cpu;
    for (int i = 0; i < ctx.num_outputs(); ++i) {
      if (IsRef(output_types_[i])) {
        ctx.set_output_ref(i, ctx.ref(0));
      } else {
        on_host |= host_outputs_[i];
      }
    }
    std::optional<std::vector<Shape>> shapes;
    if (!on_host) shapes = OutputShapes(ctx, *call);
    if (!shapes) return RunNow(ctx, driver, call, std::move(accesses));
    return RunLater(ctx, driver, call, std::move(accesses), *shapes);
  }

  Status AddInput(const KernelContext& ctx, int i, SimulatedCall& call) const {
    SimulatedCall::Input& input = call.inputs.emplace_back();
    if (VariableResource* ref = ctx.ref(i)) {
      input.ref = AddVariable(ref, call).get();
      return OkStatus();
    }
    const Tensor& t = ctx.input(i);
    if (host_inputs_[i]) {
      if (!t.IsHostMemory())
        return Internal("input ", i, " is in the device's memory, wanted in the host's");
      input.host = t;
      if (t.dtype() != DType::kResource || t.num_elements() != 1) return OkStatus();
      const ResourceHandle& handle = t.scalar<ResourceHandle>();
      auto found = ctx.resources().Lookup<VariableResource>(handle.container, handle.name);
      if (!found.ok()) {
        call.needs_cpu = true;
        return OkStatus();
      }
      const auto shadow = AddVariable(found->get(), call);
      return Publish(handle, shadow);
    }
    if (t.IsHostMemory())
      return Internal("input ", i, " is in host memory, wanted in the device's");
    input.device = DeviceView(t);
    return OkStatus();
  }

  /// Makes the handle name the shadow, for the CPU kernel.
  Status Publish(const ResourceHandle& handle,
                 const std::shared_ptr<VariableResource>& shadow) const {
    ResourceStore& store = host_.resources();
    const auto present = store.Lookup<VariableResource>(handle.container, handle.name);
    if (present.ok() && *present == shadow) return OkStatus();
    (void)store.Delete(handle.container, VariableResource::kKind, handle.name);
    return store
        .LookupOrCreate<VariableResource>(
            handle.container, handle.name,
            [&]() -> StatusOr<std::shared_ptr<VariableResource>> { return shadow; })
        .status();
  }

  std::shared_ptr<VariableResource> AddVariable(VariableResource* real, SimulatedCall& call) const {
    for (const VariableView& v : call.variables) {
      if (v.real == real) return v.shadow;
    }
    MutexLock lock(mu_);
    std::shared_ptr<VariableResource>& shadow = shadows_[real];
    if (shadow == nullptr || shadow->dtype() != real->dtype()) {
      shadow = std::make_shared<VariableResource>(real->dtype(), real->shape(), real->name());
    }
    call.variables.push_back({real, shadow, {}, nullptr, reads_only_});
    return shadow;
  }

  /// The shapes of the outputs, if the shape function knows them all.
  std::optional<std::vector<Shape>> OutputShapes(const KernelContext& ctx,
                                                 const SimulatedCall& call) const {
    if (std::all_of(output_types_.begin(), output_types_.end(), IsRef)) return std::vector<Shape>();
    Graph graph(ops_);
    std::vector<Endpoint> sources;
    for (int i = 0; i < ctx.num_inputs(); ++i) {
      const std::string name = StrCat("in", i);
      const SimulatedCall::Input& input = call.inputs[i];
      if (input.ref != nullptr) return std::nullopt;
      StatusOr<Node*> node =
          host_inputs_[i]
              ? graph.AddNode(name, "Const", {{"dtype", input.host.dtype()}, {"value", input.host}},
                              {})
              : graph.AddNode(
                    name, "Placeholder",
                    {{"dtype", input.device.dtype}, {"shape", PartialShape(input.device.shape)}},
                    {});
      if (!node.ok()) return std::nullopt;
      sources.push_back({*node, 0});
    }
    const auto node = graph.AddNode("op", op(), attrs_, sources);
    if (!node.ok()) return std::nullopt;
    std::vector<Shape> shapes;
    for (int i = 0; i < ctx.num_outputs(); ++i) {
      const PartialShape& shape = (*node)->output_shape(i);
      if (!shape.IsFullyKnown()) return std::nullopt;
      auto known = Shape::Create(shape.dims());
      // Scalars of old graphs stand for anything.
      if (!known.ok() || (op().starts_with("Placeholder") && known->rank() == 0))
        return std::nullopt;
      shapes.push_back(*known);
    }
    return shapes;
  }

  Status RunLater(KernelContext& ctx, SimulatedDriver& driver,
                  const std::shared_ptr<SimulatedCall>& call,
                  std::vector<SimulatedDriver::Access> accesses,
                  const std::vector<Shape>& shapes) const {
    std::vector<DeviceView> outputs;
    std::vector<bool> taken(ctx.num_inputs());
    for (int i = 0; i < static_cast<int>(shapes.size()); ++i) {
      Tensor* out = nullptr;
      for (int from = 0; out == nullptr && from < ctx.num_inputs(); ++from) {
        const Tensor& in = ctx.input(from);
        if (taken[from] || host_inputs_[from] || in.dtype() != ctx.output_type(i) ||
            in.num_elements() != shapes[i].num_elements() || (calls_++ & 1) != 0) {
          continue;
        }
        taken[from] = true;
        TENON_ASSIGN_OR_RETURN(out, ctx.ForwardOrAllocate(from, i, shapes[i]));
      }
      if (out == nullptr) {
        TENON_ASSIGN_OR_RETURN(out, ctx.AllocateOutput(i, shapes[i]));
      }
      outputs.emplace_back(*out);
      accesses.push_back({out->raw_data(), out->num_bytes(), true});
    }
    auto failure = std::make_shared<Status>();
    const RunCheck check = ctx.device().queue()->AddCheck(ctx.device_run().id,
                                                          [failure](uint64_t) { return *failure; });
    driver.Launch(Stream::kCompute, std::move(accesses),
                  [this, &driver, call, outputs, failure, check, device = ctx.device().name()] {
                    if (HasFailed(check.failure)) return;
                    Status status = call->Run(driver);
                    for (size_t i = 0; status.ok() && i < outputs.size(); ++i) {
                      status = Store(driver, call->results[i].tensor, outputs[i]);
                    }
                    call->results.clear();
                    if (status.ok()) return;
                    *failure = AnnotateWithNode(status, name(), op(), device);
                    std::atomic_ref(*check.word).store(1, std::memory_order_release);
                    std::atomic_ref(*check.failure->word).store(1, std::memory_order_release);
                  });
    return OkStatus();
  }

  static Status Store(const SimulatedDriver& driver, const Tensor& result,
                      const DeviceView& output) {
    if (result.dtype() != output.dtype || !(result.shape() == output.shape)) {
      return Internal("the kernel gives ", result.dtype(), result.shape(), ", its shape function ",
                      output.dtype, output.shape);
    }
    std::memcpy(driver.OnDevice(output.memory), result.raw_data(), output.bytes);
    return OkStatus();
  }

  /// For outputs that the host needs at once, or whose shapes depend on values.
  Status RunNow(KernelContext& ctx, SimulatedDriver& driver,
                const std::shared_ptr<SimulatedCall>& call,
                std::vector<SimulatedDriver::Access> accesses) const {
    Status status = Cancelled("the step has failed");
    const RunFailure* const failure = ctx.device().queue()->FailureOf(ctx.device_run().id);
    driver.Launch(Stream::kCompute, std::move(accesses), [&] {
      if (!HasFailed(failure)) status = call->Run(driver);
    });
    if (!driver.RunAll()) return FailedPrecondition("the host needs what is being recorded");
    TENON_RETURN_IF_ERROR(status);
    for (int i = 0; i < ctx.num_outputs(); ++i) {
      Tensor& result = call->results[i].tensor;
      if (IsRef(output_types_[i]) || !result.valid()) continue;
      if (host_outputs_[i]) {
        ctx.set_output(i, std::move(result));
        continue;
      }
      TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(i, result.shape()));
      const DeviceView view(*out);
      driver.Launch(Stream::kCompute, {{view.memory, view.bytes, true}}, [&driver, view, result] {
        std::memcpy(driver.OnDevice(view.memory), result.raw_data(), view.bytes);
      });
    }
    return OkStatus();
  }

  const OpRegistry& ops_;
  const AttributeMap attrs_;
  const DTypeVector output_types_;
  mutable CpuDevice host_;  // with shadows of variables as its resources
  std::unique_ptr<Kernel> kernel_;
  std::vector<bool> host_inputs_, host_outputs_;
  bool reads_only_ = false;
  mutable std::atomic<uint32_t> calls_{0};
  mutable Mutex mu_;
  mutable std::map<VariableResource*, std::shared_ptr<VariableResource>> shadows_
      ABSL_GUARDED_BY(mu_);
};

/// The sum that a write to an array of gradients makes.
StatusOr<Tensor> AddOnDevice(const KernelContext& ctx, const Tensor& a, const Tensor& b) {
  auto& driver = *static_cast<SimulatedDriver*>(ctx.device().queue()->stream());
  TENON_ASSIGN_OR_RETURN(const Tensor sum, Tensor::Allocate(a.allocator(), a.dtype(), a.shape()));
  const DeviceView x(a), y(b), out(sum);
  driver.Launch(
      Stream::kCompute,
      {{x.memory, x.bytes, false}, {y.memory, y.bytes, false}, {out.memory, out.bytes, true}},
      [&driver, x, y, out] {
        const auto result = SumOf(x.OnDevice(driver), y.OnDevice(driver));
        std::memcpy(driver.OnDevice(out.memory), result->raw_data(), out.bytes);
      });
  return sum;
}

template <Status (*kWrite)(KernelContext&, AddTensors)>
Status WriteOnDevice(KernelContext& ctx) {
  return kWrite(ctx, AddOnDevice);
}

Status AssignOnDevice(const KernelContext& ctx, const Tensor& current, const Tensor& value,
                      Tensor* next) {
  auto& driver = *static_cast<SimulatedDriver*>(ctx.device().queue()->stream());
  const DeviceView x(current), y(value), out(*next);
  driver.Launch(
      Stream::kCompute,
      {{x.memory, x.bytes, false}, {y.memory, y.bytes, false}, {out.memory, out.bytes, true}},
      [&driver, x, y, out, failure = ctx.device().queue()->FailureOf(ctx.device_run().id)] {
        const DeviceView& from = HasFailed(failure) ? x : y;
        std::memmove(driver.OnDevice(out.memory), driver.OnDevice(from.memory), out.bytes);
      });
  return OkStatus();
}

Status AssignReferenceOnDevice(KernelContext& ctx, bool validate_shape) {
  return AssignToReference(ctx, validate_shape, AssignOnDevice);
}
Status AssignHandleOnDevice(KernelContext& ctx, const ResourceCache<VariableResource>& cache,
                            bool validate_shape) {
  return AssignToHandle(ctx, cache, validate_shape, AssignOnDevice);
}

/// Whether the op works on variables, which the device may have.
bool UsesVariables(std::string_view name) {
  if (name.starts_with("ResourceAccumulator") || name.starts_with("ResourceConditional"))
    return false;
  return name == "AssignAddVariableOp" || name == "AssignSubVariableOp" ||
         name.starts_with("Resource") || name.starts_with("Rng") || name.starts_with("Stateful");
}

/// Whether it works on other objects, such as queues and files, or calls functions.
bool UsesHostObjects(const OpSchema& schema) {
  if (UsesVariables(schema.name)) return false;
  for (const auto* args : {&schema.inputs, &schema.outputs}) {
    for (const ArgSchema& arg : *args) {
      if (arg.type == DType::kVariant || arg.type == DType::kResource) return true;
      if (arg.type == DType::kString && arg.is_ref) return true;
    }
  }
  const bool draws = schema.FindAttr("seed") != nullptr;
  return (schema.is_stateful && !draws) ||
         std::any_of(schema.attrs.begin(), schema.attrs.end(), [](const AttrSchema& a) {
           return a.kind == "func" || a.kind == "list(func)";
         });
}

}  // namespace

void RegisterSimulatedKernels(OpRegistry& ops) {
  const KernelOptions numeric = {.types = {{"T", DTypesOf(NumericTypes())}}};
  ops.Get("TensorArrayWriteV3").Kernel(kCuda, WriteOnDevice<WriteToArray>, numeric);
  ops.Get("TensorArrayScatterV3").Kernel(kCuda, WriteOnDevice<ScatterToArray>, numeric);
  ops.Get("TensorArraySplitV3").Kernel(kCuda, WriteOnDevice<SplitToArray>, numeric);
  const DTypeVector plain = DTypesOf(PlainTypes());
  ops.Get("Assign").Kernel(kCuda, AssignReferenceOnDevice,
                           {.types = {{"T", plain}}, .attrs = {"validate_shape"}, .cheap = true});
  ops.Get("AssignVariableOp")
      .Kernel(kCuda, AssignHandleOnDevice,
              {.types = {{"dtype", plain}}, .attrs = {"validate_shape"}, .cheap = true});
  for (const OpRegistration* op : ops.All()) {
    const std::vector<KernelRegistration> kernels = op->kernels;
    if (std::any_of(kernels.begin(), kernels.end(),
                    [](const auto& k) { return k.device == kCuda; })) {
      continue;
    }
    for (const KernelRegistration& k : kernels) {
      if (k.options.memory != KernelMemory::kDevice) continue;
      KernelOptions options;
      options.types = k.options.types;
      if (UsesHostObjects(op->schema)) options.memory = kHostMemory;
      ops.Get(op->schema.name).AddKernel(kCuda, options, [op, &ops](KernelConstruction& c) {
        return std::make_unique<SimulatedKernel>(c, *op, ops);
      });
    }
  }
}

}  // namespace tenon::testing
