// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "core/base/cancellation.h"
#include "core/base/status.h"
#include "core/tensor/attribute.h"
#include "core/tensor/dtype.h"
#include "core/tensor/tensor.h"

namespace tenon {

struct FunctionDefinition;

/// A function that is ready to run, with kernels of its own: what is stateful in its body (a random
/// generator) goes on from call to call. Thread-safe; any number of calls may run at once, and none
/// sees the tensors that another one sends between its devices. It may outlive the session whose
/// function it is, whose end cancels the calls: later ones are Cancelled.
class RunnableFunction {
 public:
  using Done = std::function<void(const Status&, std::vector<Tensor> results)>;

  virtual ~RunnableFunction() = default;
  virtual const DTypeVector& result_types() const = 0;

  /// Calls it and waits; the calling thread works on it. InvalidArgument for arguments of other
  /// dtypes. `cancellation` ends the call; it may be null.
  virtual Status Run(std::vector<Tensor> arguments, Cancellation* cancellation,
                     std::vector<Tensor>* results) const = 0;
  /// Starts a call, with little work on the calling thread where there are others; `done` is called
  /// once, perhaps before this returns, and must not block. `cancellation` must live until then.
  virtual void RunAsync(std::vector<Tensor> arguments, Cancellation* cancellation,
                        Done done) const = 0;
};

/// Makes functions of a graph's library ready to run, for the kernels that call them step after
/// step or between steps, such as those of datasets. (Other calls are gone when a graph is run:
/// their bodies stand in their place.) Thread-safe; kernels may keep it.
class FunctionRuntime {
 public:
  virtual ~FunctionRuntime() = default;
  /// InvalidArgument when the library has no such function; the errors of its body name it. `last`
  /// are its last arguments, as far as they are known: those that are bound are constants of the
  /// body, so that a RemoteCall in it may have one as its target. Each call must be given the same.
  virtual StatusOr<std::shared_ptr<const RunnableFunction>> Instantiate(
      const FunctionName& function, const std::vector<Tensor>& last = {}) = 0;
  /// The function, or null. It lives as long as this.
  virtual const FunctionDefinition* Find(std::string_view name) const = 0;
  /// Whether `argument` is bound: one text.
  static bool IsBound(const Tensor& argument) {
    return argument.dtype() == DType::kString && argument.rank() == 0;
  }
};

}  // namespace tenon
