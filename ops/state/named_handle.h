// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "core/op/kernel.h"
#include "core/tensor/resource.h"

namespace tenon {

/// The handle that an op with the attributes container and shared_name gives: of the kernel's
/// device, in the default container where none is given, and called as the node where there is no
/// shared name. `type_name` is that of the resource's class in TensorFlow, as its compiler spells
/// it.
inline ResourceHandle NamedHandle(KernelConstruction& c, std::string type_name) {
  ResourceHandle handle;
  handle.device = c.device().name();
  handle.container = c.Attr<std::string>("container");
  if (handle.container.empty()) handle.container = c.device().resources().default_container();
  handle.name = c.Attr<std::string>("shared_name");
  if (handle.name.empty()) handle.name = c.name();
  handle.type_name = std::move(type_name);
  return handle;
}

}  // namespace tenon
