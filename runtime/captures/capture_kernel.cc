// SPDX-License-Identifier: Apache-2.0
#include "runtime/captures/capture_kernel.h"

#include <algorithm>

#include "core/base/exceptions.h"
#include "core/base/interruption.h"
#include "core/device/device_queue.h"
#include "core/graph/graph.h"
#include "core/tensor/resource_store.h"

namespace tenon {
namespace {

/// So many bytes of values in host memory, which a capture depends on, are compared at most.
constexpr size_t kMostHostBytes = 4096;

/// A variable that members use, as it was when the run began.
struct UsedVariable {
  VariableResource* resource = nullptr;
  std::shared_ptr<VariableResource> owner;  // of one that a handle names
  bool changes = false;
  const void* data = nullptr;
  Shape shape;

  bool IsAs(const Tensor& value) const {
    return value.raw_data() == data && value.shape() == shape;
  }
};

/// The device under which kernels are captured, for a session that has the real one under a name
/// and with resources of its own.
class CaptureDevice final : public Device {
 public:
  CaptureDevice(Device& session, Device& capture) : session_(session), capture_(capture) {}
  const std::string& name() const override { return session_.name(); }
  DeviceKind kind() const override { return session_.kind(); }
  uint64_t incarnation() const override { return session_.incarnation(); }
  int64_t memory_limit() const override { return session_.memory_limit(); }
  Allocator& allocator() override { return capture_.allocator(); }
  DeviceQueue* queue() override { return capture_.queue(); }
  Device& host() override { return session_.host(); }
  ResourceStore& resources() override { return session_.resources(); }
  const FileAccess& files() const override { return session_.files(); }

 private:
  Device& session_;
  Device& capture_;
};

template <typename T>
void Append(std::string* key, const T& value) {
  key->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void AppendShape(std::string* key, const Tensor& t) {
  Append(key, t.dtype());
  Append(key, t.rank());
  for (const int64_t dim : t.shape().dims()) Append(key, dim);
}

/// One run of the kernels that are captured together.
class CaptureRun {
 public:
  CaptureRun(const CapturePlan& plan, KernelContext& ctx)
      : plan_(plan), ctx_(ctx), values_(plan.num_values) {}

  /// Takes what comes in, constants and variables.
  Status Start();
  /// All that a capture of this run would depend on; false when the run cannot be captured.
  bool MakeKey(std::string* key);
  /// Runs the members.
  Status RunEach();
  /// Captures the members, which does nothing else; null when that cannot be done.
  std::shared_ptr<CachedCapture> Capture() const;
  /// False, and nothing is done, when something is in use.
  bool Repeat(CachedCapture& capture, const std::shared_ptr<void>& use);

 private:
  enum class Mode { kQueue, kCapture };
  Status RunMembers(const DeviceRun& run, std::vector<Value>& values, Mode mode) const;
  Status RunMember(const DeviceRun& run, const CaptureMember& member, std::vector<Value>& values,
                   Mode mode) const;
  void FindVariables();
  bool VariablesHaveStayed() const;
  bool QueueUnshared(size_t next, CachedCapture& capture, const std::shared_ptr<void>& use);
  void CopyInputs(const CachedCapture& capture) const;

  const CapturePlan& plan_;
  KernelContext& ctx_;
  std::vector<Value> values_;
  std::vector<UsedVariable> variables_;  // by their addresses
  bool has_other_resources_ = false;
};

Status CaptureRun::Start() {
  for (int i = 0; i < plan_.num_inputs; ++i) values_[i].tensor = ctx_.input(i);
  for (const CapturePlan::Constant& c : plan_.constants) {
    values_[c.value].tensor = *c.kernel->constant();
  }
  for (const CapturePlan::Variable& v : plan_.variables) {
    if (v.kernel == nullptr) continue;
    static const DTypeVector kRef = {};
    KernelContext context(ctx_.device_run(), kRef, nullptr, 0, &values_[v.value]);
    const Status status = v.kernel->Compute(context);
    if (!status.ok()) {
      return AnnotateWithNode(status, v.kernel->name(), v.kernel->op(), ctx_.device().name());
    }
  }
  return OkStatus();
}

void CaptureRun::FindVariables() {
  for (const CapturePlan::Variable& v : plan_.variables) {
    UsedVariable used;
    used.resource = values_[v.value].ref;
    used.changes = v.changes;
    if (used.resource == nullptr) {
      const auto& handle = values_[v.value].tensor.scalar<ResourceHandle>();
      auto found = ctx_.resources().Lookup<VariableResource>(handle.container, handle.name);
      if (!found.ok()) {  // a member says so
        has_other_resources_ = true;
        continue;
      }
      used.owner = *std::move(found);
      used.resource = used.owner.get();
    }
    const auto same =
        std::find_if(variables_.begin(), variables_.end(),
                     [&](const UsedVariable& u) { return u.resource == used.resource; });
    if (same == variables_.end()) {
      variables_.push_back(std::move(used));
    } else {
      same->changes |= used.changes;
    }
  }
  // The order in which everybody locks who locks several variables.
  std::sort(variables_.begin(), variables_.end(), [](const UsedVariable& a, const UsedVariable& b) {
    return std::less<>()(a.resource, b.resource);
  });
}

bool CaptureRun::MakeKey(std::string* key) {
  FindVariables();
  if (has_other_resources_) return false;
  size_t host_bytes = 0;
  Append(key, ctx_.device().queue()->FailureOf(ctx_.device_run().id) != nullptr);
  for (int i = 0; i < plan_.num_inputs; ++i) {
    const Tensor& t = values_[i].tensor;
    // A capture takes its inputs at its beginning; this one may show updates by its members.
    if (t.follows()) return false;
    AppendShape(key, t);
    if (!t.IsHostMemory()) continue;
    if (!IsPlain(t.dtype()) || (host_bytes += t.num_bytes()) > kMostHostBytes) return false;
    key->append(static_cast<const char*>(t.raw_data()), t.num_bytes());
  }
  for (UsedVariable& v : variables_) {
    const Tensor value = v.resource->Read();
    if (!value.valid() || value.IsHostMemory()) return false;
    v.data = value.raw_data();
    v.shape = value.shape();
    Append(key, v.resource);
    Append(key, v.data);
    AppendShape(key, value);
  }
  return true;
}

Status CaptureRun::RunMembers(const DeviceRun& run, std::vector<Value>& values, Mode mode) const {
  for (const CaptureMember& member : plan_.members) {
    if (Interrupted()) return Cancelled("the step has been cancelled");
    const Status status = CatchExceptions([&] { return RunMember(run, member, values, mode); });
    if (!status.ok()) {
      return AnnotateWithNode(status, member.kernel->name(), member.kernel->op(),
                              ctx_.device().name());
    }
  }
  return OkStatus();
}

Status CaptureRun::RunMember(const DeviceRun& run, const CaptureMember& member,
                             std::vector<Value>& values, Mode mode) const {
  absl::InlinedVector<Value, 8> inputs(member.inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const CaptureMember::Input& from = member.inputs[i];
    Value& value = values[from.value];
    if (from.reads_ref && value.ref != nullptr) {
      inputs[i].tensor = value.ref->Read();
      if (!inputs[i].tensor.valid()) {
        return FailedPrecondition("Attempting to use uninitialized value ", from.name);
      }
    } else if (from.last) {
      inputs[i] = std::move(value);
    } else {
      inputs[i] = value;
    }
    inputs[i].tensor.Renew();
  }
  Value* const outputs = values.data() + member.first_output;
  KernelContext context(run, member.output_types, inputs.data(), static_cast<int>(inputs.size()),
                        outputs);
  TENON_RETURN_IF_ERROR(member.kernel->Compute(context));
  inputs.clear();
  for (int i = 0; i < context.num_outputs(); ++i) {
    if (!outputs[i].live()) return Internal("the kernel left output ", i, " without a value");
    Tensor& t = outputs[i].tensor;
    const bool leaves = plan_.is_output[member.first_output + i];
    // An output is to be the capture's alone, so that it shows when others still read it.
    if (mode != Mode::kCapture || !leaves || t.IsHostMemory() || t.HasOneReference()) continue;
    TENON_ASSIGN_OR_RETURN(Tensor copy,
                           Tensor::Allocate(run.device.allocator(), t.dtype(), t.shape()));
    run.device.allocator().Copy(copy.raw_data(), t.raw_data(), t.num_bytes());
    t = std::move(copy);
  }
  return OkStatus();
}

Status CaptureRun::RunEach() {
  for (int i = 0; i < plan_.num_inputs; ++i) ctx_.TakeInput(i);
  TENON_RETURN_IF_ERROR(RunMembers(ctx_.device_run(), values_, Mode::kQueue));
  for (size_t i = 0; i < plan_.outputs.size(); ++i) {
    ctx_.set_output(static_cast<int>(i), std::move(values_[plan_.outputs[i]].tensor));
  }
  return OkStatus();
}

/// The copies are queued behind all that the capture did before.
void CaptureRun::CopyInputs(const CachedCapture& capture) const {
  for (size_t i = 0; i < capture.inputs.size(); ++i) {
    const Tensor& to = capture.inputs[i];
    if (!to.valid()) continue;
    const Tensor& from = values_[i].tensor;
    ctx_.device().allocator().Copy(const_cast<void*>(to.raw_data()), from.raw_data(),
                                   from.num_bytes());
  }
}

bool CaptureRun::VariablesHaveStayed() const {
  return std::all_of(variables_.begin(), variables_.end(),
                     [](const UsedVariable& v) { return v.resource->Read().raw_data() == v.data; });
}

std::shared_ptr<CachedCapture> CaptureRun::Capture() const {
  auto work = ctx_.device().queue()->Capture(ctx_.device_run().id);
  if (!work.ok()) return nullptr;
  auto capture = std::make_shared<CachedCapture>();
  capture->work = *std::move(work);
  // The run's own rendezvous and resources are not there when the capture is repeated.
  const ProgramRun run;
  CaptureDevice device(ctx_.device(), capture->work->device());
  const DeviceRun on_device{run, device, ctx_.device_run().id};
  std::vector<Value> values = values_;
  Status status;
  for (int i = 0; i < plan_.num_inputs && status.ok(); ++i) {
    Tensor& place = capture->inputs.emplace_back();
    const Tensor& t = values[i].tensor;
    if (t.IsHostMemory()) continue;
    auto allocated = Tensor::Allocate(device.allocator(), t.dtype(), t.shape());
    status = allocated.status();
    if (status.ok()) values[i].tensor = place = *std::move(allocated);
  }
  // Memory that others give back meanwhile is nobody's until the end: where a variable is now and
  // will be then, it has been all the time.
  bool stayed = VariablesHaveStayed();
  if (status.ok() && stayed) status = RunMembers(on_device, values, Mode::kCapture);
  for (const int output : plan_.outputs) {
    capture->outputs.push_back(std::move(values[output].tensor));
  }
  values.clear();
  stayed = stayed && VariablesHaveStayed();
  status.Update(capture->work->Finish());
  return status.ok() && stayed ? std::move(capture) : nullptr;
}

bool CaptureRun::Repeat(CachedCapture& capture, const std::shared_ptr<void>& use) {
  for (const Tensor& t : capture.outputs) {
    if (!t.IsHostMemory() && !t.HasOneReference()) return false;
  }
  return QueueUnshared(0, capture, use);
}

/// The capture is queued under the locks of the variables that it changes, so that nobody reads
/// them meanwhile: a reader would see them change.
bool CaptureRun::QueueUnshared(size_t next, CachedCapture& capture,
                               const std::shared_ptr<void>& use) {
  if (next == variables_.size()) {
    CopyInputs(capture);
    capture.lost = !capture.work->Queue(ctx_.device_run().id, use);
    if (capture.lost) return false;
    for (size_t i = 0; i < capture.outputs.size(); ++i) {
      ctx_.set_output(static_cast<int>(i), capture.outputs[i]);
    }
    return true;
  }
  const UsedVariable& v = variables_[next];
  if (!v.changes) {
    const Tensor value = v.resource->Read();  // kept until all is queued
    return v.IsAs(value) && QueueUnshared(next + 1, capture, use);
  }
  bool queued = false;
  const Status status = v.resource->Modify([&](const Tensor& now, const Tensor* then) {
    queued = v.IsAs(now) && v.IsAs(*then) && QueueUnshared(next + 1, capture, use);
    return queued ? OkStatus() : Aborted("in use");
  });
  return queued;
}

}  // namespace

Status CaptureKernel::Compute(KernelContext& ctx) const {
  CaptureRun run(plan_, ctx);
  TENON_RETURN_IF_ERROR(run.Start());
  std::string key;
  if (!run.MakeKey(&key)) return run.RunEach();
  CaptureCache::Choice choice = captures_.Choose(key);
  if (choice.action == CaptureCache::Action::kCapture) {
    choice = captures_.Keep(key, run.Capture());
  }
  if (choice.action == CaptureCache::Action::kRepeat) {
    if (run.Repeat(*choice.capture, choice.use)) return OkStatus();
    if (choice.capture->lost) captures_.Drop(key);
  }
  return run.RunEach();
}

}  // namespace tenon
