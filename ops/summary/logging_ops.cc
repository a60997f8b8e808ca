// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <chrono>
#include <cstdio>

#include "core/gradient/gradients.h"
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/io/files_for.h"
#include "ops/summary/tensor_text.h"

namespace tenon {
namespace {

Status AssertKernel(KernelContext& ctx, const Tensor& condition, int64_t summarize) {
  TENON_RETURN_IF_ERROR(CheckRank(condition, 0, "condition"));
  if (condition.scalar<bool>()) return OkStatus();
  std::string message = "assertion failed:";
  for (int i = 1; i < ctx.num_inputs(); ++i) {
    StrAppend(&message, " [", SummarizeTensor(ctx.input(i), summarize), "]");
  }
  return InvalidArgument(message);
}

struct CallCount : KernelState {
  mutable std::atomic<int64_t> calls{0};
};

Status PrintKernel(KernelContext& ctx, const CallCount& count, const std::string& message,
                   int64_t first_n, int64_t summarize) {
  if (first_n < 0 || count.calls.fetch_add(1, std::memory_order_relaxed) < first_n) {
    std::string line = message;
    for (int i = 1; i < ctx.num_inputs(); ++i) {
      StrAppend(&line, "[", SummarizeTensor(ctx.input(i), summarize), "]");
    }
    line.push_back('\n');
    std::fwrite(line.data(), 1, line.size(), stderr);
  }
  return ctx.Return(ctx.TakeInput(0));
}

/// Where a node's attribute sends texts: to a stream of the process, or to the end of a file.
struct PrintStream : KernelState {
  explicit PrintStream(KernelConstruction& c) {
    const std::string stream = c.Attr<std::string>("output_stream");
    if (stream == "stdout") {
      file = stdout;
    } else if (stream.starts_with("file://")) {
      path = stream;
    } else if (stream != "stderr" && !stream.starts_with("log(")) {
      c.Fail(InvalidArgument("Unknown output stream: ", stream,
                             "; wanted stdout, stderr, log(...) or file://PATH"));
    }
  }
  std::string path;
  std::FILE* file = stderr;
};

Status PrintV2Kernel(KernelContext& ctx, const PrintStream& stream, const std::string& end) {
  const Tensor& text = ctx.input(0);
  TENON_RETURN_IF_ERROR(CheckRank(text, 0, "input"));
  const std::string line = StrCat(text.scalar<TString>(), end);
  if (!stream.path.empty()) {
    TENON_ASSIGN_OR_RETURN(const FileContext files, FilesFor(ctx));
    TENON_ASSIGN_OR_RETURN(const auto file, OpenOutput(stream.path, WriteMode::kAppend, files));
    TENON_RETURN_IF_ERROR(file->Append(line));
    return file->Close();
  }
  std::fwrite(line.data(), 1, line.size(), stream.file);
  std::fflush(stream.file);
  return OkStatus();
}

Status TimestampKernel(KernelContext& ctx) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return ctx.Return(Tensor::Scalar(std::chrono::duration<double>(now).count()));
}

Status ScalarInputShape(ShapeContext& c) { return c.WithRank(0, 0).status(); }

}  // namespace

void RegisterLoggingOps(OpRegistry& ops) {
  ops.Add("Assert", ScalarInputShape, AssertKernel,
          {.attrs = {"summarize"}, .cheap = true, .memory = kHostMemory})
      .Example({Tensor::Scalar(true), Tensor::Scalar("fine")},
               {{"T", DTypeVector{DType::kString}}});
  ops.Add("Print", UnchangedShape, PrintKernel, {.attrs = {"message", "first_n", "summarize"}})
      .Grad([](GradContext& g) { g.dx(0) = g.dy(0); })
      .Example({Shape{2}, Tensor::Scalar("printed")},
               {{"U", DTypeVector{DType::kString}}, {"first_n", 0}});
  ops.Add("PrintV2", ScalarInputShape, PrintV2Kernel, {.attrs = {"end"}})
      .Example({Tensor::Scalar("")}, {{"end", ""}});
  ops.Add("Timestamp", ScalarShape, TimestampKernel).Example({});
}

}  // namespace tenon
