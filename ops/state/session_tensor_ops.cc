// SPDX-License-Identifier: Apache-2.0
#include <atomic>

#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/state/variables.h"

namespace tenon {
namespace {

/// A value that outlives its step, by a handle that names it.
class SessionTensor final : public Resource {
 public:
  static constexpr std::string_view kKind = "session_tensor", kContainer = "_session_tensors";

  explicit SessionTensor(Tensor value) : value_(std::move(value)) {}
  std::string_view kind() const override { return kKind; }
  int64_t num_bytes() const override { return static_cast<int64_t>(value_.num_bytes()); }
  const Tensor& value() const { return value_; }

 private:
  const Tensor value_;
};

Status GetHandleKernel(KernelContext& ctx, const Tensor& value, const NodeName& node) {
  static std::atomic<int64_t> made{0};
  // The name is one that TensorFlow's clients can take apart: name, number and device.
  const std::string name = StrCat(node.value, ";", made.fetch_add(1), ";", ctx.device().name());
  TENON_RETURN_IF_ERROR(ctx.resources().LookupOrCreate<SessionTensor>(
      SessionTensor::kContainer, name, [&] { return std::make_shared<SessionTensor>(value); }));
  if (ctx.output_type(0) == DType::kString) return ctx.Return(Tensor::Scalar(name));
  ResourceHandle handle;
  handle.device = ctx.device().name();
  handle.container = SessionTensor::kContainer;
  handle.name = name;
  handle.type_name = "SessionTensor";
  return ctx.Return(Tensor::Scalar(std::move(handle)));
}

Status GetTensorKernel(KernelContext& ctx) {
  const std::string_view name = ctx.input(0).scalar<TString>();
  const auto found = ctx.resources().Lookup<SessionTensor>(SessionTensor::kContainer, name);
  if (!found.ok()) {
    return InvalidArgument("The tensor with handle '", name, "' is not in the session store.");
  }
  const Tensor& value = (*found)->value();
  if (value.dtype() == ctx.output_type(0)) return ctx.Return(value);
  return InvalidArgument("the tensor with handle '", name, "' is ", value.dtype(), ", wanted ",
                         ctx.output_type(0));
}

Status DeleteTensorKernel(KernelContext& ctx) {
  const std::string_view name = ctx.input(0).scalar<TString>();
  if (ctx.resources().Delete(SessionTensor::kContainer, SessionTensor::kKind, name).ok()) {
    return OkStatus();
  }
  return InvalidArgument("Failed to delete a session tensor: no '", name, "' in the session store");
}

}  // namespace

void RegisterSessionTensorOps(OpRegistry& ops) {
  const auto add = [&](std::string_view name, ShapeFn shape, auto kernel) {
    ops.Add(name, shape, kernel).NoExample("needs a session; session_tensor_test covers it");
  };
  add("GetSessionHandle", ScalarShape, GetHandleKernel);
  add("GetSessionHandleV2", ScalarShape, GetHandleKernel);
  add("GetSessionTensor", UnknownShape, GetTensorKernel);
  add("DeleteSessionTensor", NoOutputShape, DeleteTensorKernel);
}

}  // namespace tenon
