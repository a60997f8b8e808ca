// SPDX-License-Identifier: Apache-2.0
#include "core/gradients.h"
#include "ops/control_flow/control_flow_ops.h"
#include "ops/io/io_ops.h"

#include <atomic>
#include <cstdio>

#include "ops/summary/register.h"
#include "ops/summary/tensor_text.h"

namespace tenon {
namespace {

class AssertKernel final : public Kernel {
 public:
  explicit AssertKernel(KernelConstruction& c)
      : Kernel(c), summarize_(c.Attr<int64_t>("summarize")) {}
  Status Compute(KernelContext& ctx) const override {
    const Tensor& condition = ctx.input(0);
    if (condition.rank() != 0) {
      return InvalidArgument("In[0] should be a scalar: ", condition.shape().ToString());
    }
    if (condition.scalar<bool>()) return OkStatus();
    std::string message = "assertion failed:";
    for (int i = 1; i < ctx.num_inputs(); ++i) {
      StrAppend(&message, " [", SummarizeTensor(ctx.input(i), summarize_), "]");
    }
    return InvalidArgument(message);
  }
  bool is_expensive() const override { return false; }

 private:
  const int64_t summarize_;
};

class PrintKernel final : public Kernel {
 public:
  explicit PrintKernel(KernelConstruction& c)
      : Kernel(c),
        message_(c.Attr<std::string>("message")),
        first_n_(c.Attr<int64_t>("first_n")),
        summarize_(c.Attr<int64_t>("summarize")) {}
  Status Compute(KernelContext& ctx) const override {
    if (first_n_ < 0 || calls_.fetch_add(1, std::memory_order_relaxed) < first_n_) {
      std::string line = message_;
      for (int i = 1; i < ctx.num_inputs(); ++i) {
        StrAppend(&line, "[", SummarizeTensor(ctx.input(i), summarize_), "]");
      }
      line.push_back('\n');
      std::fwrite(line.data(), 1, line.size(), stderr);
    }
    ctx.set_output(0, ctx.TakeInput(0));
    return OkStatus();
  }

 private:
  const std::string message_;
  const int64_t first_n_;
  const int64_t summarize_;
  mutable std::atomic<int64_t> calls_{0};
};

class PrintV2Kernel final : public Kernel {
 public:
  explicit PrintV2Kernel(KernelConstruction& c) : Kernel(c), end_(c.Attr<std::string>("end")) {
    const std::string stream = c.Attr<std::string>("output_stream");
    if (stream == "stdout") {
      stream_ = stdout;
    } else if (stream != "stderr" && !stream.starts_with("log(")) {
      c.Fail(Unimplemented("cannot print to '", stream, "', only to stdout, stderr and log(...)"));
    }
  }
  Status Compute(KernelContext& ctx) const override {
    const Tensor& text = ctx.input(0);
    if (text.rank() != 0) {
      return InvalidArgument("Input is expected to be scalar, but got ", text.shape().ToString());
    }
    const std::string line = StrCat(text.scalar<TString>(), end_);
    std::fwrite(line.data(), 1, line.size(), stream_);
    std::fflush(stream_);
    return OkStatus();
  }

 private:
  const std::string end_;
  std::FILE* stream_ = stderr;
};

void PrintGrad(GradContext& g) { g.dx(0) = g.dy(0); }

Status PrintV2Shape(ShapeContext& c) { return c.WithRank(0, 0).status(); }
Status AssertShape(ShapeContext& c) { return c.WithRank(0, 0).status(); }

}  // namespace

void RegisterLoggingOps(OpRegistry& ops) {
  ops.Get("Assert")
      .Shape(AssertShape)
      .Kernel<AssertKernel>(kCpu, {.host_args = {"condition", "data"}})
      .NotDifferentiable()
      .Example({Tensor::Scalar(true), Tensor::Scalar("fine")},
               {{"T", DTypeVector{DType::kString}}});
  ops.Get("Print")
      .Shape(UnchangedShape)
      .Kernel<PrintKernel>(kCpu, {.host_args = {"input", "data", "output"}})
      .Grad(PrintGrad)
      .Example({Shape{2}, Tensor::Scalar("printed")},
               {{"U", DTypeVector{DType::kString}}, {"first_n", 0}});
  ops.Get("PrintV2")
      .Shape(PrintV2Shape)
      .Kernel<PrintV2Kernel>(kCpu, {.host_args = {"input"}})
      .Example({Tensor::Scalar("")}, {{"end", ""}});
}

}  // namespace tenon
