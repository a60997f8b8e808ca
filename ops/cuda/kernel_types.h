// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include "core/op/op_registry.h"
#include "ops/cuda/device_kind.h"

namespace tenon::cuda {

/// The options under which a kernel for the GPU is registered: `options` without what the op leaves
/// to the host, its form in which all dtypes are int32 (see OpSchema::int32_on_host). What a form
/// has other dtypes for stays.
inline std::vector<KernelOptions> DeviceForms(const OpSchema& schema, KernelOptions options) {
  if (!schema.int32_on_host) return {std::move(options)};
  const auto without_int32 = [](DTypeVector types) {
    std::erase(types, DType::kInt32);
    return types;
  };
  std::vector<KernelOptions> forms;
  for (const AttrSchema& attr : schema.attrs) {
    if (attr.kind != "type") continue;
    KernelOptions form = options;
    DTypeVector* given = nullptr;
    for (auto& [name, types] : form.types) {
      if (name == attr.name) given = &types;
    }
    if (given != nullptr) {
      *given = without_int32(*given);
      if (given->empty()) continue;
    } else {
      DTypeVector types = without_int32(attr.allowed_types);
      if (types.empty()) continue;
      form.types.emplace_back(attr.name, std::move(types));
    }
    forms.push_back(std::move(form));
  }
  return forms;
}

/// Registers a function, whose parameters are as OpBuilder::Kernel has them, as the op's kernel for
/// the GPU. `options.types` names the dtypes that it does.
template <typename... Attrs>
void AddKernel(OpRegistry& ops, std::string_view name, Status (*compute)(KernelContext&, Attrs...),
               const KernelOptions& options) {
  OpBuilder op = ops.Get(name);
  for (const KernelOptions& form : DeviceForms(op.schema(), options)) {
    op.Kernel(kCuda, compute, form);
  }
}

/// What an error found on the device says of the node that it is of.
struct NodeIdentity : KernelState {
  explicit NodeIdentity(const KernelConstruction& c)
      : name(c.name()), op(c.op()), device(c.device().name()) {}
  const std::string name, op, device;
};

}  // namespace tenon::cuda
