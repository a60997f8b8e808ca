// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>

#include "core/base/interruption.h"
#include "core/op/op_registry.h"
#include "data/batch/random_sequence.h"
#include "ops/arguments.h"
#include "ops/fingerprint.h"
#include "ops/sdca/examples.h"
#include "ops/sdca/losses.h"

namespace tenon {
namespace {

/// What one example keeps between passes, a row of example_state_data.
struct ExampleState {
  float dual, primal_loss, dual_loss, weight;
};

class SdcaOptimizerKernel final : public Kernel {
 public:
  explicit SdcaOptimizerKernel(KernelConstruction& c)
      : Kernel(c),
        counts_{.sparse = c.Attr<int64_t>("num_sparse_features"),
                .sparse_with_values = c.Attr<int64_t>("num_sparse_features_with_values"),
                .dense = c.Attr<int64_t>("num_dense_features")},
        adaptive_(c.attrs().GetOr("adaptive", c.attrs().GetOr("adaptative", false))),
        partitions_(static_cast<double>(c.Attr<int64_t>("num_loss_partitions"))) {
    auto loss = DualLoss::Create(c.Attr<std::string>("loss_type"));
    auto shrink = Shrinkage::Create(c.Attr<float>("l1"), c.Attr<float>("l2"));
    c.Fail(loss.status());
    c.Fail(shrink.status());
    if (loss.ok()) loss_ = *std::move(loss);
    if (shrink.ok()) shrink_ = *shrink;
  }

  Status Compute(KernelContext& ctx) const override {
    TENON_ASSIGN_OR_RETURN(LinearModel model, LinearModel::Create(ctx, counts_));
    const int64_t n = model.num_examples();
    CountedVector<double> labels(n);
    for (int64_t i = 0; i < n; ++i) {
      TENON_ASSIGN_OR_RETURN(labels[i], loss_->Label(model.label(i)));
    }
    const int last = ctx.num_inputs() - 1;
    if (ctx.input(last).shape() != Shape{n, 4}) {
      return InvalidArgument("Expected shape [", n, ",4] for example_state_data, got ",
                             ctx.input(last).shape());
    }
    TENON_ASSIGN_OR_RETURN(Tensor out, ctx.input(last).Copy());
    auto* const states = reinterpret_cast<ExampleState*>(out.data<float>());
    RandomSequence random(runs_.fetch_add(1));
    for (const int64_t i :
         adaptive_ ? DrawnOrder(model, labels, states, random) : ShuffledOrder(n, random)) {
      if (Interrupted()) break;
      Step(i, labels[i], &model, &states[i]);
    }
    ctx.set_output(0, std::move(out));
    return OkStatus();
  }

 private:
  DualStep StepOf(const LinearModel& model, int64_t i, double label, double dual,
                  double prediction) const {
    return {.label = label,
            .weight = model.weight(i),
            .dual = dual,
            .prediction = prediction,
            .norm = model.squared_norm(i) / shrink_.l2,
            .partitions = partitions_};
  }

  /// Moves the example's dual, and the deltas with it.
  void Step(int64_t i, double label, LinearModel* model, ExampleState* state) const {
    const double weight = model->weight(i), dual = state->dual;
    const LinearModel::Predictions predictions = model->Predict(i, shrink_, partitions_);
    const double moved = loss_->BestDual(StepOf(*model, i, label, dual, predictions.now));
    model->Add(i, (moved - dual) * weight / shrink_.l2);
    state->dual = static_cast<float>(moved);
    state->primal_loss = static_cast<float>(loss_->Primal(predictions.before, label) * weight);
    const double dual_loss = loss_->Dual(dual, label);
    constexpr double kInfinite = std::numeric_limits<double>::max();
    state->dual_loss = static_cast<float>(dual_loss == kInfinite ? kInfinite : dual_loss * weight);
    state->weight = static_cast<float>(weight);
  }

  static CountedVector<int64_t> ShuffledOrder(int64_t n, RandomSequence& random) {
    CountedVector<int64_t> order(n);
    std::iota(order.begin(), order.end(), int64_t{0});
    for (int64_t i = n - 1; i > 0; --i) std::swap(order[i], order[random.Below(i + 1)]);
    return order;
  }

  /// As many examples as there are, drawn by how far their duals are from the best ones (Csiba, Qu
  /// and Richtarik, arXiv 1502.08053); one that was drawn is ten times less likely. When draws
  /// repeat themselves too often, those that are left come in the order of their probabilities.
  CountedVector<int64_t> DrawnOrder(const LinearModel& model, const CountedVector<double>& labels,
                                    const ExampleState* states, RandomSequence& random) const {
    const int64_t n = model.num_examples();
    CountedVector<double> chances(n), until(n);
    double total = 0;
    for (int64_t i = 0; i < n && !Interrupted(); ++i) {
      const double prediction = model.Predict(i, shrink_, partitions_).now;
      const double residue = states[i].dual + loss_->PrimalDerivative(prediction, labels[i]);
      chances[i] = std::fabs(model.weight(i) * residue) *
                   std::sqrt(model.squared_norm(i) + shrink_.l2 * loss_->smoothness());
      total += chances[i];
      until[i] = total;
    }
    if (!(total > 0) || !std::isfinite(total)) return ShuffledOrder(n, random);
    const auto uniform = [&random] { return static_cast<double>(random.Next() >> 11) * 0x1p-53; };
    CountedVector<int64_t> order, times(n, 0);
    for (int64_t retries = 0; static_cast<int64_t>(order.size()) < n && retries < n;) {
      const auto drawn = std::upper_bound(until.begin(), until.end(), uniform() * total);
      const int64_t i = std::min<int64_t>(drawn - until.begin(), n - 1);
      if (uniform() > std::pow(0.1, static_cast<double>(times[i]))) {
        ++retries;
        continue;
      }
      ++times[i];
      order.push_back(i);
    }
    CountedVector<int64_t> unseen;
    for (int64_t i = 0; i < n; ++i) {
      if (times[i] == 0) unseen.push_back(i);
    }
    std::sort(unseen.begin(), unseen.end(), [&](int64_t a, int64_t b) {
      return chances[a] != chances[b] ? chances[a] > chances[b] : a < b;
    });
    const auto missing = static_cast<size_t>(n) - order.size();
    order.insert(order.end(), unseen.begin(), unseen.begin() + std::min(missing, unseen.size()));
    return order;
  }

  const LinearModel::Counts counts_;
  const bool adaptive_;
  const double partitions_;
  std::unique_ptr<DualLoss> loss_;
  Shrinkage shrink_;
  /// Tells the order of each run, which is another one.
  mutable std::atomic<uint64_t> runs_{0};
};

Status SdcaOptimizerShape(ShapeContext& c) {
  const int last = c.num_inputs() - 1;
  TENON_ASSIGN_OR_RETURN(const int64_t sparse, c.Attr<int64_t>("num_sparse_features"));
  TENON_ASSIGN_OR_RETURN(const int64_t dense, c.Attr<int64_t>("num_dense_features"));
  c.set_output(0, c.input(last));
  // The weights come right before the state.
  const int first = last - static_cast<int>(sparse + dense);
  for (int i = 0; i < sparse + dense; ++i) c.set_output(1 + i, c.input(first + i));
  return OkStatus();
}

struct ShrinkAttrs : KernelState {
  explicit ShrinkAttrs(KernelConstruction& c) {
    const auto made = Shrinkage::Create(c.Attr<float>("l1"), c.Attr<float>("l2"));
    c.Fail(made.status());
    if (made.ok()) shrink = *made;
  }
  Shrinkage shrink;
};

Status ShrinkKernel(KernelContext& ctx, const ShrinkAttrs& attrs) {
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    if (ctx.ref(i) == nullptr) return InvalidArgument("weights ", i, " is no variable");
    TENON_RETURN_IF_ERROR(ctx.ref(i)->ModifyInPlace([&](Tensor* value) {
      for (float& w : value->flat<float>()) w = static_cast<float>(attrs.shrink(w));
      return OkStatus();
    }));
  }
  return OkStatus();
}

Status FprintKernel(KernelContext& ctx, const Tensor& in) {
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, {in.dim(0), 2}));
  for (int64_t i = 0; i < in.dim(0); ++i) {
    if (i % kStepsBetweenLooks == 0 && Interrupted()) break;
    auto [low, high] = Fingerprint128(in.data<TString>()[i]);
    // Tables mark what is free with 0 and 1.
    if (low < 2) low += ~uint64_t{1};
    out->data<int64_t>()[2 * i] = static_cast<int64_t>(low);
    out->data<int64_t>()[2 * i + 1] = static_cast<int64_t>(high);
  }
  return OkStatus();
}

}  // namespace

void RegisterSdcaKernels(OpRegistry& ops) {
  ops.Add("SdcaFprint", FprintKernel).Example({Shape{3}});
  ops.Add("SdcaShrinkL1", NoOutputShape, ShrinkKernel)
      .NoExample("needs variables; sdca_test covers it");
  for (const char* name : {"SdcaOptimizer", "SdcaOptimizerV2"}) {
    ops.Add<SdcaOptimizerKernel>(name, SdcaOptimizerShape)
        .NoExample("has lists of several lengths; sdca_test covers it");
  }
}

}  // namespace tenon
