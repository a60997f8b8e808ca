// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_split.h"
#include "core/op/op_registry.h"
#include "ops/summary/tensor_text.h"

namespace tenon {
namespace {

/// What stands between a node's inputs.
struct FormatParts : KernelState {
  explicit FormatParts(KernelConstruction& c) {
    const std::string text = c.Attr<std::string>("template");
    for (const auto part : absl::StrSplit(text, c.Attr<std::string>("placeholder"))) {
      parts.emplace_back(part);
    }
    if (parts.size() != c.input_types().size() + 1) {
      c.Fail(InvalidArgument("num placeholders in template and num inputs must match: ",
                             parts.size() - 1, " vs. ", c.input_types().size()));
    }
  }
  std::vector<std::string> parts;
};

Status FormatKernel(KernelContext& ctx, const FormatParts& node, int64_t summarize) {
  std::string text = node.parts[0];
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    StrAppend(&text, FormatTensor(ctx.input(i), summarize), node.parts[i + 1]);
  }
  return ctx.Return(Tensor::Scalar(std::move(text)));
}

}  // namespace

void RegisterFormatOps(OpRegistry& ops) {
  ops.Add("StringFormat", ScalarShape, FormatKernel, {.attrs = {"summarize"}})
      .Example({Shape{2, 7}, Tensor::Scalar("x")},
               {{"T", DTypeVector{DType::kFloat, DType::kString}}, {"template", "<%s, %s>"}});
}

}  // namespace tenon
