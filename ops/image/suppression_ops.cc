// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <queue>

#include "core/counted_memory.h"
#include "core/interruption.h"
#include "core/op_registry.h"
#include "ops/arguments.h"
#include "ops/maths.h"

namespace tenon {
namespace {

/// A box that is not chosen yet; it has been compared with the first `compared` chosen ones.
struct Candidate {
  int64_t box;
  float score;
  size_t compared = 0;

  friend bool operator<(const Candidate& a, const Candidate& b) {
    return a.score < b.score || (a.score == b.score && a.box > b.box);
  }
};

struct Limits {
  int64_t most = 0;
  float overlap = 0.5f;
  float score = -std::numeric_limits<float>::infinity();
  float sigma = 0;  // more than 0: overlaps lower scores (Soft-NMS)
};

/// The boxes chosen, the best first: each is less like those before it than the limit.
template <typename Similarity>
CountedVector<Candidate> Choose(absl::Span<const float> scores, const Limits& limits,
                                Similarity similarity) {
  std::priority_queue<Candidate, CountedVector<Candidate>> queue;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (scores[i] > limits.score) queue.push({static_cast<int64_t>(i), scores[i]});
  }
  CountedVector<Candidate> chosen;
  while (static_cast<int64_t>(chosen.size()) < limits.most && !queue.empty() && !Interrupted()) {
    Candidate next = queue.top();
    queue.pop();
    const float before = next.score;
    bool suppressed = false;
    for (size_t j = chosen.size(); j > next.compared && !suppressed;) {
      const float like = similarity(next.box, chosen[--j].box);
      if (limits.sigma > 0) {
        next.score *= std::exp(-0.5f / limits.sigma * like * like);
        if (next.score <= limits.score) break;
      } else {
        suppressed = like > limits.overlap;
      }
    }
    next.compared = chosen.size();
    if (suppressed) continue;
    if (next.score == before) {
      chosen.push_back(next);
    } else if (next.score > limits.score) {
      queue.push(next);
    }
  }
  return chosen;
}

/// How much of what two boxes [y1, x1, y2, x2] cover belongs to both.
float IntersectionOverUnion(const float* a, const float* b) {
  const auto low = [](const float* box, int i) { return std::min(box[i], box[i + 2]); };
  const auto high = [](const float* box, int i) { return std::max(box[i], box[i + 2]); };
  const auto area = [&](const float* box) {
    return (high(box, 0) - low(box, 0)) * (high(box, 1) - low(box, 1));
  };
  if (area(a) <= 0 || area(b) <= 0) return 0;
  float both = 1;
  for (const int i : {0, 1}) {
    both *= std::max(std::min(high(a, i), high(b, i)) - std::max(low(a, i), low(b, i)), 0.0f);
  }
  return both / (area(a) + area(b) - both);
}

CountedVector<float> Floats(const Tensor& t) {
  CountedVector<float> values(t.num_elements());
  Dispatch(t.dtype(), FloatTypes(), [&]<typename T>(T) {
    std::transform(t.data<T>(), t.data<T>() + t.num_elements(), values.begin(),
                   [](T v) { return static_cast<float>(v); });
  });
  return values;
}

/// Boxes or overlaps of `columns` columns, their scores, and the scalars that follow.
Status ReadBoxes(const KernelContext& ctx, int64_t columns, Limits* limits) {
  const Tensor &boxes = ctx.input(0), &scores = ctx.input(1);
  if (boxes.rank() != 2 || boxes.dim(1) != (columns > 0 ? columns : boxes.dim(0))) {
    return InvalidArgument(columns > 0 ? "boxes must be [n, 4], found shape "
                                       : "overlaps must be square, found shape ",
                           boxes.shape());
  }
  if (scores.rank() != 1 || scores.dim(0) != boxes.dim(0)) {
    return InvalidArgument("scores must be a vector of ", boxes.dim(0), " elements, found shape ",
                           scores.shape());
  }
  TENON_ASSIGN_OR_RETURN(limits->most, ReadInteger(ctx.input(2), "max_output_size"));
  if (limits->most < 0)
    return InvalidArgument("max_output_size is ", limits->most, ", wanted at least 0");
  float* const values[] = {&limits->overlap, &limits->score, &limits->sigma};
  const std::string_view names[] = {"iou_threshold", "score_threshold", "soft_nms_sigma"};
  for (int i = 3; i < ctx.num_inputs(); ++i) {
    TENON_RETURN_IF_ERROR(CheckRank(ctx.input(i), 0, names[i - 3]));
    *values[i - 3] = Floats(ctx.input(i))[0];
  }
  if (columns > 0 && !(limits->overlap >= 0 && limits->overlap <= 1)) {
    return InvalidArgument("iou_threshold must be in [0, 1], found ", limits->overlap);
  }
  if (limits->sigma < 0)
    return InvalidArgument("soft_nms_sigma is ", limits->sigma, ", wanted at least 0");
  return OkStatus();
}

Status Suppress(KernelContext& ctx, Limits limits, bool pad) {
  TENON_RETURN_IF_ERROR(ReadBoxes(ctx, 4, &limits));
  const CountedVector<float> boxes = Floats(ctx.input(0)), scores = Floats(ctx.input(1));
  const auto chosen = Choose(scores, limits, [&](int64_t a, int64_t b) {
    return IntersectionOverUnion(&boxes[a * 4], &boxes[b * 4]);
  });
  const auto found = static_cast<int64_t>(chosen.size()), count = pad ? limits.most : found;
  TENON_ASSIGN_OR_RETURN(Tensor * indices, ctx.AllocateOutput(0, {count}));
  for (int64_t i = 0; i < count; ++i) {
    indices->data<int32_t>()[i] = i < found ? static_cast<int32_t>(chosen[i].box) : 0;
  }
  if (ctx.num_outputs() == 1) return OkStatus();
  const int last = ctx.num_outputs() - 1;
  ctx.set_output(last, Tensor::Scalar(static_cast<int32_t>(found)));
  if (last == 1) return OkStatus();
  TENON_ASSIGN_OR_RETURN(Tensor * kept, ctx.AllocateOutput(1, {count}));
  return DispatchStatus(kept->dtype(), TypeList<float, Half>(), [&]<typename T>(T) {
    for (int64_t i = 0; i < count; ++i) {
      kept->data<T>()[i] = static_cast<T>(i < found ? chosen[i].score : 0.0f);
    }
  });
}

Status SuppressionV1Kernel(KernelContext& ctx, float iou_threshold) {
  return Suppress(ctx, {.overlap = iou_threshold}, false);
}
Status SuppressionKernel(KernelContext& ctx) { return Suppress(ctx, {}, false); }
Status PaddedSuppressionKernel(KernelContext& ctx, bool pad) { return Suppress(ctx, {}, pad); }

Status OverlapsKernel(KernelContext& ctx) {
  Limits limits;
  TENON_RETURN_IF_ERROR(ReadBoxes(ctx, 0, &limits));
  const float* const overlaps = ctx.input(0).data<float>();
  const int64_t n = ctx.input(0).dim(0);
  const auto chosen = Choose(ctx.input(1).flat<float>(), limits,
                             [&](int64_t a, int64_t b) { return overlaps[a * n + b]; });
  TENON_ASSIGN_OR_RETURN(Tensor * indices,
                         ctx.AllocateOutput(0, {static_cast<int64_t>(chosen.size())}));
  for (size_t i = 0; i < chosen.size(); ++i)
    indices->data<int32_t>()[i] = static_cast<int32_t>(chosen[i].box);
  return OkStatus();
}

Status SuppressionShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape boxes, c.WithRank(0, 2));
  TENON_ASSIGN_OR_RETURN(const PartialShape scores, c.WithRank(1, 1));
  TENON_RETURN_IF_ERROR(boxes.WithDim(1, -1).MergeWith({scores.dim(0), -1}).status());
  for (int i = 2; i < c.num_inputs(); ++i) TENON_RETURN_IF_ERROR(c.WithRank(i, 0).status());
  for (int i = 0; i < c.num_outputs(); ++i) {
    c.set_output(i, i > 0 && i == c.num_outputs() - 1 ? PartialShape(Shape()) : PartialShape{-1});
  }
  return OkStatus();
}

}  // namespace

void RegisterSuppressionOps(OpRegistry& ops) {
  const auto boxes = Tensor::Of<float>({3, 4}, {0, 0, 1, 1, 0, 0.1f, 1, 1.1f, 2, 2, 3, 3});
  const Tensor scores = Tensor::Vector({0.5f, 0.9f, 0.7f}), most = Tensor::Scalar(3),
               half = Tensor::Scalar(0.5f), none = Tensor::Scalar(0.0f);
  const AttributeMap floats = {{"T", DType::kFloat}, {"T_threshold", DType::kFloat}};
  ops.Add("NonMaxSuppression", SuppressionShape, SuppressionV1Kernel, {.attrs = {"iou_threshold"}})
      .Example({boxes, scores, most});
  ops.Add("NonMaxSuppressionV2", SuppressionShape, SuppressionKernel)
      .Example({boxes, scores, most, half}, floats);
  ops.Add("NonMaxSuppressionV3", SuppressionShape, SuppressionKernel)
      .Example({boxes, scores, most, half, none}, floats);
  ops.Add("NonMaxSuppressionV4", SuppressionShape, PaddedSuppressionKernel,
          {.attrs = {"pad_to_max_output_size"}})
      .Example({boxes, scores, most, half, none}, floats);
  ops.Add("NonMaxSuppressionV5", SuppressionShape, PaddedSuppressionKernel,
          {.attrs = {"pad_to_max_output_size"}})
      .Example({boxes, scores, most, half, none, half}, {{"T", DType::kFloat}});
  ops.Add("NonMaxSuppressionWithOverlaps", SuppressionShape, OverlapsKernel)
      .Example({Shape{3, 3}, scores, most, half, none});
}

}  // namespace tenon
