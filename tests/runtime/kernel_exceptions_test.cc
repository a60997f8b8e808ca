// SPDX-License-Identifier: Apache-2.0
//
// What the standard library throws inside a kernel is the node's error.
#include <gtest/gtest.h>

#include <new>
#include <stdexcept>

#include "core/base/parallel.h"
#include "ops/array/array_ops.h"
#include "ops/register.h"
#include "runtime/session/local_session.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using testing::IsError;

Status ThrowWhileComputing(KernelContext&) { throw std::bad_alloc(); }

Status ThrowInALoop(KernelContext&) {
  ParallelFor(64, 1e6, [](int64_t begin, int64_t end) {
    if (begin <= 40 && 40 < end) throw std::length_error("too long");
  });
  return OkStatus();
}

class ThrowWhileStarting final : public AsyncKernel {
 public:
  using AsyncKernel::AsyncKernel;
  void ComputeAsync(KernelContext&, Done) const override { throw std::bad_alloc(); }
};

class ThrowWhenMade final : public Kernel {
 public:
  explicit ThrowWhenMade(KernelConstruction& c) : Kernel(c) { throw std::bad_alloc(); }
  Status Compute(KernelContext&) const override { return OkStatus(); }
};

const OpRegistry& OpsThatThrow() {
  static const OpRegistry* const registry = [] {
    auto* ops = new OpRegistry;
    RegisterAllOps(*ops);
    ops->Declare(R"(
        op ThrowWhileComputing(x: float) -> y: float
        op ThrowInALoop(x: float) -> y: float
        op ThrowWhileStarting(x: float) -> y: float
        op ThrowWhenMade(x: float) -> y: float)",
                 "throw.ops");
    ops->Get("ThrowWhileComputing").Shape(UnchangedShape).Kernel(kCpu, ThrowWhileComputing);
    ops->Get("ThrowInALoop").Shape(UnchangedShape).Kernel(kCpu, ThrowInALoop);
    ops->Get("ThrowWhileStarting").Shape(UnchangedShape).Kernel<ThrowWhileStarting>(kCpu);
    ops->Get("ThrowWhenMade").Shape(UnchangedShape).Kernel<ThrowWhenMade>(kCpu);
    return ops;
  }();
  return *registry;
}

TEST(KernelExceptionsTest, AreTheErrorOfTheNode) {
  for (const std::string op :
       {"ThrowWhileComputing", "ThrowInALoop", "ThrowWhileStarting", "ThrowWhenMade"}) {
    for (const int threads : {1, 4}) {
      Graph graph(OpsThatThrow());
      GraphBuilding building(graph);
      const Output x = Placeholder(DType::kFloat, {}, {.name = "x"});
      NodeBuilder(op, "bad").Input(x).Finish();
      Identity(x, {.name = "good"});
      ASSERT_OK(graph.error());
      LocalSessionOptions options;
      options.threads = threads;
      auto session = MakeLocalSession(graph, options);
      ASSERT_OK(session);
      const Session::Feeds feeds = {{"x", Tensor::Scalar(1.0f)}};
      for (int i = 0; i < 3; ++i) {
        EXPECT_THAT((*session)->Run(feeds, {"bad"}),
                    IsError(StatusCode::kResourceExhausted, "node 'bad'"))
            << op;
        EXPECT_OK((*session)->Run(feeds, {"good"})) << op;
      }
    }
  }
}

}  // namespace
}  // namespace tenon
