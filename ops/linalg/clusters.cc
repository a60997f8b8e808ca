// SPDX-License-Identifier: Apache-2.0
//
// Distances between points and the centres of clusters, and the first centres (Arthur and
// Vassilvitskii: "k-means++: the advantages of careful seeding", 2007; Bachem, Lucic, Hassani,
// Krause: "Approximate k-means++ in sublinear time", 2016).
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "core/base/hash_map.h"
#include "core/base/interruption.h"
#include "core/base/parallel.h"
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/linalg/eigen.h"
#include "ops/random/draws.h"

namespace tenon {
namespace {

using Points = Eigen::Map<const Matrix<float>>;
using Distances = Eigen::VectorXf;

Points PointsOf(const Tensor& t) { return {t.data<float>(), t.dim(0), t.dim(1)}; }

/// InvalidArgument for more rows than can have a number each, of a matrix that has no columns.
Status CheckRows(const Tensor& t) {
  constexpr int64_t kMost = 1 << 20;
  if (t.num_elements() > 0 || t.dim(0) <= kMost) return OkStatus();
  return InvalidArgument("points without columns must be at most ", kMost, ", found shape ",
                         t.shape());
}

Distances HalfSquaredNorms(const Points& points) { return 0.5f * points.rowwise().squaredNorm(); }

/// The `k` centres that are nearest to each of a few points, and the squares of their distances.
void FindNearest(const Points& points, const Points& centers, const Distances& center_norms,
                 int64_t k, int64_t* indices, float* distances) {
  const Matrix<float> products = points * centers.transpose();
  const Distances norms = HalfSquaredNorms(points);
  using Center = std::pair<float, int64_t>;
  std::vector<Center> candidates(k == 1 ? 0 : centers.rows());
  // A number that is none is as far away as can be.
  const auto is_nearer = [](const Center& a, const Center& b) {
    if (std::isnan(a.first) || std::isnan(b.first)) {
      return std::isnan(a.first) == std::isnan(b.first) ? a.second < b.second : std::isnan(b.first);
    }
    return a < b;
  };
  for (int64_t i = 0; i < points.rows(); ++i) {
    const auto distance = [&](int64_t center) {
      return Center(center_norms[center] - products(i, center), center);
    };
    Center nearest = distance(0);
    if (k == 1) {
      for (int64_t c = 1; c < centers.rows(); ++c) {
        const Center found = distance(c);
        if (is_nearer(found, nearest)) nearest = found;
      }
    } else {
      for (int64_t c = 0; c < centers.rows(); ++c) candidates[c] = distance(c);
      std::partial_sort(candidates.begin(), candidates.begin() + k, candidates.end(), is_nearer);
    }
    for (int64_t j = 0; j < k; ++j) {
      const Center& found = k == 1 ? nearest : candidates[j];
      indices[i * k + j] = found.second;
      distances[i * k + j] = 2 * (norms[i] + found.first);
    }
  }
}

Status NearestNeighborsKernel(KernelContext& ctx, const Tensor& points, const Tensor& centers,
                              Integer k) {
  if (points.dim(0) == 0)
    return InvalidArgument("points must have rows, found shape ", points.shape());
  for (const Tensor& t : {points, centers}) TENON_RETURN_IF_ERROR(CheckRows(t));
  if (k < 0) return InvalidArgument("k must be at least 0, found ", k.value);
  const int64_t most = std::min<int64_t>(k, centers.dim(0));
  const Shape shape{points.dim(0), most};
  TENON_ASSIGN_OR_RETURN(Tensor * indices, ctx.AllocateOutput(0, shape));
  TENON_ASSIGN_OR_RETURN(Tensor * distances, ctx.AllocateOutput(1, shape));
  if (most == 0) return OkStatus();
  const Points all = PointsOf(points), middles = PointsOf(centers);
  const Distances norms = HalfSquaredNorms(middles);
  // The products of a block stay in a core's cache.
  constexpr int64_t kProducts = 1 << 17;
  const int64_t block = std::clamp<int64_t>(kProducts / middles.rows(), 1, 256);
  const int64_t blocks = (all.rows() + block - 1) / block;
  const double cost = 0.2 * static_cast<double>(block * middles.rows() * (1 + all.cols()));
  ParallelFor(blocks, cost, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const int64_t first = b * block, rows = std::min(block, all.rows() - first);
      const Points some(all.data() + first * all.cols(), rows, all.cols());
      FindNearest(some, middles, norms, most, indices->data<int64_t>() + first * most,
                  distances->data<float>() + first * most);
    }
  });
  return OkStatus();
}

/// Draws points, each with a probability in proportion to the square of its distance from those
/// that were drawn before.
class CenterSampler {
 public:
  CenterSampler(const Points& points, int64_t seed)
      : points_(points),
        norms_(HalfSquaredNorms(points)),
        draws_(Philox(static_cast<uint64_t>(seed), 0)),
        nearest_(Distances::Constant(points.rows(), std::numeric_limits<float>::infinity())) {}

  /// The best of `tries` draws: the one after which all points are nearest to those drawn.
  int64_t Next(int64_t tries) {
    if (!drawn_.empty()) {
      sums_.resize(nearest_.size());
      std::partial_sum(nearest_.data(), nearest_.data() + nearest_.size(), sums_.data());
    }
    int64_t best = 0;
    float least = std::numeric_limits<float>::infinity();
    Distances best_nearest = nearest_;
    for (int64_t i = 0; i < tries && !Interrupted(); ++i) {
      const int64_t index = Draw();
      Distances nearest = nearest_.cwiseMin(DistancesTo(index));
      const float sum = nearest.sum();
      if (tries > 1 && !(sum < least)) continue;
      least = sum;
      best = index;
      best_nearest.swap(nearest);
    }
    nearest_.swap(best_nearest);
    drawn_.insert(best);
    return best;
  }

 private:
  int64_t Draw() {
    const auto any = [this] {
      return static_cast<int64_t>(draws_.Below(static_cast<uint64_t>(points_.rows())));
    };
    if (drawn_.empty()) return any();
    const float sum = sums_[sums_.size() - 1];
    int64_t index = 0;
    // Rounded distances of points that are drawn already may be all that there are.
    constexpr int kMostTries = 1000;
    int tries = 0;
    do {
      if (sum > 0 && std::isfinite(sum) && ++tries < kMostTries) {
        const float drawn = draws_.Float() * sum;
        const auto found = std::upper_bound(sums_.begin(), sums_.end(), drawn);
        index = std::min<int64_t>(found - sums_.begin(), sums_.size() - 1);
      } else {
        index = any();
      }
    } while (drawn_.contains(index));
    return index;
  }

  /// Half the squares of all points' distances from one.
  Distances DistancesTo(int64_t index) const {
    return (norms_ - points_ * points_.row(index).transpose()).array() + norms_[index];
  }

  const Points points_;
  const Distances norms_;
  WordDraws draws_;
  Distances nearest_, sums_;
  flat_hash_set<int64_t> drawn_;
};

Status KmeansPlusPlusKernel(KernelContext& ctx, const Tensor& points, Integer num_to_sample,
                            Integer seed, Integer num_retries_per_sample) {
  TENON_RETURN_IF_ERROR(CheckRows(points));
  const int64_t count = num_to_sample;
  if (count <= 0 || count > points.dim(0)) {
    return InvalidArgument("num_to_sample must be above 0 and at most ", points.dim(0),
                           ", the number of points, found ", count);
  }
  const int64_t retries = num_retries_per_sample >= 0
                              ? num_retries_per_sample.value
                              : 2 + static_cast<int64_t>(std::log(static_cast<double>(count)));
  constexpr int64_t kMostRetries = 4096;  // of which each looks at all points
  if (retries > kMostRetries) {
    return InvalidArgument("num_retries_per_sample must be at most ", kMostRetries, ", found ",
                           retries);
  }
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape{count, points.dim(1)}));
  const Points all = PointsOf(points);
  Eigen::Map<Matrix<float>> drawn(out->data<float>(), count, all.cols());
  CenterSampler sampler(all, seed);
  for (int64_t i = 0; i < count; ++i) drawn.row(i) = all.row(sampler.Next(1 + retries));
  return OkStatus();
}

/// The last state of a Markov chain whose candidates are the points in their order.
Status ChainKernel(KernelContext& ctx, const Tensor& distances, Integer seed) {
  if (distances.num_elements() == 0) return InvalidArgument("distances must not be empty");
  WordDraws draws(Philox(static_cast<uint64_t>(seed.value), 0));
  const auto of = distances.flat<float>();
  int64_t state = 0;
  for (int64_t i = 1; i < distances.num_elements(); ++i) {
    if (of[i] > draws.Float() * of[state]) state = i;
  }
  return ctx.Return(Tensor::Scalar<int64_t>(state));
}

}  // namespace

void RegisterClusters(OpRegistry& ops) {
  ops.Add("NearestNeighbors", NearestNeighborsKernel)
      .Example({Shape{5, 3}, Shape{4, 3}, Tensor::Scalar<int64_t>(2)});
  ops.Add("KmeansPlusPlusInitialization", KmeansPlusPlusKernel)
      .Example({Shape{6, 2}, Tensor::Scalar<int64_t>(3), Tensor::Scalar<int64_t>(7),
                Tensor::Scalar<int64_t>(2)});
  ops.Add("KMC2ChainInitialization", ChainKernel).Example({Shape{6}, Tensor::Scalar<int64_t>(7)});
}

}  // namespace tenon
