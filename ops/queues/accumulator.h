// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "ops/queues/waiting_resource.h"

namespace tenon {

/// A sum of gradients with the count of those that are in it, and a step number: gradients of older
/// steps are dropped. Who takes the sum waits for a count. Base of the dense and the sparse one.
class Accumulator : public WaitingResource {
 public:
  static constexpr std::string_view kKind = "conditional_accumulator";
  static constexpr std::string_view kTypeName = "N10tensorflow26ConditionalAccumulatorBaseE";
  static constexpr bool kNamedByNode = true;

  /// What a node says of its accumulator.
  struct Options {
    explicit Options(KernelConstruction& c);

    std::string op;
    DType dtype;
    PartialShape shape;
    bool mean;
  };

  Accumulator(const Options& options, std::string name)
      : options_(options), name_(std::move(name)) {}
  std::string_view kind() const override { return kKind; }
  /// InvalidArgument when a node with `wanted` cannot have this accumulator.
  Status CheckShared(const Options& wanted) const;

  DType dtype() const { return options_.dtype; }
  virtual bool is_sparse() const = 0;
  int64_t count() const;
  void SetStep(int64_t step);
  /// Adds the gradient in the inputs of `ctx` from number 2 on, unless `step` is an old one.
  Status Add(int64_t step, KernelContext& ctx);
  /// Waits for `count` gradients, makes their sum or mean the outputs, and is empty then.
  void Take(int64_t count, KernelContext& ctx, Kernel::Done done);

 protected:
  /// Checks and adds one gradient. In case of an error nothing is added.
  virtual Status AddGradient(KernelContext& ctx) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) = 0;
  /// Sets the outputs to the sum, or the mean of `count` gradients.
  virtual Status TakeSum(int64_t count, KernelContext& ctx) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) = 0;

  const Options options_;

 private:
  class TakeOperation;

  const std::string name_;
  int64_t count_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t step_ ABSL_GUARDED_BY(mu_) = 0;
};

/// An accumulator of gradients of one shape.
class DenseAccumulator final : public Accumulator {
 public:
  using Accumulator::Accumulator;
  bool is_sparse() const override { return false; }
  int64_t num_bytes() const override;

 private:
  Status AddGradient(KernelContext& ctx) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status TakeSum(int64_t count, KernelContext& ctx) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  Tensor sum_ ABSL_GUARDED_BY(mu_);  // invalid: of nothing
};

/// An accumulator of gradients that have some rows only, as indices, values and shape. The mean of
/// a row is over the gradients that have it.
class SparseAccumulator final : public Accumulator {
 public:
  using Accumulator::Accumulator;
  bool is_sparse() const override { return true; }
  int64_t num_bytes() const override;
  /// InvalidArgument when gradients of shape `shape`, a vector, do not fit the accumulator's.
  Status CheckShape(const Tensor& shape) const;

 private:
  struct Row {
    int64_t place;  // in sums_
    int64_t count = 0;
    int64_t last_gradient = 0;  // that has it
  };

  Status AddGradient(KernelContext& ctx) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status TakeSum(int64_t count, KernelContext& ctx) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status CheckGradient(const KernelContext& ctx) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  /// Makes sums_ hold `rows` rows like those of `values`, at least; new ones are zero.
  Status Grow(int64_t rows, const Tensor& values) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  std::map<int64_t, Row> rows_ ABSL_GUARDED_BY(mu_);
  Tensor sums_ ABSL_GUARDED_BY(mu_);  // more rows than are used, as a vector grows
  int64_t gradients_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace tenon
