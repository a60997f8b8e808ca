// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <forward_list>

#include "core/base/parallel.h"
#include "core/graph/graph.h"
#include "core/op/op_registry.h"
#include "ops/broadcast.h"
#include "ops/elements.h"
#include "ops/elementwise.h"
#include "ops/elementwise_kernel.h"

namespace tenon {
namespace {

constexpr int kMostSteps = 32, kMostInputs = 64;
/// Elements of a tile: a multiple of all vectors' lengths, so that only the last tile has a rest.
constexpr int64_t kTileUnit = 64, kLongestTile = 1024;
/// Where rows are shorter, the ops have ways of their own to repeat them.
constexpr int64_t kShortestRun = 64;
/// What tiles of temporaries may take of the first cache, beside those of inputs and outputs.
constexpr int64_t kCachedBytes = 16 << 10;
constexpr int64_t kScratchBytes = std::max(kCachedBytes, kMostSteps* kTileUnit * 16);

/// A value within a tile: `base` and the tile's place in the tensor, or a place in the scratch.
struct Place {
  const char* base = nullptr;  // null: the scratch
  int64_t advance = 0;         // bytes that an element of the tensor takes; 0 for one element
  int64_t offset = 0;          // in the scratch
  int64_t step = 1;            // from element to element, for the loops
};

/// An operand that is repeated in some dimensions.
struct Repeated {
  int value;
  const char* from;
  BroadcastPlan plan;  // operand 0 is the one, operand 1 the result

  /// Where it is for the elements from `at` on, of one run of the innermost dimension.
  const char* At(int64_t at, int64_t size) const {
    int64_t offset = at % plan.inner().size * plan.inner().strides[0];
    int64_t run = at / plan.inner().size;
    for (size_t d = plan.dims.size() - 1; d-- > 0;) {
      offset += run % plan.dims[d].size * plan.dims[d].strides[0];
      run /= plan.dims[d].size;
    }
    return from + offset * size;
  }
};

/// Runs all its ops on a piece of the elements that the first cache holds, before the next piece.
/// Values are numbered: the inputs, and behind them what each step gives.
class FusedElementwiseKernel final : public Kernel {
 public:
  FusedElementwiseKernel(KernelConstruction& c, const OpRegistry& ops)
      : Kernel(Named(c)),
        dtype_(c.Attr<DType>("T")),
        type_{dtype_},
        size_(static_cast<int64_t>(StrideOf(dtype_))),
        num_inputs_(static_cast<int>(c.input_types().size())) {
    const auto names = c.Attr<std::vector<std::string>>("names");
    const auto kinds = c.Attr<std::vector<std::string>>("ops");
    const auto operands = c.Attr<std::vector<int64_t>>("operands");
    const auto results = c.Attr<std::vector<int64_t>>("results");
    const size_t n = kinds.size();
    if (n == 0 || n > kMostSteps || num_inputs_ > kMostInputs || names.size() != n ||
        operands.size() != 2 * n || results.size() != c.output_types().size()) {
      c.Fail(InvalidArgument("found ", n, " ops, ", names.size(), " names, ", operands.size(),
                             " operands, ", num_inputs_, " inputs and ", results.size(),
                             " results of ", c.output_types().size(), "; wanted 1 to ", kMostSteps,
                             " ops with a name and two operands each, at most ", kMostInputs,
                             " inputs, and a result for each output"));
      return;
    }
    last_use_.assign(num_inputs_ + n, -1);
    for (size_t k = 0; k < n && c.status().ok(); ++k) {
      const Status added =
          AddStep(c, ops, names[k], kinds[k], operands[2 * k], operands[2 * k + 1]);
      c.Fail(AnnotateWithNode(added, names[k], kinds[k], c.device().name()));
    }
    for (size_t r = 0; r < results.size() && c.status().ok(); ++r) {
      const int64_t k = results[r];
      if (k < 0 || k >= static_cast<int64_t>(n) || steps_[k].result >= 0) {
        c.Fail(InvalidArgument("result ", r, " is ", k, ", wanted a step below ", n,
                               " that is no other result"));
      } else {
        steps_[k].result = static_cast<int>(r);
      }
    }
    if (c.status().ok()) GiveSlots();
  }

  Status Compute(KernelContext& ctx) const override {
    Shapes shapes;
    if (!FindShapes(ctx, &shapes)) return RunOneByOne(ctx);
    std::vector<Tensor> before;  // of the steps that have another shape
    for (int k = 0; k < num_steps(); ++k) {
      if (shapes.IsWhole(num_inputs_ + k)) continue;
      before.resize(num_steps());
      const auto operand = [&](int v) -> Tensor {
        return v < 0 ? Tensor() : v < num_inputs_ ? ctx.input(v) : before[v - num_inputs_];
      };
      TENON_ASSIGN_OR_RETURN(before[k],
                             RunStep(ctx, k, operand(steps_[k].a), operand(steps_[k].b)));
    }
    return RunTogether(ctx, shapes, before);
  }

 private:
  struct Step {
    std::unique_ptr<Kernel> kernel;
    PiecewiseKernel::Pieces pieces;
    int a, b;         // the operands' numbers; b is -1 for one operand
    int result = -1;  // the output that it gives
    int slot = -1;    // else where it is in the scratch
  };

  /// What shape each value has, and the one that most steps have, in which they run together.
  struct Shapes {
    const Shape* of[kMostInputs + kMostSteps];
    const Shape* whole = nullptr;
    std::forward_list<Shape> made;
    bool IsWhole(int value) const { return of[value] == whole || *of[value] == *whole; }
  };

  /// The op with what it does, for traces and errors: "_FusedElementwise: Add, Tanh, Mul".
  static KernelConstruction Named(const KernelConstruction& c) {
    const auto ops = c.attrs().GetOr<std::vector<std::string>>("ops", {});
    return {c.name(),         StrCat(c.op(), ": ", Join(ops, ", ")),
            c.attrs(),        c.input_types(),
            c.output_types(), c.device()};
  }

  int num_steps() const { return static_cast<int>(steps_.size()); }

  Status AddStep(const KernelConstruction& c, const OpRegistry& ops, const std::string& name,
                 const std::string& op, int64_t a, int64_t b) {
    const OpRegistration* const registration = ops.Find(op);
    const int values = num_inputs_ + num_steps();
    if (registration == nullptr || a < 0 || a >= values || b < -1 || b >= values) {
      return InvalidArgument("step ", num_steps(), " is ", op, " of ", a, " and ", b,
                             "; wanted an elementwise op, and numbers below ", values);
    }
    const AttributeMap attrs{{"T", dtype_}};
    KernelConstruction step(name, op, attrs, DTypeVector(b < 0 ? 1 : 2, dtype_), type_, c.device());
    TENON_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, registration->MakeKernel(step));
    const auto* const loops = dynamic_cast<const PiecewiseKernel*>(kernel.get());
    const auto pieces = loops == nullptr ? PiecewiseKernel::Pieces() : loops->pieces();
    if ((b < 0 ? pieces.unary == nullptr : pieces.binary == nullptr)) {
      return InvalidArgument("step ", num_steps(), " is ", op, ", which is not elementwise for ",
                             b < 0 ? "one operand" : "two operands", " of ", dtype_);
    }
    cost_ns_ += pieces.cost_ns;
    last_use_[a] = num_steps();
    if (b >= 0) last_use_[b] = num_steps();
    steps_.push_back({std::move(kernel), pieces, static_cast<int>(a), static_cast<int>(b)});
    return OkStatus();
  }

  /// A place in the scratch for each step that is no result; what is not used any more makes room
  /// for the step that used it last.
  void GiveSlots() {
    std::vector<int> free;
    for (int k = 0; k < num_steps(); ++k) {
      Step& step = steps_[k];
      for (const int v : {step.a, step.b == step.a ? -1 : step.b}) {
        if (v < num_inputs_ || last_use_[v] != k) continue;
        if (const int slot = steps_[v - num_inputs_].slot; slot >= 0) free.push_back(slot);
      }
      if (step.result >= 0) continue;
      if (free.empty()) free.push_back(num_slots_++);
      step.slot = free.back();
      free.pop_back();
    }
  }

  /// False where steps have to run one by one: shapes do not fit, for which the op in question has
  /// its error, or are of a kind that is left to the ops.
  bool FindShapes(const KernelContext& ctx, Shapes* shapes) const {
    for (int i = 0; i < num_inputs_; ++i) shapes->of[i] = &ctx.input(i).shape();
    for (int k = 0; k < num_steps(); ++k) {
      const Shape* const a = shapes->of[steps_[k].a];
      const Shape* const b = steps_[k].b < 0 ? a : shapes->of[steps_[k].b];
      const Shape*& of = shapes->of[num_inputs_ + k];
      if (a == b || *a == *b) {
        of = a;
      } else if (steps_[k].pieces.same_shape) {
        return false;
      } else if (a->rank() == 0 || b->rank() == 0) {
        of = a->rank() == 0 ? b : a;
      } else {
        const StatusOr<BroadcastPlan> plan = PlanBroadcast({a, b});
        if (!plan.ok()) return false;
        of = &shapes->made.emplace_front(plan->shape);
      }
      const int64_t most = shapes->whole == nullptr ? -1 : shapes->whole->num_elements();
      if (of->num_elements() >= most) shapes->whole = of;
    }
    // A step of another shape runs before the others, so that it must not need them.
    for (int k = 0; k < num_steps(); ++k) {
      if (shapes->IsWhole(num_inputs_ + k)) continue;
      for (const int v : {steps_[k].a, steps_[k].b}) {
        if (v >= num_inputs_ && shapes->IsWhole(v)) return false;
      }
    }
    return true;
  }

  StatusOr<Tensor> RunStep(const KernelContext& ctx, int k, Tensor a, Tensor b) const {
    const Step& step = steps_[k];
    Value in[2] = {{std::move(a)}, {std::move(b)}}, out;
    KernelContext call(ctx.device_run(), type_, in, step.b < 0 ? 1 : 2, &out);
    TENON_RETURN_IF_ERROR(ErrorOf(ctx, k, step.kernel->Compute(call)));
    return std::move(out.tensor);
  }

  Status ErrorOf(const KernelContext& ctx, int k, const Status& status) const {
    const Kernel& kernel = *steps_[k].kernel;
    return AnnotateWithNode(status, kernel.name(), kernel.op(), ctx.device().name());
  }

  Status RunOneByOne(KernelContext& ctx) const {
    absl::InlinedVector<Tensor, 16> values(num_inputs_ + num_steps());
    for (int i = 0; i < num_inputs_; ++i) values[i] = ctx.TakeInput(i);
    for (int k = 0; k < num_steps(); ++k) {
      const Step& step = steps_[k];
      const auto operand = [&](int v) -> Tensor {
        if (v < 0) return {};
        const bool is_kept = last_use_[v] != k || step.a == step.b ||
                             (v >= num_inputs_ && steps_[v - num_inputs_].result >= 0);
        return is_kept ? values[v] : std::move(values[v]);
      };
      Tensor a = operand(step.a), b = operand(step.b);
      TENON_ASSIGN_OR_RETURN(values[num_inputs_ + k], RunStep(ctx, k, std::move(a), std::move(b)));
    }
    for (int k = 0; k < num_steps(); ++k) {
      if (steps_[k].result < 0) continue;
      ctx.set_output(steps_[k].result, std::move(values[num_inputs_ + k]));
    }
    return OkStatus();
  }

  Status RunTogether(KernelContext& ctx, const Shapes& shapes, std::vector<Tensor>& before) const {
    const Shape whole = *shapes.whole;  // the inputs may be handed over
    const int64_t n = whole.num_elements();
    absl::InlinedVector<Place, 32> places(num_inputs_ + num_steps());
    absl::InlinedVector<bool, 32> is_whole(places.size());
    for (size_t v = 0; v < places.size(); ++v) is_whole[v] = shapes.IsWhole(static_cast<int>(v));
    absl::InlinedVector<Repeated, 2> repeated;
    int64_t run = n;  // elements of a row in which no operand is repeated within
    const auto place = [&](int v, const Tensor& tensor) -> Status {
      const char* const at = static_cast<const char*>(tensor.raw_data());
      places[v] = {.base = at, .advance = is_whole[v] ? size_ : 0, .step = is_whole[v] ? 1 : 0};
      if (is_whole[v] || tensor.num_elements() == 1) return OkStatus();
      TENON_ASSIGN_OR_RETURN(BroadcastPlan plan, PlanBroadcastTo(tensor.shape(), whole));
      run = std::min(run, plan.inner().size);
      places[v].step = plan.inner().strides[0];
      repeated.push_back({v, at, std::move(plan)});
      return OkStatus();
    };
    const int64_t slots = std::max(1, num_slots_);
    const int64_t fits = kCachedBytes / (slots * size_) / kTileUnit * kTileUnit;
    const int64_t tile = std::clamp(fits, kTileUnit, kLongestTile);
    for (int k = 0; k < num_steps(); ++k) {
      if (!is_whole[num_inputs_ + k]) continue;
      places[num_inputs_ + k] = {.offset = steps_[k].slot * tile * size_};
      for (const int v : {steps_[k].a, steps_[k].b}) {
        const bool is_placed =
            v < 0 || places[v].base != nullptr || (v >= num_inputs_ && is_whole[v]);
        if (is_placed) continue;
        TENON_RETURN_IF_ERROR(place(v, v < num_inputs_ ? ctx.input(v) : before[v - num_inputs_]));
      }
    }
    if (run < std::min(n, kShortestRun)) return RunOneByOne(ctx);
    TENON_RETURN_IF_ERROR(PlaceResults(ctx, whole, is_whole, before, &places));
    std::atomic<int> failed{-1};
    ParallelFor(n, cost_ns_, [&](int64_t begin, int64_t end) {
      alignas(64) char scratch[kScratchBytes];
      absl::InlinedVector<Place, 32> at = places;  // of the tile
      while (begin < end) {
        const int64_t count = std::min({tile, end - begin, run - begin % run});
        for (size_t v = 0; v < places.size(); ++v) {
          const Place& p = places[v];
          at[v].base = p.base == nullptr ? scratch + p.offset : p.base + begin * p.advance;
        }
        for (const Repeated& r : repeated) at[r.value].base = r.At(begin, size_);
        for (int k = 0; k < num_steps(); ++k) {
          if (!is_whole[num_inputs_ + k]) continue;
          const Step& step = steps_[k];
          const Place& a = at[step.a];
          char* const to = const_cast<char*>(at[num_inputs_ + k].base);
          if (step.b < 0) {
            step.pieces.unary(a.base, to, count);
          } else if (const Place& b = at[step.b];
                     !step.pieces.binary(a.base, a.step, b.base, b.step, to, count)) {
            failed.store(k, std::memory_order_relaxed);
          }
        }
        begin += count;
      }
    });
    const int k = failed;
    return k < 0 ? OkStatus() : ErrorOf(ctx, k, InvalidArgument(steps_[k].pieces.error));
  }

  /// Memory for the outputs. One takes that of an input which no step needs after the one that
  /// gives it: within a tile the steps run in their order.
  Status PlaceResults(KernelContext& ctx, const Shape& whole,
                      const absl::InlinedVector<bool, 32>& is_whole, std::vector<Tensor>& before,
                      absl::InlinedVector<Place, 32>* places) const {
    absl::InlinedVector<bool, 32> taken(num_inputs_, false);
    for (int k = 0; k < num_steps(); ++k) {
      const int result = steps_[k].result;
      if (result < 0) continue;
      if (!is_whole[num_inputs_ + k]) {
        ctx.set_output(result, std::move(before[k]));
        continue;
      }
      int from = -1;
      for (int i = 0; i < num_inputs_ && from < 0; ++i) {
        const bool fits = is_whole[i] && !taken[i] && last_use_[i] <= k;
        if (fits && ctx.input(i).HasOneReference()) from = i;
      }
      StatusOr<Tensor*> out = nullptr;
      if (from < 0) {
        out = ctx.AllocateOutput(result, whole);
      } else {
        taken[from] = true;
        out = ctx.ForwardOrAllocate(from, result, whole);
      }
      if (!out.ok()) return out.status();
      (*places)[num_inputs_ + k] = {.base = static_cast<const char*>((*out)->raw_data()),
                                    .advance = size_};
    }
    return OkStatus();
  }

  const DType dtype_;
  const DTypeVector type_;
  const int64_t size_;
  const int num_inputs_;
  std::vector<Step> steps_;
  std::vector<int> last_use_;  // by value: the last step that takes it, or -1
  int num_slots_ = 0;
  double cost_ns_ = 0;
};

}  // namespace

void RegisterFusedElementwise(OpRegistry& ops) {
  // tanh(x + y) * x, and the sum.
  const AttributeMap example{{"ops", std::vector<std::string>{"Add", "Tanh", "Mul"}},
                             {"names", std::vector<std::string>{"sum", "tanh", "product"}},
                             {"operands", std::vector<int64_t>{0, 1, 2, -1, 3, 0}},
                             {"results", std::vector<int64_t>{2, 0}},
                             {"M", 2}};
  ops.Get("_FusedElementwise")
      .Shape(UnknownShape)
      .AddKernel(kCpu, {.types = {{"T", DTypesOf(FloatComplexTypes())}}},
                 [&ops](KernelConstruction& c) {
                   return std::make_unique<FusedElementwiseKernel>(c, ops);
                 })
      .Example({Shape{2, 3}, Shape{2, 3}}, example)
      .Example({Shape{2, 3}, Shape{3}}, example)
      .Example({Shape{}, Shape{2, 70}}, example);
}

}  // namespace tenon
