// SPDX-License-Identifier: Apache-2.0
#include "train/optimizers/clipping.h"

#include "ops/array/array_ops.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/nn/nn_ops.h"
#include "train/call_scope.h"
#include "train/value_as.h"

namespace tenon {
template <typename G>
requires std::same_as<G, Gradient> Gradient ClipByValue(const G& gradient,
                                                        const Input& clip_value_min,
                                                        const Input& clip_value_max,
                                                        const OpOptions& options) {
  if (!gradient.exists()) return gradient;
  return gradient.WithValues(
      ClipByValue(gradient.values(), clip_value_min, clip_value_max, options));
}
template Gradient ClipByValue(const Gradient&, const Input&, const Input&, const OpOptions&);

Output ClipByNorm(const Output& t, const Input& clip_norm, const ClipByNormOptions& options) {
  const CallScope scope(options.name, "clip_by_norm", options.location);
  const std::vector<int32_t> axes(options.axes.begin(), options.axes.end());
  const Input along = axes.empty() ? Input() : Input(axes);
  const Output squares = Sum(t * t, along, {.keep_dims = true});
  // The root's gradient at 0 is infinite.
  const Output positive = squares > 0;
  const Output safe = SelectV2(positive, squares, OnesLike(squares));
  const Output norm = SelectV2(positive, Sqrt(safe), squares);
  const Output limit = ValueAs(clip_norm, t.dtype());
  return t * limit / Maximum(norm, limit);
}

Gradient ClipByNorm(const Gradient& gradient, const Input& clip_norm,
                    const ClipByNormOptions& options) {
  if (!gradient.exists()) return gradient;
  return gradient.WithValues(ClipByNorm(gradient.values(), clip_norm, options));
}

Output ClipByAverageNorm(const Output& t, const Input& clip_norm, const OpOptions& options) {
  const CallScope scope(options.name, "clip_by_average_norm", options.location);
  const Output limit = ValueAs(clip_norm, t.dtype());
  const Output elements = Cast(Size(t), t.dtype());
  return t * limit * Minimum(Rsqrt(Sum(t * t)) * elements, 1 / limit);
}

Output GlobalNorm(const std::vector<Gradient>& gradients, const OpOptions& options) {
  const CallScope scope(options.name, "global_norm", options.location);
  std::vector<Output> halves;
  for (const Gradient& g : gradients) {
    if (!g.exists()) continue;
    const ColocateWith beside(g.values());
    halves.push_back(L2Loss(g.values()));
  }
  if (halves.empty()) {
    CurrentBuilding().Fail(InvalidArgument("there is no gradient to take the global norm of"),
                           options.location);
    return {};
  }
  return Sqrt(Sum(Pack(halves)) * 2, {.name = "global_norm"});
}

ClippedGradients ClipByGlobalNorm(const std::vector<Gradient>& gradients, const Input& clip_norm,
                                  const ClipByGlobalNormOptions& options) {
  const CalledFrom caller(options.location);
  const Output norm = options.use_norm.node == nullptr ? GlobalNorm(gradients) : options.use_norm;
  const NameScope scope(UnusedScope(options.name));
  const Output limit = ValueAs(clip_norm, norm.dtype());
  // The difference is 0, or NaN: an infinite norm would scale by 0 otherwise.
  const Output scale = limit * Minimum(1 / norm, 1 / limit) + (norm - norm);
  ClippedGradients clipped{{}, norm};
  for (const Gradient& g : gradients) {
    if (!g.exists()) {
      clipped.gradients.emplace_back();
      continue;
    }
    const ColocateWith beside(g.values());
    clipped.gradients.push_back(g.WithValues(g.values() * ValueAs(scale, g.dtype())));
  }
  return clipped;
}

std::vector<GradientAndVariable> ClipByGlobalNorm(std::vector<GradientAndVariable> gradients,
                                                  const Input& clip_norm,
                                                  const ClipByGlobalNormOptions& options) {
  std::vector<Gradient> values;
  for (const GradientAndVariable& g : gradients) values.push_back(g.gradient);
  const ClippedGradients clipped = ClipByGlobalNorm(values, clip_norm, options);
  for (size_t i = 0; i < gradients.size(); ++i) gradients[i].gradient = clipped.gradients[i];
  return gradients;
}

}  // namespace tenon
