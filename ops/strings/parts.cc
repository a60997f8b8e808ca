// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bitset>

#include "absl/strings/ascii.h"
#include "core/base/interruption.h"
#include "core/memory/counted_memory.h"
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/broadcast.h"
#include "ops/math/reduction.h"

namespace tenon {
namespace {

using Parts = std::vector<std::string_view>;

/// The parts between characters of `delimiters`; every byte when there are none.
void SplitAtAny(std::string_view text, std::string_view delimiters, bool skip_empty, Parts* parts) {
  if (text.empty()) return;
  if (delimiters.empty()) {
    for (size_t i = 0; i < text.size(); ++i) parts->push_back(text.substr(i, 1));
    return;
  }
  // The library looks at every character by a search among the delimiters.
  std::bitset<256> ends;
  for (const char c : delimiters) ends.set(static_cast<unsigned char>(c));
  const auto next_end = [&](size_t i) {
    if (delimiters.size() == 1) return std::min(text.find(delimiters[0], i), text.size());
    while (i < text.size() && !ends[static_cast<unsigned char>(text[i])]) ++i;
    return i;
  };
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = next_end(begin);
    if (end > begin || !skip_empty) parts->push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
}

/// The parts between separators, or between runs of white space when that is empty: at most `most`
/// splits from the start, unless that is negative.
void SplitAt(std::string_view text, std::string_view separator, int64_t most, Parts* parts) {
  const auto is_space = [](char c) { return absl::ascii_isspace(c); };
  const auto skip_space = [&] {
    text.remove_prefix(std::find_if_not(text.begin(), text.end(), is_space) - text.begin());
  };
  if (separator.empty() && most != 0) skip_space();
  for (int64_t splits = 0; most < 0 || splits < most; ++splits) {
    if (separator.empty()) {
      if (text.empty()) return;
      const size_t end = std::find_if(text.begin(), text.end(), is_space) - text.begin();
      parts->push_back(text.substr(0, end));
      text.remove_prefix(end);
      skip_space();
    } else {
      const size_t end = text.find(separator);
      if (end == std::string_view::npos) break;
      parts->push_back(text.substr(0, end));
      text.remove_prefix(end + separator.size());
    }
  }
  parts->push_back(text);
}

/// Makes a sparse matrix of the parts that `split(text, parts)` finds of each text of input 0.
template <typename Split>
Status SplitTexts(KernelContext& ctx, Split split) {
  const Tensor& in = ctx.input(0);
  TENON_RETURN_IF_ERROR(CheckRank(in, 1, "input"));
  CountedVector<std::string_view> values;
  CountedVector<int64_t> indices;
  int64_t columns = 0;
  Parts parts;
  for (int64_t i = 0; i < in.num_elements() && !Interrupted(); ++i) {
    parts.clear();
    split(std::string_view(in.data<TString>()[i]), &parts);
    values.insert(values.end(), parts.begin(), parts.end());
    const auto count = static_cast<int64_t>(parts.size());
    for (int64_t k = 0; k < count; ++k) indices.insert(indices.end(), {i, k});
    columns = std::max(columns, count);
  }
  const auto count = static_cast<int64_t>(values.size());
  TENON_ASSIGN_OR_RETURN(Tensor * places, ctx.AllocateOutput(0, {count, 2}));
  std::copy(indices.begin(), indices.end(), places->data<int64_t>());
  TENON_ASSIGN_OR_RETURN(Tensor * texts, ctx.AllocateOutput(1, {count}));
  for (int64_t i = 0; i < count; ++i) texts->data<TString>()[i] = TString(values[i]);
  ctx.set_output(2, Tensor::Vector<int64_t>({in.num_elements(), columns}));
  return OkStatus();
}

Status SplitKernel(KernelContext& ctx, bool skip_empty) {
  const std::string_view delimiters = ctx.input(1).scalar<TString>();
  return SplitTexts(ctx, [&](std::string_view text, Parts* parts) {
    SplitAtAny(text, delimiters, skip_empty, parts);
  });
}

Status SplitV2Kernel(KernelContext& ctx, int64_t maxsplit) {
  const std::string_view separator = ctx.input(1).scalar<TString>();
  return SplitTexts(
      ctx, [&](std::string_view text, Parts* parts) { SplitAt(text, separator, maxsplit, parts); });
}

/// Where unit number `n` of the text begins: a byte, or a character of valid UTF-8.
size_t UnitPlace(std::string_view text, int64_t n, bool characters) {
  if (!characters) return std::min<int64_t>(n, static_cast<int64_t>(text.size()));
  size_t i = 0;
  for (; n > 0 && i < text.size(); --n) {
    do ++i;
    while (i < text.size() && (static_cast<unsigned char>(text[i]) & 0xC0) == 0x80);
  }
  return i;
}

Status SubstrKernel(KernelContext& ctx, const std::string& unit) {
  const Tensor &in = ctx.input(0), &pos = ctx.input(1), &len = ctx.input(2);
  if (pos.shape() != len.shape()) {
    return InvalidArgument("pos and len should have the same shape, got: ", pos.shape(), " vs. ",
                           len.shape());
  }
  const bool characters = unit != "BYTE";
  TENON_ASSIGN_OR_RETURN(const IndexVector begins, ReadIndices(pos, "pos"));
  TENON_ASSIGN_OR_RETURN(const IndexVector lengths, ReadIndices(len, "len"));
  TENON_ASSIGN_OR_RETURN(const BroadcastPlan plan, PlanBroadcast({&in.shape(), &pos.shape()}));
  if (plan.shape.rank() > 2 && in.shape() != pos.shape() && pos.rank() > 0) {
    // What TensorFlow refuses too; its users' programs may rely on that.
    return Unimplemented("Substr broadcast not implemented for ", plan.shape.rank(),
                         " dimensions: the input has shape ", in.shape(), ", pos ", pos.shape());
  }
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, plan.shape));
  Mutex mu;
  Status status;
  ForEachRun(plan, 50, [&](const int64_t* from, int64_t begin, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      const std::string_view text = in.data<TString>()[from[0] + i * plan.inner().strides[0]];
      const int64_t at = from[1] + i * plan.inner().strides[1];
      const auto bytes = static_cast<int64_t>(text.size());
      const int64_t size = characters ? std::count_if(text.begin(), text.end(),
                                                      [](char c) { return (c & '\xC0') != '\x80'; })
                                      : bytes;
      const int64_t first = begins[at] < 0 ? begins[at] + size : begins[at];
      if (first < 0 || first > size || lengths[at] < 0) {
        MutexLock lock(mu);
        status = InvalidArgument("pos ", begins[at], " and len ", lengths[at],
                                 " are out of range for a string of length ", size);
        return;
      }
      const size_t start = UnitPlace(text, first, characters);
      const size_t count = UnitPlace(text.substr(start), lengths[at], characters);
      out->data<TString>()[begin + i] = TString(text.substr(start, count));
    }
  });
  return status;
}

Status ReduceJoinKernel(KernelContext& ctx, bool keep_dims, const std::string& separator) {
  const Tensor& in = ctx.input(0);
  TENON_RETURN_IF_ERROR(CheckRank(ctx.input(1), std::min(ctx.input(1).rank(), 1), "axes"));
  TENON_ASSIGN_OR_RETURN(const DimVector axes, ReadIntegers(ctx.input(1), "reduction_indices"));
  std::vector<bool> seen(in.rank());
  for (const int64_t axis : axes) {
    if (axis < -in.rank() || axis >= in.rank()) {
      return OutOfRange("Invalid reduction dimension ", axis, " for input with ", in.rank(),
                        " dimension(s)");
    }
    const int64_t i = axis < 0 ? axis + in.rank() : axis;
    if (seen[i]) return InvalidArgument("Duplicate reduction dimension ", i);
    seen[i] = true;
  }
  TENON_ASSIGN_OR_RETURN(const AxisFlags reduced, ReducedAxes(ctx.input(1), in.rank()));
  const DimVector strides = StridesOf(in.shape().dims());
  DimVector dims;
  std::vector<ReductionPlan::Dim> kept, joined;
  for (int i = 0; i < in.rank(); ++i) {
    if (!reduced[i]) kept.push_back({in.dim(i), strides[i]});
    if (!reduced[i] || keep_dims) dims.push_back(reduced[i] ? 1 : in.dim(i));
  }
  int64_t count = 1;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    const int64_t i = *axis < 0 ? *axis + in.rank() : *axis;
    joined.push_back({in.dim(static_cast<int>(i)), strides[i]});
    TENON_ASSIGN_OR_RETURN(count, MultiplySizes(count, in.dim(static_cast<int>(i))));
  }
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, dims));
  if (in.num_elements() == 0) return OkStatus();  // texts are empty from the start
  OffsetWalk first(kept.data(), kept.size(), 0);
  for (int64_t k = 0; k < out->num_elements(); ++k, first.Next()) {
    TString& text = out->data<TString>()[k];
    OffsetWalk next(joined.data(), joined.size(), 0);
    for (int64_t i = 0; i < count; ++i, next.Next()) {
      if (i % kStepsBetweenLooks == 0 && Interrupted()) return OkStatus();
      if (i > 0) text += separator;
      text += in.data<TString>()[first.offset() + next.offset()];
    }
  }
  return OkStatus();
}

Status SubstrShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape places, c.input(1).MergeWith(c.input(2)));
  return c.Return(BroadcastShapes(c.input(0), places));
}

}  // namespace

void RegisterParts(OpRegistry& ops) {
  const Tensor texts = Tensor::Vector({"a b", "", "abc "});
  ops.Add("StringSplit", SplitKernel, {.attrs = {"skip_empty"}})
      .Example({texts, Tensor::Scalar(" ")});
  ops.Add("StringSplitV2", SplitV2Kernel, {.attrs = {"maxsplit"}})
      .Example({texts, Tensor::Scalar("")});
  ops.Add("Substr", SubstrShape, SubstrKernel, {.attrs = {"unit"}})
      .Example({texts, Tensor::Scalar(0), Tensor::Scalar(2)});
  ops.Add("ReduceJoin", ReductionShape, ReduceJoinKernel, {.attrs = {"keep_dims", "separator"}})
      .Example({Shape{2, 3}, Tensor::Vector({1})})
      .Example({Shape{2, 3}, Tensor::Vector({1, 0})}, {{"separator", ","}});
}

}  // namespace tenon
