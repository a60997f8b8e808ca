// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/base/interruption.h"
#include "core/base/parallel.h"
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/composition.h"
#include "ops/image/image_ops.h"
#include "ops/image/resizing.h"

namespace tenon {
namespace {

float Lanczos(float x, float radius) {
  if (x > radius) return 0;
  if (x <= 1e-3f) return 1;
  const auto pi = static_cast<float>(std::numbers::pi);
  return radius * std::sin(pi * x) * std::sin(pi * x / radius) / (pi * pi * x * x);
}

/// A way to weigh pixels by their distance x >= 0, which counts up to `radius`.
struct SamplingFilter {
  std::string_view name;
  float radius;
  float (*weigh)(float x);
};
constexpr SamplingFilter kFilters[] = {
    {"lanczos1", 1, [](float x) { return Lanczos(x, 1); }},
    {"lanczos3", 3, [](float x) { return Lanczos(x, 3); }},
    {"lanczos5", 5, [](float x) { return Lanczos(x, 5); }},
    {"gaussian", 1.5f, [](float x) { return x >= 1.5f ? 0 : std::exp(-2 * x * x); }},
    {"box", 1, [](float x) { return x < 0.5f    ? 1.0f
                                    : x == 0.5f ? 0.5f
                                                : 0.0f; }},
    {"triangle", 1, [](float x) { return x < 1 ? 1 - x : 0; }},
    // Keys 1981
    {"keyscubic", 2,
     [](float x) {
       return x >= 2   ? 0
              : x >= 1 ? ((-0.5f * x + 2.5f) * x - 4) * x + 2
                       : (1.5f * x - 2.5f) * x * x + 1;
     }},
    // Mitchell and Netravali 1988
    {"mitchellcubic", 2,
     [](float x) {
       return x >= 2   ? 0
              : x >= 1 ? ((-7.0f / 18 * x + 2) * x - 10.0f / 3) * x + 16.0f / 9
                       : (7.0f / 6 * x - 2) * x * x + 8.0f / 9;
     }},
};

/// How a node resamples.
struct Resampling : KernelState {
  explicit Resampling(KernelConstruction& c) : antialias(c.Attr<bool>("antialias")) {
    const std::string type = c.Attr<std::string>("kernel_type");
    for (const SamplingFilter& f : kFilters) {
      if (f.name == type) filter = &f;
    }
    if (filter == nullptr) c.Fail(InvalidArgument("Unrecognized kernel type: ", type));
  }
  const SamplingFilter* filter = nullptr;
  bool antialias;
};

/// For each new row or column the old ones it is made of: `size` from starts[i] on, whose weights
/// follow each other.
struct Spans {
  int64_t size = 0;
  CountedVector<int64_t> starts;
  CountedVector<float> weights;
};

StatusOr<Spans> SpansOf(const Resampling& how, int64_t to, int64_t from, float scale, float shift) {
  const auto inverse = static_cast<float>(1.0 / static_cast<double>(scale));
  const float moved = -inverse * shift, limit = static_cast<float>(from);
  // What shrinks is smoothed.
  const float stretch = how.antialias ? std::max(inverse, 1.0f) : 1.0f;
  const float reach = how.filter->radius * stretch;
  Spans spans;
  spans.size =
      reach < limit ? std::min(2 * static_cast<int64_t>(std::ceil(reach)) + 1, from) : from;
  TENON_ASSIGN_OR_RETURN(const int64_t weights, MultiplySizes(spans.size, to));
  spans.starts.resize(to);
  spans.weights.resize(weights);
  for (int64_t i = 0; i < to && !Interrupted(); ++i) {
    const float scaled = (static_cast<float>(i) + 0.5f) * inverse;
    const float at = scaled + moved;
    if (!(at >= 0 && at <= limit)) continue;  // nothing is made of what lies outside
    const auto pixel = [&](float v) {
      return static_cast<int64_t>(std::clamp(v, 0.0f, static_cast<float>(from - 1)));
    };
    const int64_t begin = pixel(std::ceil(at - reach - 0.5f));
    const int64_t count = std::min(pixel(std::floor(at + reach - 0.5f)) + 1 - begin, spans.size);
    float* const weight = &spans.weights[i * spans.size];
    float sum = 0;
    for (int64_t k = 0; k < count; ++k) {
      const float distance = static_cast<float>(begin + k) + 0.5f - at;
      weight[k] = how.filter->weigh(std::abs(distance * (1 / stretch)));
      sum += weight[k];
    }
    const bool some = std::abs(sum) >= 1000 * std::numeric_limits<float>::min();
    for (int64_t k = 0; k < count; ++k) weight[k] = some ? weight[k] * (1 / sum) : 0;
    spans.starts[i] = begin;
  }
  return spans;
}

/// The spans by which gradients go back from `to` rows or columns to `from`.
StatusOr<Spans> Reversed(const Spans& spans, int64_t to, int64_t from) {
  CountedVector<int64_t> first(from, -1), last(from, -1);
  const auto each = [&](auto fn) {
    for (int64_t i = 0; i < to; ++i) {
      for (int64_t k = 0; k < std::min(spans.size, from - spans.starts[i]); ++k) {
        const float weight = spans.weights[i * spans.size + k];
        if (weight != 0) fn(i, spans.starts[i] + k, weight);
      }
    }
  };
  Spans back;
  each([&](int64_t i, int64_t pixel, float) {
    if (first[pixel] < 0) first[pixel] = i;
    last[pixel] = i;
    back.size = std::max(back.size, i - first[pixel] + 1);
  });
  TENON_ASSIGN_OR_RETURN(const int64_t weights, MultiplySizes(back.size, from));
  back.weights.resize(weights);
  each([&](int64_t i, int64_t pixel, float weight) {
    back.weights[pixel * back.size + i - first[pixel]] += weight;
  });
  for (int64_t& start : first) start = std::max<int64_t>(start, 0);
  back.starts = std::move(first);
  return back;
}

/// The images as `rows` and `columns` make new ones of them.
template <typename T>
void Resample(const Tensor& in, const Spans& rows, const Spans& columns, Tensor* out) {
  const int64_t height = in.dim(1), width = in.dim(2), channels = in.dim(3);
  const int64_t new_height = out->dim(1), new_width = out->dim(2), row_size = width * channels;
  const double cost = static_cast<double>(rows.size * row_size) +
                      static_cast<double>(columns.size * new_width * channels);
  ParallelFor(in.dim(0) * new_height, cost, [&](int64_t begin, int64_t end) {
    CountedVector<float> mixed(row_size);
    for (int64_t row = begin; row < end; ++row) {
      const int64_t y = row % new_height, first = rows.starts[y];
      const T* from = in.data<T>() + (row / new_height * height + first) * row_size;
      std::fill(mixed.begin(), mixed.end(), 0.0f);
      const int64_t rows_mixed = std::min(rows.size, height - first);
      for (int64_t k = 0; k < rows_mixed && !Interrupted(); ++k, from += row_size) {
        const float weight = rows.weights[y * rows.size + k];
        for (int64_t i = 0; i < row_size; ++i) mixed[i] += weight * static_cast<float>(from[i]);
      }
      float* to = out->data<float>() + row * new_width * channels;
      std::fill_n(to, new_width * channels, 0.0f);
      for (int64_t x = 0; x < new_width && !Interrupted(); ++x, to += channels) {
        const float* pixel = mixed.data() + columns.starts[x] * channels;
        for (int64_t k = 0; k < std::min(columns.size, width - columns.starts[x]); ++k) {
          const float weight = columns.weights[x * columns.size + k];
          for (int64_t c = 0; c < channels; ++c) to[c] += weight * *pixel++;
        }
      }
    }
  });
}

/// Scale and translation of rows and columns, inputs 2 and 3.
struct Placement {
  float scale[2], shift[2];
};
StatusOr<Placement> ReadPlacement(const KernelContext& ctx) {
  const Tensor &scale = ctx.input(2), &shift = ctx.input(3);
  if (scale.shape() != Shape{2} || shift.shape() != Shape{2}) {
    return InvalidArgument("scale and translation must have 2 elements, found shapes ",
                           scale.shape(), " and ", shift.shape());
  }
  const float *s = scale.data<float>(), *t = shift.data<float>();
  if (s[0] > 0 && s[1] > 0) return Placement{{s[0], s[1]}, {t[0], t[1]}};
  return InvalidArgument("scale must be positive, found ", s[0], " and ", s[1]);
}

Status ScaleKernel(KernelContext& ctx, const Tensor& in, const Resampling& how) {
  TENON_RETURN_IF_ERROR(CheckImages(in, "images"));
  TENON_ASSIGN_OR_RETURN(const DimVector size, ReadResize(ctx.input(1), false, false));
  TENON_ASSIGN_OR_RETURN(const Placement place, ReadPlacement(ctx));
  TENON_ASSIGN_OR_RETURN(Tensor * out,
                         ctx.CreateOutput(0, {in.dim(0), size[0], size[1], in.dim(3)}));
  if (out->num_elements() == 0) return OkStatus();
  TENON_ASSIGN_OR_RETURN(const Spans rows,
                         SpansOf(how, size[0], in.dim(1), place.scale[0], place.shift[0]));
  TENON_ASSIGN_OR_RETURN(const Spans columns,
                         SpansOf(how, size[1], in.dim(2), place.scale[1], place.shift[1]));
  return DispatchStatus(in.dtype(), ImageTypes(),
                        [&]<typename T>(T) { Resample<T>(in, rows, columns, out); });
}

Status ScaleGradKernel(KernelContext& ctx, const Resampling& how) {
  const Tensor &dy = ctx.input(0), &image = ctx.input(1);
  TENON_RETURN_IF_ERROR(CheckImages(dy, "grads", true));
  TENON_RETURN_IF_ERROR(CheckImages(image, "original_image", true));
  TENON_ASSIGN_OR_RETURN(const Placement place, ReadPlacement(ctx));
  TENON_ASSIGN_OR_RETURN(Tensor * out,
                         ctx.CreateOutput(0, {dy.dim(0), image.dim(1), image.dim(2), dy.dim(3)}));
  if (out->num_elements() == 0) return OkStatus();
  const auto back = [&](int i) -> StatusOr<Spans> {
    TENON_ASSIGN_OR_RETURN(const Spans spans, SpansOf(how, dy.dim(i + 1), image.dim(i + 1),
                                                      place.scale[i], place.shift[i]));
    return Reversed(spans, dy.dim(i + 1), image.dim(i + 1));
  };
  TENON_ASSIGN_OR_RETURN(const Spans rows, back(0));
  TENON_ASSIGN_OR_RETURN(const Spans columns, back(1));
  Resample<float>(dy, rows, columns, out);
  return OkStatus();
}

}  // namespace

void RegisterScaleAndTranslateOps(OpRegistry& ops) {
  const Tensor scale = Tensor::Vector({1.2f, 0.6f}), shift = Tensor::Vector({0.3f, -0.4f});
  ops.Add("ScaleAndTranslate", ScaleKernel)
      .Grad([](GradContext& g) {
        g.dx(0) = ScaleAndTranslateGrad(g.dy(0), g.in(0), g.in(2), g.in(3),
                                        {.kernel_type = g.Attr<std::string>("kernel_type"),
                                         .antialias = g.Attr<bool>("antialias")});
      })
      .Example({Shape{2, 4, 6, 2}, Tensor::Vector({5, 3}), scale, shift})
      .Example({Shape{2, 4, 6, 2}, Tensor::Vector({5, 3}), scale, shift},
               {{"kernel_type", "triangle"}, {"antialias", false}});
  ops.Add("ScaleAndTranslateGrad", ScaleGradKernel)
      .Example({Shape{2, 5, 3, 2}, Shape{2, 4, 6, 2}, scale, shift});
}

}  // namespace tenon
