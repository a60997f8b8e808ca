// SPDX-License-Identifier: Apache-2.0
#include "train/allreduce/distributed_optimizer.h"

#include <map>
#include <optional>
#include <utility>

#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/collectives/collectives_ops.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"

namespace tenon {
namespace {

constexpr int64_t kMeanOp = 0;  // of HorovodAllreduce

/// Gradients of one dtype that travel in one message.
struct Parcel {
  std::vector<size_t> members;  // of the list of gradients
  int64_t bytes = 0;
};

std::optional<int64_t> BytesOf(const Output& value) {
  const std::optional<int64_t> elements = value.shape().num_elements();
  if (!elements) return std::nullopt;
  return *elements * static_cast<int64_t>(SizeOf(value.dtype()));
}

/// The gradients of the last variables come first: the backward pass has them first.
std::vector<Parcel> ParcelsOf(const std::vector<Gradient>& gradients, int64_t limit) {
  std::vector<Parcel> parcels;
  std::map<DType, Parcel> open;
  for (size_t i = gradients.size(); i-- > 0;) {
    const Gradient& gradient = gradients[i];
    if (!gradient.exists() || gradient.is_sparse()) continue;
    const std::optional<int64_t> bytes = BytesOf(gradient.dense);
    if (!bytes || *bytes >= limit) {
      parcels.push_back({{i}, 0});
      continue;
    }
    Parcel& parcel = open[gradient.dtype()];
    if (parcel.bytes + *bytes > limit) parcels.push_back(std::exchange(parcel, {}));
    parcel.members.push_back(i);
    parcel.bytes += *bytes;
  }
  for (auto& [dtype, parcel] : open) {
    if (!parcel.members.empty()) parcels.push_back(std::move(parcel));
  }
  return parcels;
}

bool IsRounded(DType dtype, DType wire) {
  return wire != DType::kInvalid && (dtype == DType::kFloat || dtype == DType::kDouble);
}

Output MeanOf(const Output& value, DType wire) {
  if (!IsRounded(value.dtype(), wire)) return HorovodAllreduce(value, {.reduce_op = kMeanOp});
  return Cast(HorovodAllreduce(Cast(value, wire), {.reduce_op = kMeanOp}), value.dtype());
}

/// The rows of all ranks, each divided by how many ranks there are.
Gradient MeanOf(const IndexedSlices& slices, DType wire) {
  const Output ranks = Cast(HorovodSize(), slices.values.dtype());
  const bool rounded = IsRounded(slices.values.dtype(), wire);
  const Output sent = rounded ? Cast(slices.values, wire) : slices.values;
  const Output values = HorovodAllgather(sent);
  return IndexedSlices{(rounded ? Cast(values, slices.values.dtype()) : values) / ranks,
                       HorovodAllgather(slices.indices), slices.dense_shape};
}

}  // namespace

std::vector<Gradient> MeanOverRanks(const std::vector<Gradient>& gradients,
                                    const DistributedOptimizerOptions& options) {
  std::vector<Gradient> means(gradients.size());
  for (const Parcel& parcel : ParcelsOf(gradients, options.fusion_bytes)) {
    if (parcel.members.size() == 1) {
      const size_t i = parcel.members[0];
      const ColocateWith beside(gradients[i].dense);
      means[i] = MeanOf(gradients[i].dense, options.wire);
      continue;
    }
    std::vector<Output> flat;
    std::vector<int64_t> sizes;
    for (const size_t i : parcel.members) {
      flat.push_back(Reshape(gradients[i].dense, {-1}));
      sizes.push_back(*gradients[i].dense.shape().num_elements());
    }
    const std::vector<Output> parts = SplitV(MeanOf(ConcatV2(flat, 0), options.wire), Const(sizes),
                                             0, static_cast<int64_t>(sizes.size()));
    for (size_t k = 0; k < parts.size(); ++k) {
      const Output& own = gradients[parcel.members[k]].dense;
      const auto dims = own.shape().dims();
      means[parcel.members[k]] =
          Reshape(parts[k], Const(std::vector<int64_t>(dims.begin(), dims.end())));
    }
  }
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].is_sparse()) continue;
    const ColocateWith beside(gradients[i].values());
    means[i] = MeanOf(gradients[i].slices, options.wire);
  }
  return means;
}

std::vector<GradientAndVariable> MeanOverParts(
    const std::vector<std::vector<GradientAndVariable>>& parts) {
  if (parts.empty()) return {};
  const NameScope scope(UnusedScope("parts"));
  std::vector<GradientAndVariable> means = parts[0];
  for (size_t v = 0; v < means.size(); ++v) {
    std::vector<Output> values, indices;
    for (const auto& part : parts) {
      const Gradient& gradient = part[v].gradient;
      const bool is_alike = part[v].variable.ref == means[v].variable.ref &&
                            gradient.exists() == parts[0][v].gradient.exists() &&
                            gradient.is_sparse() == parts[0][v].gradient.is_sparse();
      if (!is_alike) {
        CurrentBuilding().Fail(
            InvalidArgument("the parts have different gradients of '",
                            means[v].variable.ref->name(),
                            "': wanted the same variables, each with a gradient of one kind"),
            std::source_location::current());
        return means;
      }
      if (!gradient.exists()) continue;
      values.push_back(gradient.is_sparse() ? gradient.slices.values : gradient.dense);
      if (gradient.is_sparse()) indices.push_back(gradient.slices.indices);
    }
    if (values.empty()) continue;
    const ColocateWith beside(values[0]);
    const Output count =
        Cast(HorovodSize() * static_cast<int32_t>(parts.size()), values[0].dtype());
    Gradient& mean = means[v].gradient;
    if (mean.is_sparse()) {
      mean = IndexedSlices{HorovodAllgather(ConcatV2(values, 0)) / count,
                           HorovodAllgather(ConcatV2(indices, 0)), mean.slices.dense_shape};
    } else {
      mean = Sum(HorovodAllgather(Pack(values)), {0}) / count;
    }
  }
  return means;
}

DistributedOptimizer::DistributedOptimizer(Optimizer& optimizer,
                                           const DistributedOptimizerOptions& options)
    : Optimizer(StrCat("Distributed", optimizer.name())),
      optimizer_(optimizer),
      options_(options) {}

std::vector<GradientAndVariable> DistributedOptimizer::Combine(
    std::vector<GradientAndVariable> found) {
  found = optimizer_.Combine(std::move(found));
  const bool is_known = options_.wire == DType::kInvalid || options_.wire == DType::kHalf ||
                        options_.wire == DType::kBFloat16;
  if (!is_known) {
    CurrentBuilding().Fail(
        InvalidArgument(name(), ": wire must be half or bfloat16, found ", ToString(options_.wire)),
        std::source_location::current());
    return found;
  }
  const NameScope scope(UnusedScope(name()));
  std::vector<Gradient> gradients;
  for (const GradientAndVariable& g : found) gradients.push_back(g.gradient);
  gradients = MeanOverRanks(gradients, options_);
  for (size_t i = 0; i < found.size(); ++i) found[i].gradient = std::move(gradients[i]);
  return found;
}

Node* DistributedOptimizer::Apply(const Gradient&, const VariableEntry&) { return FailedNode(); }

}  // namespace tenon
