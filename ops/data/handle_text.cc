// SPDX-License-Identifier: Apache-2.0
#include "ops/data/handle_text.h"

#include "core/device/device.h"
#include "core/proto/proto_io_tensor.h"
#include "proto/resource_handle.pb.h"

namespace tenon {

StatusOr<std::string> HandleToText(const ResourceHandle& handle) {
  if (handle.resource != nullptr) {
    return InvalidArgument("'", std::string_view(handle.name),
                           "' ends with its last handle, and text would keep none");
  }
  ResourceHandleProto proto;
  ResourceHandleToProto(handle, &proto);
  return proto.SerializeAsString();
}

StatusOr<ResourceHandle> HandleOfText(const KernelContext& ctx, const TString& text) {
  ResourceHandleProto proto;
  if (!proto.ParseFromArray(text.data(), static_cast<int>(text.size()))) {
    return InvalidArgument("Could not parse string_handle as a valid ResourceHandle");
  }
  TENON_ASSIGN_OR_RETURN(ResourceHandle handle, ResourceHandleFromProto(proto));
  if (handle.device == ctx.device().name()) return handle;
  return InvalidArgument("Attempted create an iterator on device \"", ctx.device().name(),
                         "\" from handle defined on device \"", std::string_view(handle.device),
                         "\"");
}

}  // namespace tenon
