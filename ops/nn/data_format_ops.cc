// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/maths.h"

namespace tenon {
namespace {

using IndexTypes = TypeList<int32_t, int64_t>;

/// Two orders of the same dimensions, by letters: NHWC and NCHW, or with D for depth.
struct Formats : KernelState {
  explicit Formats(KernelConstruction& c)
      : from(c.Attr<std::string>("src_format")), to(c.Attr<std::string>("dst_format")) {
    std::string a = from, b = to;
    std::sort(a.begin(), a.end());
    std::sort(b.begin(), b.end());
    const bool distinct = std::adjacent_find(a.begin(), a.end()) == a.end();
    if (a == b && distinct && (a.size() == 4 || a.size() == 5)) return;
    c.Fail(InvalidArgument("src_format '", from, "' and dst_format '", to,
                           "' must be the same 4 or 5 letters, each once"));
  }
  const std::string from, to;
};

/// For each number of a dimension in the source, counted from the end when negative, its number in
/// the destination.
Status DimMapKernel(KernelContext& ctx, const Tensor& x, const Formats& formats) {
  const int rank = static_cast<int>(formats.from.size());
  TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.AllocateOutput(0, x.shape()));
  return DispatchStatus(x.dtype(), IndexTypes(), [&]<typename T>(T) -> Status {
    for (int64_t i = 0; i < x.num_elements(); ++i) {
      TENON_ASSIGN_OR_RETURN(const int d, NormalizeAxis(x.data<T>()[i], rank, "a dimension"));
      y->data<T>()[i] = static_cast<T>(formats.to.find(formats.from[d]));
    }
    return OkStatus();
  });
}

/// The rows of a vector, or of a matrix of pairs, that has one for each dimension, or for each
/// spatial dimension, in the order of the destination.
Status VecPermuteKernel(KernelContext& ctx, const Tensor& x, const Formats& formats) {
  std::string from = formats.from, to = formats.to;
  const int64_t rank = static_cast<int64_t>(from.size());
  const int64_t rows = x.rank() > 0 ? x.dim(0) : 0;
  if (x.rank() < 1 || x.rank() > 2 || (x.rank() == 2 && x.dim(1) != 2) ||
      (rows != rank && rows != rank - 2)) {
    return InvalidArgument("x must be a vector or a matrix of 2 columns, with ", rank, " or ",
                           rank - 2, " rows, found shape ", x.shape());
  }
  if (rows != rank) {
    // The spatial dimensions alone.
    for (std::string* format : {&from, &to})
      std::erase_if(*format, [](char c) { return c == 'N' || c == 'C'; });
    if (static_cast<int64_t>(from.size()) != rows) {
      return InvalidArgument("the format '", formats.from, "' has not ", rows,
                             " spatial dimensions");
    }
  }
  const int64_t width = x.rank() == 2 ? 2 : 1;
  const Tensor in = x;
  TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.AllocateOutput(0, in.shape()));
  return DispatchStatus(in.dtype(), IndexTypes(), [&]<typename T>(T) {
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t source = static_cast<int64_t>(from.find(to[row]));
      std::copy_n(in.data<T>() + source * width, width, y->data<T>() + row * width);
    }
  });
}

}  // namespace

void RegisterDataFormatOps(OpRegistry& ops) {
  ops.Add("DataFormatDimMap", UnchangedShape, DimMapKernel).Example({Tensor::Vector({0, 3, -1})});
  ops.Add("DataFormatVecPermute", UnchangedShape, VecPermuteKernel)
      .Example({Tensor::Vector({1, 2, 3, 4})})
      .Example({Tensor::Of<int32_t>({2, 2}, {1, 2, 3, 4})});
}

}  // namespace tenon
