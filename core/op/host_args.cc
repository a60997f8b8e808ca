// SPDX-License-Identifier: Apache-2.0
#include "core/op/host_args.h"

namespace tenon {

StatusOr<std::vector<bool>> HostArgs(const std::vector<ArgSchema>& args,
                                     const AttributeMap& attrs) {
  std::vector<bool> on_host;
  for (const ArgSchema& arg : args) {
    TENON_ASSIGN_OR_RETURN(const DTypeVector types, ArgTypes({arg}, attrs));
    for (const DType type : types) {
      on_host.push_back(arg.on_host || IsRef(type) || !IsPlain(type));
    }
  }
  return on_host;
}

}  // namespace tenon
