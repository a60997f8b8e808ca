// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cfloat>
#include <cmath>

#include "core/base/hash_map.h"
#include "core/base/interruption.h"
#include "core/memory/counted_memory.h"
#include "core/op/op_registry.h"
#include "ops/summary/summary_values.h"
#include "proto/summary.pb.h"

namespace tenon {
namespace {

StatusOr<CountedVector<double>> ValuesOf(const Tensor& t) {
  CountedVector<double> values;
  values.reserve(t.num_elements());
  using Types = decltype(ConcatTypes(RealTypes(), TypeList<bool>()));
  const bool known = Dispatch(t.dtype(), Types(), [&]<typename T>(T) {
    for (const T& v : t.flat<T>()) values.push_back(static_cast<double>(v));
  });
  if (!known) return Unimplemented("no summary of ", t.dtype());
  return values;
}

/// The upper limits of TensorFlow's buckets: 0, and in both directions from 1e-12 by factors of 1.1
/// to 1e20 and then the largest double.
const std::vector<double>& BucketLimits() {
  static const auto* const limits = [] {
    std::vector<double> positive;
    for (double v = 1e-12; v < 1e20; v *= 1.1) positive.push_back(v);
    positive.push_back(DBL_MAX);
    auto* all = new std::vector<double>(positive.rbegin(), positive.rend());
    for (double& v : *all) v = -v;
    all->push_back(0);
    all->insert(all->end(), positive.begin(), positive.end());
    return all;
  }();
  return *limits;
}

/// A run of empty buckets is written as one, with the last limit of the run.
void EncodeBuckets(const std::vector<double>& counts, HistogramProto* proto) {
  const std::vector<double>& limits = BucketLimits();
  for (size_t i = 0; i < counts.size(); ++i) {
    const bool empty = counts[i] == 0;
    while (empty && i + 1 < counts.size() && counts[i + 1] == 0) ++i;
    proto->add_bucket_limit(limits[i]);
    proto->add_bucket(counts[i]);
  }
}

Status ScalarKernel(KernelContext& ctx) {
  Summary summary;
  TENON_RETURN_IF_ERROR(AddScalars(ctx.input(0), ctx.input(1), &summary));
  return ctx.Return(Tensor::Scalar(summary.SerializeAsString()));
}

Status HistogramKernel(KernelContext& ctx, const Tensor& tag, const NodeName& node) {
  if (tag.rank() != 0) return InvalidArgument("tags must be scalar, found shape ", tag.shape());
  Summary summary;
  TENON_RETURN_IF_ERROR(AddHistogram(tag.scalar<TString>(), ctx.input(1), node.value, &summary));
  return ctx.Return(Tensor::Scalar(summary.SerializeAsString()));
}

Status MergeSummariesKernel(KernelContext& ctx) {
  Summary merged;
  StringSet tags;
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    for (const TString& text : ctx.input(i).flat<TString>()) {
      Summary part;
      if (!part.ParseFromArray(text.data(), static_cast<int>(text.size()))) {
        return InvalidArgument("Could not parse one of the summary inputs");
      }
      for (Summary::Value& value : *part.mutable_value()) {
        if (!tags.insert(value.tag()).second) {
          return InvalidArgument("Duplicate tag ", value.tag(), " found in summary inputs ");
        }
        *merged.add_value() = std::move(value);
      }
    }
  }
  return ctx.Return(Tensor::Scalar(merged.SerializeAsString()));
}

}  // namespace

Status AddScalars(const Tensor& tags, const Tensor& values, Summary* summary) {
  if (tags.shape() != values.shape()) {
    return InvalidArgument(
        "tags and values are not the same shape: ", tags.shape(), " != ", values.shape(),
        tags.num_elements() == 1 ? StrCat(" (tag '", tags.scalar<TString>(), "')") : "");
  }
  TENON_ASSIGN_OR_RETURN(const CountedVector<double> numbers, ValuesOf(values));
  for (size_t i = 0; i < numbers.size(); ++i) {
    Summary::Value* value = summary->add_value();
    value->set_tag(std::string(tags.data<TString>()[i]));
    value->set_simple_value(static_cast<float>(numbers[i]));
  }
  return OkStatus();
}

Status AddHistogram(std::string_view tag, const Tensor& tensor, std::string_view owner,
                    Summary* summary) {
  TENON_ASSIGN_OR_RETURN(const CountedVector<double> values, ValuesOf(tensor));
  const std::vector<double>& limits = BucketLimits();
  std::vector<double> counts(limits.size(), 0);
  Summary::Value* value = summary->add_value();
  value->set_tag(std::string(tag));
  HistogramProto* histo = value->mutable_histo();
  double low = DBL_MAX, high = -DBL_MAX, sum = 0, squares = 0;
  for (const double v : values) {
    if (Interrupted()) return OkStatus();
    if (std::isnan(v)) return InvalidArgument("Nan in summary histogram for: ", owner);
    if (std::isinf(v)) return InvalidArgument("Infinity in summary histogram for: ", owner);
    const auto above = std::upper_bound(limits.begin(), limits.end() - 1, v);
    counts[above - limits.begin()] += 1;
    low = std::min(low, v);
    high = std::max(high, v);
    sum += v;
    squares += v * v;
  }
  histo->set_min(low);
  histo->set_max(high);
  histo->set_num(static_cast<double>(values.size()));
  histo->set_sum(sum);
  histo->set_sum_squares(squares);
  EncodeBuckets(counts, histo);
  return OkStatus();
}

void RegisterSummaryKernels(OpRegistry& ops) {
  ops.Add("ScalarSummary", ScalarShape, ScalarKernel)
      .Example({Tensor::Scalar("loss"), Tensor::Scalar(0.5f)});
  ops.Add("HistogramSummary", ScalarShape, HistogramKernel)
      .Example({Tensor::Scalar("weights"), Shape{2, 3}});
  ops.Add("MergeSummary", ScalarShape, MergeSummariesKernel)
      .Example({Tensor::Scalar(""), Tensor::Scalar("")}, {{"N", 2}});
}

}  // namespace tenon
