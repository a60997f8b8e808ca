// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/elements.h"
#include "ops/fingerprint.h"
#include "ops/ragged/splits.h"

namespace tenon {
namespace {

/// How the n-grams of a node are made.
struct NGrams : KernelState {
  explicit NGrams(KernelConstruction& c)
      : separator(c.Attr<std::string>("separator")),
        left(c.Attr<std::string>("left_pad")),
        right(c.Attr<std::string>("right_pad")),
        widths(c.Attr<std::vector<int64_t>>("ngram_widths")),
        pads(c.Attr<int64_t>("pad_width")),
        keep_short(c.Attr<bool>("preserve_short_sequences")) {
    for (const int64_t width : widths) {
      if (width < 1) c.Fail(InvalidArgument("ngram_widths must be positive, found ", width));
    }
  }

  int64_t PadsOf(int64_t width) const { return pads < 0 ? width - 1 : std::min(pads, width - 1); }
  /// How many n-grams a row of `words` has.
  StatusOr<int64_t> CountOf(int64_t words, int64_t width) const {
    TENON_ASSIGN_OR_RETURN(const int64_t both, MultiplySizes(2, PadsOf(width)));
    TENON_ASSIGN_OR_RETURN(const int64_t all, AddSizes(words, both));
    return std::max<int64_t>(0, all - width + 1);
  }

  /// Words [first, first + width) of the row with its pads.
  TString Make(absl::Span<const TString> row, int64_t first, int64_t width, int64_t pad) const {
    TString text;
    for (int64_t i = first; i < first + width; ++i) {
      if (i % kStepsBetweenLooks == 0 && Interrupted()) break;
      if (i > first) text += separator;
      const int64_t word = i - pad;
      if (word < 0) {
        text += left;
      } else {
        text += word < static_cast<int64_t>(row.size()) ? std::string_view(row[word]) : right;
      }
    }
    return text;
  }

  std::string separator, left, right;
  std::vector<int64_t> widths;
  int64_t pads;
  bool keep_short;
};

Status NGramsKernel(KernelContext& ctx, const NGrams& grams) {
  const Tensor &data = ctx.input(0), &given = ctx.input(1);
  TENON_RETURN_IF_ERROR(CheckRank(data, 1, "data"));
  TENON_RETURN_IF_ERROR(CheckRank(given, 1, "data_splits"));
  IndexVector splits;
  if (given.num_elements() > 0) {
    TENON_ASSIGN_OR_RETURN(splits, ReadSplits(given));
    if (splits.front() != 0 || splits.back() != data.num_elements()) {
      return InvalidArgument("data_splits go from ", splits.front(), " to ", splits.back(),
                             ", wanted from 0 to ", data.num_elements());
    }
  }
  CountedVector<int64_t> counts(splits.size(), 0);
  for (size_t i = 1; i < splits.size(); ++i) {
    const int64_t words = splits[i] - splits[i - 1];
    int64_t count = 0;
    for (const int64_t width : grams.widths) {
      if (data.num_elements() == 0) break;  // then even pads make none
      TENON_ASSIGN_OR_RETURN(const int64_t more, grams.CountOf(words, width));
      TENON_ASSIGN_OR_RETURN(count, AddSizes(count, more));
    }
    if (grams.keep_short && words > 0 && count == 0) {
      if (grams.pads < 0)
        return InvalidArgument("pad_width is ", grams.pads, ", wanted at least 0");
      count = 1;
    }
    TENON_ASSIGN_OR_RETURN(counts[i], AddSizes(counts[i - 1], count));
  }
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, {counts.empty() ? 0 : counts.back()}));
  TString* to = out->data<TString>();
  for (size_t i = 1; i < splits.size(); ++i) {
    const auto row = data.flat<TString>().subspan(splits[i - 1], splits[i] - splits[i - 1]);
    const TString* const first = to;
    if (data.num_elements() == 0) break;
    for (const int64_t width : grams.widths) {
      const int64_t count = *grams.CountOf(static_cast<int64_t>(row.size()), width);
      for (int64_t k = 0; k < count && !Interrupted(); ++k) {
        *to++ = grams.Make(row, k, width, grams.PadsOf(width));
      }
    }
    if (Interrupted()) return OkStatus();
    if (to == first && counts[i] > counts[i - 1]) {
      TENON_ASSIGN_OR_RETURN(const int64_t both, MultiplySizes(2, grams.pads));
      TENON_ASSIGN_OR_RETURN(const int64_t all, AddSizes(both, static_cast<int64_t>(row.size())));
      *to++ = grams.Make(row, 0, all, grams.pads);
    }
  }
  if (counts.empty()) return ctx.AllocateOutput(1, {0}).status();
  return WriteSplits(ctx, 1, counts);
}

Status SegmentJoinKernel(KernelContext& ctx, const Tensor& in, const Tensor& ids, Integer count,
                         const std::string& separator) {
  if (count < 0) return InvalidArgument("num_segments is ", count.value, ", wanted at least 0");
  if (ids.rank() == 0) return InvalidArgument("segment_ids is a scalar, wanted at least a vector");
  TENON_RETURN_IF_ERROR(CheckPrefix(in, "inputs", ids, "segment_ids"));
  TENON_ASSIGN_OR_RETURN(const IndexVector segments, ReadIndices(ids, "segment_ids", count));
  DimVector dims = {count};
  const auto rest = in.shape().dims().subspan(ids.rank());
  dims.insert(dims.end(), rest.begin(), rest.end());
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, dims));
  const int64_t size = Product(rest);
  CountedVector<char> begun(size > 0 ? count : 0, 0);
  for (size_t k = 0; k < segments.size() && !Interrupted(); ++k) {
    if (size == 0) continue;
    for (int64_t i = 0; i < size; ++i) {
      TString& text = out->data<TString>()[segments[k] * size + i];
      if (begun[segments[k]]) text += separator;
      text += in.data<TString>()[static_cast<int64_t>(k) * size + i];
    }
    begun[segments[k]] = true;
  }
  return OkStatus();
}

Status SegmentJoinShape(ShapeContext& c) {
  if (!c.input(0).rank_known() || !c.input(1).rank_known()) return OkStatus();
  if (c.input(1).rank() > c.input(0).rank()) {
    return InvalidArgument("segment_ids has shape ", c.input(1), ", wanted the beginning of ",
                           c.input(0));
  }
  return c.Return(PartialShape{-1}.ConcatWith(c.input(0).Part(c.input(1).rank())));
}

Status FingerprintKernel(KernelContext& ctx, const Tensor& data) {
  if (ctx.input(1).scalar<TString>() != "farmhash64") {
    return InvalidArgument("Unsupported fingerprint method: ", ctx.input(1).scalar<TString>());
  }
  if (data.rank() == 0) return InvalidArgument("data is a scalar, wanted at least one dimension");
  const bool text = data.dtype() == DType::kString;
  if (!text && !IsPlain(data.dtype())) return InvalidArgument("no fingerprints of ", data.dtype());
  const int64_t rows = data.dim(0), size = Product(data.shape().dims(), 1, data.rank());
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, {rows, 8}));
  CountedVector<uint64_t> hashes(text ? size : 0);
  ZeroElements(out);
  for (int64_t r = 0; r < rows && !Interrupted(); ++r) {
    std::string_view bytes(ElementAt(data, r * size), text ? 0 : size * SizeOf(data.dtype()));
    if (text && size == 1) {
      bytes = data.data<TString>()[r];
    } else if (text) {
      for (int64_t i = 0; i < size; ++i)
        hashes[i] = Fingerprint64(data.data<TString>()[r * size + i]);
      bytes = {reinterpret_cast<const char*>(hashes.data()), hashes.size() * sizeof(uint64_t)};
    }
    const uint64_t hash = Fingerprint64(bytes);
    std::memcpy(out->data<uint8_t>() + r * 8, &hash, 8);
  }
  return OkStatus();
}

Status FingerprintShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape data, c.WithRankAtLeast(0, 1));
  return c.Return(PartialShape{data.dim(0), 8});
}

}  // namespace

void RegisterRowOps(OpRegistry& ops) {
  const Tensor texts = Tensor::Vector({"a", "b", "c"});
  ops.Add("StringNGrams", NGramsKernel)
      .Example({texts, Tensor::Vector<int64_t>({0, 2, 3})},
               {{"separator", " "},
                {"ngram_widths", std::vector<int64_t>{1, 2}},
                {"left_pad", "<"},
                {"right_pad", ">"},
                {"pad_width", -1},
                {"preserve_short_sequences", false}});
  ops.Add("UnsortedSegmentJoin", SegmentJoinShape, SegmentJoinKernel, {.attrs = {"separator"}})
      .Example({texts, Tensor::Vector<int64_t>({1, 0, 1}), Tensor::Scalar(3)});
  ops.Add("Fingerprint", FingerprintShape, FingerprintKernel)
      .Example({Shape{2, 3}, Tensor::Scalar("farmhash64")}, {{"T", DType::kFloat}})
      .Example({texts, Tensor::Scalar("farmhash64")});
}

}  // namespace tenon
