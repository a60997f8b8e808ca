// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "core/build/building.h"

namespace tenon::testing {

/// Choices that follow from a seed alone, the same with every standard library.
class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) { engine_.discard(8); }
  /// In [0, n).
  int Below(int n) { return static_cast<int>(engine_() % static_cast<uint64_t>(n)); }
  bool Chance(int percent) { return Below(100) < percent; }
  uint64_t Seed() { return engine_(); }
  template <typename T>
  const T& OneOf(const std::vector<T>& choices) {
    return choices[Below(static_cast<int>(choices.size()))];
  }

 private:
  std::mt19937_64 engine_;
};

/// Makes again current what was it once.
class [[nodiscard]] Entered : private EnteredContext {
 public:
  explicit Entered(const BuildContext& context) : EnteredContext(context) {}
};

/// The shape of a value of RandomOps, all of which have known shapes.
inline Shape ShapeOfValue(const Output& value) { return value.shape().ToShape(); }

/// A tensor of small values: numbers in [-2, 2], integers in [-9, 9].
Tensor RandomTensor(Random& random, DType dtype, const Shape& shape);

/// Adds random ops to the graph being built. Everything it builds is valid, deterministic and free
/// of errors when it runs; dtypes are float, double, int32, int64 and bool; shapes are fully known
/// and small.
class RandomOps {
 public:
  /// Constants are made in `constants`, which a loop's or branch's control dependency triggers, all
  /// else in what is current then.
  RandomOps(BuildContext constants, Random& random, std::vector<Output> values)
      : c_(std::move(constants)), r_(random), values_(std::move(values)) {}

  /// The values made so far, which later ops take their inputs from.
  const std::vector<Output>& values() const { return values_; }
  /// Makes `value` one of them, unless it is large or its shape is not known.
  void Keep(Output value);
  /// One more op, or a few that belong together.
  void Grow();

  Output Any() { return r_.OneOf(values_); }
  /// A value of that dtype: one that is there, or a cast of one.
  Output AnyOf(DType dtype);
  Output AnyFloat() { return AnyOf(r_.Chance(75) ? DType::kFloat : DType::kDouble); }
  /// A scalar bool that depends on the values.
  Output Predicate();
  /// A value of the dtype and shape of `like` that depends on it and on `other`.
  Output Absorb(Output like, Output other);

 private:
  /// Whether there was no mistake yet.
  bool ok() const { return c_.graph->error().ok(); }
  Output Number();
  Output Constant(const Input& value);
  Output Constant(DType dtype, const Shape& shape);
  /// Some of the axes, perhaps counted from the end.
  Output Axes(const Shape& shape);
  /// A value that broadcasts with `x`.
  Output Fitting(Output x);
  /// Brings results of growing ops back into a small range.
  Output Tame(Output value);
  Output Flat(Output value);

  void UnaryOp();
  void BinaryOp();
  void DivisionOp();
  void ComparisonOp();
  void LogicalOp();
  void ChooseOp();
  void CastOp();
  void MatrixOp();
  void ReductionOp();
  void ArgBestOp();
  void ReshapingOp();
  void RepeatingOp();
  void JoiningOp();
  void SplittingOp();
  void SlicingOp();
  void GatheringOp();
  void ShapeOp();
  void SoftmaxOp();
  void PlumbingOp();
  void IrregularOp();

  const BuildContext c_;
  Random& r_;
  std::vector<Output> values_;
};

}  // namespace tenon::testing
