// SPDX-License-Identifier: Apache-2.0
#include "runtime/argument_checks.h"

namespace tenon {

Status CheckArguments(const std::vector<Tensor>& args, const DTypeVector& types) {
  if (args.size() != types.size()) {
    return InvalidArgument("found ", args.size(), " arguments for a step, wanted ", types.size());
  }
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i] != DType::kInvalid && args[i].dtype() != types[i]) {
      return InvalidArgument("argument ", i, " of a step is ", ToString(args[i].dtype()),
                             ", wanted ", ToString(types[i]));
    }
  }
  return OkStatus();
}

Status CheckRetvals(const std::vector<Tensor>& retvals, const DTypeVector& types) {
  for (size_t i = 0; i < types.size(); ++i) {
    // Those of the step's other devices have no type.
    if (types[i] != DType::kInvalid && !retvals[i].valid()) {
      return InvalidArgument("Retval[", i, "] does not have value");
    }
  }
  return OkStatus();
}

}  // namespace tenon
