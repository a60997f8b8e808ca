// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <queue>
#include <tuple>

#include "core/base/interruption.h"
#include "core/base/parallel.h"
#include "core/memory/counted_memory.h"
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/elements.h"
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
  for (int i = 3; i < ctx.num_inputs(); ++i) {
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

/// A box chosen for a class.
struct Detection {
  int64_t box, kind;
  float score;
};

/// The best boxes of all classes of one image.
CountedVector<Detection> Detect(const float* boxes, int64_t boxes_per_place, const float* scores,
                                int64_t places, int64_t classes, const Limits& limits) {
  CountedVector<Detection> found;
  CountedVector<float> column(places);
  for (int64_t kind = 0; kind < classes && !Interrupted(); ++kind) {
    for (int64_t i = 0; i < places; ++i) column[i] = scores[i * classes + kind];
    const auto box = [&](int64_t i) {
      return i * boxes_per_place + (boxes_per_place > 1 ? kind : 0);
    };
    for (const Candidate& c : Choose(column, limits, [&](int64_t a, int64_t b) {
           return IntersectionOverUnion(boxes + box(a) * 4, boxes + box(b) * 4);
         })) {
      found.push_back({box(c.box), kind, c.score});
    }
  }
  std::sort(found.begin(), found.end(), [](const Detection& a, const Detection& b) {
    return std::tuple(-a.score, a.kind, a.box) < std::tuple(-b.score, b.kind, b.box);
  });
  return found;
}

Status CombinedSuppressionKernel(KernelContext& ctx, bool pad_per_class, bool clip) {
  const Tensor &boxes = ctx.input(0), &scores = ctx.input(1);
  if (boxes.rank() != 4 || scores.rank() != 3 || boxes.dim(0) != scores.dim(0) ||
      boxes.dim(1) != scores.dim(1) || boxes.dim(3) != 4 ||
      (boxes.dim(2) != 1 && boxes.dim(2) != scores.dim(2))) {
    return InvalidArgument(
        "boxes must be [batch, n, 1 or classes, 4] and scores [batch, n, classes], found shapes ",
        boxes.shape(), " and ", scores.shape());
  }
  const int64_t most = ctx.input(2).scalar<int32_t>(), total = ctx.input(3).scalar<int32_t>();
  const Limits limits = {
      .most = most, .overlap = ctx.input(4).scalar<float>(), .score = ctx.input(5).scalar<float>()};
  if (most <= 0 || total <= 0 || !(limits.overlap >= 0 && limits.overlap <= 1)) {
    return InvalidArgument(
        "max_output_size_per_class and max_total_size must be positive and iou_threshold in "
        "[0, 1], found ",
        most, ", ", total, " and ", limits.overlap);
  }
  const int64_t batch = boxes.dim(0), places = boxes.dim(1), classes = scores.dim(2);
  const int64_t count = pad_per_class ? std::min(total, most * classes) : total;
  TENON_ASSIGN_OR_RETURN(Tensor * out_boxes, ctx.CreateOutput(0, {batch, count, 4}));
  TENON_ASSIGN_OR_RETURN(Tensor * out_scores, ctx.CreateOutput(1, {batch, count}));
  TENON_ASSIGN_OR_RETURN(Tensor * out_classes, ctx.CreateOutput(2, {batch, count}));
  TENON_ASSIGN_OR_RETURN(Tensor * valid, ctx.AllocateOutput(3, {batch}));
  for (Tensor* t : {out_boxes, out_scores, out_classes}) ZeroElements(t);
  ParallelFor(batch, 1e3 * static_cast<double>(places * classes), [&](int64_t b, int64_t end) {
    for (; b < end; ++b) {
      const float* const from = boxes.data<float>() + b * places * boxes.dim(2) * 4;
      const auto found = Detect(from, boxes.dim(2), scores.data<float>() + b * places * classes,
                                places, classes, limits);
      const int64_t n = std::min(count, static_cast<int64_t>(found.size()));
      valid->data<int32_t>()[b] = static_cast<int32_t>(n);
      for (int64_t i = 0; i < n; ++i) {
        const int64_t at = b * count + i;
        out_scores->data<float>()[at] = found[i].score;
        out_classes->data<float>()[at] = static_cast<float>(found[i].kind);
        for (int64_t k = 0; k < 4; ++k) {
          const float v = from[found[i].box * 4 + k];
          out_boxes->data<float>()[at * 4 + k] = clip ? std::max(std::min(v, 1.0f), 0.0f) : v;
        }
      }
    }
  });
  return OkStatus();
}

}  // namespace

void RegisterSuppressionOps(OpRegistry& ops) {
  const auto boxes = Tensor::Of<float>({3, 4}, {0, 0, 1, 1, 0, 0.1f, 1, 1.1f, 2, 2, 3, 3});
  const Tensor scores = Tensor::Vector({0.5f, 0.9f, 0.7f}), most = Tensor::Scalar(3),
               half = Tensor::Scalar(0.5f), none = Tensor::Scalar(0.0f);
  const AttributeMap floats = {{"T", DType::kFloat}, {"T_threshold", DType::kFloat}};
  ops.Add("NonMaxSuppression", SuppressionV1Kernel, {.attrs = {"iou_threshold"}})
      .Example({boxes, scores, most});
  ops.Add("NonMaxSuppressionV2", SuppressionKernel).Example({boxes, scores, most, half}, floats);
  ops.Add("NonMaxSuppressionV3", SuppressionKernel)
      .Example({boxes, scores, most, half, none}, floats);
  ops.Add("NonMaxSuppressionV4", PaddedSuppressionKernel, {.attrs = {"pad_to_max_output_size"}})
      .Example({boxes, scores, most, half, none}, floats);
  ops.Add("NonMaxSuppressionV5", PaddedSuppressionKernel, {.attrs = {"pad_to_max_output_size"}})
      .Example({boxes, scores, most, half, none, half}, {{"T", DType::kFloat}});
  ops.Add("CombinedNonMaxSuppression", CombinedSuppressionKernel,
          {.attrs = {"pad_per_class", "clip_boxes"}})
      .Example({Shape{2, 5, 1, 4}, Shape{2, 5, 3}, most, most, half, none});
  ops.Add("NonMaxSuppressionWithOverlaps", OverlapsKernel)
      .Example({Shape{3, 3}, scores, most, half, none});
}

}  // namespace tenon
