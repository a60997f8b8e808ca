// SPDX-License-Identifier: Apache-2.0
#include "ops/queues/accumulator.h"

#include <algorithm>
#include <utility>

#include "ops/arguments.h"
#include "ops/combine_rows.h"
#include "ops/elements.h"
#include "ops/maths.h"

namespace tenon {
namespace {

using Progress = WaitingOperation::Progress;

/// Divides elements [begin, begin + n) of `t`.
void Divide(Tensor* t, int64_t begin, int64_t n, int64_t by) {
  Dispatch(t->dtype(), FloatTypes(), [&]<typename T>(T) {
    using C = ComputeType<T>;
    T* const values = t->data<T>() + begin;
    SerialFor(n, 1, [&](int64_t i, int64_t end) {
      for (; i < end; ++i)
        values[i] = static_cast<T>(static_cast<C>(values[i]) / static_cast<C>(by));
    });
  });
}

}  // namespace

Accumulator::Options::Options(KernelConstruction& c)
    : op(c.op()),
      dtype(c.Attr<DType>("dtype")),
      shape(c.Attr<PartialShape>("shape")),
      mean(c.Attr<std::string>("reduction_type") == "MEAN") {}

Status Accumulator::CheckShared(const Options& wanted) const {
  if (options_.dtype == wanted.dtype && options_.shape == wanted.shape &&
      options_.mean == wanted.mean && options_.op == wanted.op) {
    return OkStatus();
  }
  const auto text = [](const Options& o) {
    return StrCat(o.op, " of ", o.dtype, o.shape, o.mean ? " (MEAN)" : " (SUM)");
  };
  return InvalidArgument("Shared conditional accumulator '", name_, "' is a ", text(options_),
                         " but requested was a ", text(wanted));
}

int64_t Accumulator::count() const {
  MutexLock lock(mu_);
  return count_;
}

void Accumulator::SetStep(int64_t step) {
  MutexLock lock(mu_);
  step_ = step;
}

Status Accumulator::Add(int64_t step, KernelContext& ctx) {
  return Apply([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS -> Status {
    if (step < step_) return OkStatus();
    const InterruptibleBy nothing(nullptr);
    TENON_RETURN_IF_ERROR(AddGradient(ctx));
    ++count_;
    return OkStatus();
  });
}

class Accumulator::TakeOperation final : public WaitingOperation {
 public:
  TakeOperation(Accumulator& accumulator, int64_t wanted, KernelContext& ctx)
      : accumulator_(accumulator), wanted_(wanted), ctx_(ctx) {}
  std::string_view name() const override { return "TakeGrad"; }

  // Under the accumulator's lock, which the analysis cannot see.
  StatusOr<Progress> Attempt() override ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (accumulator_.count_ < wanted_) return Progress::kNone;
    TENON_RETURN_IF_ERROR(accumulator_.TakeSum(accumulator_.count_, ctx_));
    accumulator_.count_ = 0;
    ++accumulator_.step_;
    return Progress::kDone;
  }

 private:
  Accumulator& accumulator_;
  const int64_t wanted_;
  KernelContext& ctx_;
};

void Accumulator::Take(int64_t count, KernelContext& ctx, Kernel::Done done) {
  if (count <= 0) {
    return done(InvalidArgument("Argument num_required must be positive, but received ", count));
  }
  Start(0, std::make_unique<TakeOperation>(*this, count, ctx), ctx, std::move(done));
}

int64_t DenseAccumulator::num_bytes() const {
  MutexLock lock(mu_);
  return static_cast<int64_t>(sum_.num_bytes());
}

Status DenseAccumulator::AddGradient(KernelContext& ctx) {
  const Tensor gradient = ctx.TakeInput(2);
  const PartialShape wanted = sum_.valid() ? PartialShape(sum_.shape()) : options_.shape;
  if (!wanted.IsCompatibleWith(gradient.shape())) {
    return InvalidArgument("Shape mismatch: expected ", wanted, ", got ", gradient.shape());
  }
  if (sum_.valid()) {
    return CombineRows(Update::kAdd, gradient, {0}, gradient.num_elements(), &sum_);
  }
  TENON_ASSIGN_OR_RETURN(sum_, gradient.Copy());
  return OkStatus();
}

Status DenseAccumulator::TakeSum(int64_t count, KernelContext& ctx) {
  if (options_.mean) Divide(&sum_, 0, sum_.num_elements(), count);
  return ctx.Return(std::exchange(sum_, {}));
}

int64_t SparseAccumulator::num_bytes() const {
  MutexLock lock(mu_);
  return static_cast<int64_t>(sums_.num_bytes());
}

namespace {

/// InvalidArgument unless `found`, from dimension `first` on, begins as `wanted` says.
Status CheckDims(std::string_view what, size_t first, absl::Span<const int64_t> wanted,
                 absl::Span<const int64_t> found) {
  if (wanted.size() > found.size()) {
    return InvalidArgument("Shape mismatch: expected ", what, " rank at least ", wanted.size(),
                           ", got ", found.size());
  }
  for (size_t i = first; i < wanted.size(); ++i) {
    if (wanted[i] < 0 || wanted[i] == found[i]) continue;
    return InvalidArgument("Shape mismatch: expected ", what, " dim ", i, " to be ", wanted[i],
                           ", got ", found[i]);
  }
  return OkStatus();
}

}  // namespace

Status SparseAccumulator::CheckShape(const Tensor& shape) const {
  TENON_ASSIGN_OR_RETURN(const DimVector found, ReadIntegerVector(shape, "gradient_shape"));
  if (!options_.shape.rank_known()) return OkStatus();
  return CheckDims("shape", 0, options_.shape.dims(), found);
}

Status SparseAccumulator::CheckGradient(const KernelContext& ctx) const {
  const Tensor &indices = ctx.input(2), &values = ctx.input(3);
  if (indices.rank() != 1) {
    return InvalidArgument("Input indices should be vector but received shape: ", indices.shape());
  }
  if (values.rank() == 0) return InvalidArgument("Values cannot be 0-dimensional.");
  if (values.dim(0) != indices.dim(0)) {
    return InvalidArgument("Expected ", indices.dim(0), " non-empty input values, got ",
                           values.dim(0));
  }
  const DimVector none;
  const absl::Span<const int64_t> wanted =
      options_.shape.rank_known() ? options_.shape.dims() : absl::Span<const int64_t>(none);
  const int64_t rows = wanted.empty() ? -1 : wanted[0];
  for (int64_t i = 0; i < indices.dim(0); ++i) {
    const int64_t index = indices.data<int64_t>()[i];
    if (index < 0) {
      return InvalidArgument("the index of slice ", i, " must be at least 0, found ", index);
    }
    if (rows < 0 || index < rows) continue;
    return InvalidArgument("Shape mismatch: index of slice ", i,
                           " exceeded limits of shape; index is ", index, " exceeded ", rows);
  }
  if (!sums_.valid()) return CheckDims("values", 1, wanted, values.shape().dims());
  if (sums_.rank() != values.rank()) {
    return InvalidArgument("Shape mismatch: expected values rank ", sums_.rank(), ", got ",
                           values.rank());
  }
  return CheckDims("values", 1, sums_.shape().dims(), values.shape().dims());
}

Status SparseAccumulator::Grow(int64_t rows, const Tensor& values) {
  const int64_t there = sums_.valid() ? sums_.dim(0) : 0;
  if (sums_.valid() && rows <= there) return OkStatus();
  TENON_ASSIGN_OR_RETURN(
      Tensor larger,
      Tensor::Allocate(CpuAllocator(), values.dtype(),
                       values.shape().WithDim(0, std::max<int64_t>(rows, 2 * there))));
  ZeroElements(&larger);
  if (sums_.valid()) CopyElements(sums_, 0, &larger, 0, sums_.num_elements());
  sums_ = std::move(larger);
  return OkStatus();
}

Status SparseAccumulator::AddGradient(KernelContext& ctx) {
  TENON_RETURN_IF_ERROR(CheckGradient(ctx));
  const auto indices = ctx.input(2).flat<int64_t>();
  const Tensor& values = ctx.input(3);
  // No row is more than once in `indices`, so this is enough memory for all.
  TENON_RETURN_IF_ERROR(Grow(static_cast<int64_t>(rows_.size() + indices.size()), values));
  CountedVector<int64_t> places;
  ++gradients_;
  for (const int64_t i : indices) {
    Row& row = rows_.try_emplace(i, Row{static_cast<int64_t>(rows_.size())}).first->second;
    if (row.last_gradient != gradients_) ++row.count;
    row.last_gradient = gradients_;
    places.push_back(row.place);
  }
  const int64_t width = Product(values.shape().dims(), 1, values.rank());
  return CombineRows(Update::kAdd, values, places, width, &sums_);
}

Status SparseAccumulator::TakeSum(int64_t, KernelContext& ctx) {
  const int64_t n = static_cast<int64_t>(rows_.size());
  const Shape shape = sums_.shape().WithDim(0, n);
  const int64_t width = Product(shape.dims(), 1, shape.rank());
  TENON_ASSIGN_OR_RETURN(Tensor * indices, ctx.AllocateOutput(0, {n}));
  TENON_ASSIGN_OR_RETURN(Tensor * values, ctx.AllocateOutput(1, shape));
  int64_t at = 0;
  for (const auto& [index, row] : rows_) {
    indices->data<int64_t>()[at] = index;
    CopyElements(sums_, row.place * width, values, at * width, width);
    if (options_.mean) Divide(values, at * width, width, row.count);
    ++at;
  }
  DimVector dims(shape.dims().begin(), shape.dims().end());
  dims[0] = options_.shape.rank_known() && options_.shape.rank() > 0 ? options_.shape.dim(0) : -1;
  ctx.set_output(2, Tensor::Of<int64_t>({shape.rank()}, dims));
  rows_.clear();
  sums_ = Tensor();
  return OkStatus();
}

}  // namespace tenon
