// SPDX-License-Identifier: Apache-2.0
#include "runtime/execute/argument_checks.h"

namespace tenon {

Status CheckArguments(const std::vector<Tensor>& args, const DTypeVector& types) {
  if (args.size() < types.size()) {
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
    // The fetches of the program's other plans have no type here.
    if (types[i] != DType::kInvalid && !retvals[i].valid()) {
      return InvalidArgument("Retval[", i, "] does not have value");
    }
  }
  return OkStatus();
}

Status NoValueOfRetval(int64_t index, std::string_view name, bool in_loop) {
  // MakeStepGraph has put it together of the node, the output and the fetch's number.
  constexpr std::string_view kPrefix = "_retval_";
  std::string fetch(name);
  if (name.starts_with(kPrefix)) {
    const std::string_view tensor = name.substr(kPrefix.size(), name.rfind('_') - kPrefix.size());
    const size_t output = tensor.rfind('_');
    fetch = tensor.substr(0, output);
    if (tensor.substr(output + 1) != "0") StrAppend(&fetch, ":", tensor.substr(output + 1));
  }
  return InvalidArgument("Retval[", index, "] does not have value: '", fetch,
                         in_loop ? "' is within a while loop, of which the results are fetched"
                                 : "' is on a branch that was not taken");
}

}  // namespace tenon
