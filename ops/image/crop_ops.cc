// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "core/base/interruption.h"
#include "core/base/parallel.h"
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/composition.h"
#include "ops/elements.h"
#include "ops/image/image_ops.h"
#include "ops/image/resizing.h"

namespace tenon {
namespace {

/// Where the rows or columns of a crop lie in an image: evenly between two places, which are parts
/// of the image's last row or column.
struct CropAxis {
  CropAxis(float low, float high, int64_t size, int64_t count)
      : last(static_cast<float>(size - 1)), ratio(last / static_cast<float>(count - 1)) {
    start = low * last;
    step = (high - low) * last / static_cast<float>(count - 1);
    if (count == 1) start = static_cast<float>(0.5 * (low + high) * last);
    if (count == 1) step = ratio = 0;
  }
  struct Place {
    bool inside;
    int64_t low, high, nearest;
    float weight;  // of high
  };
  Place At(int64_t i) const {
    // In two statements: a fused one would round otherwise, and what lies at the edge fall off.
    const float offset = static_cast<float>(i) * step;
    const float at = start + offset;
    if (!(at >= 0 && at <= last)) return {false, 0, 0, 0, 0};
    const float floor = std::floor(at);
    return {true, static_cast<int64_t>(floor), static_cast<int64_t>(std::ceil(at)),
            static_cast<int64_t>(std::round(at)), at - floor};
  }
  float last, ratio, start, step;
};

/// One box: which image, and its rows and columns there.
struct Crop {
  Crop(const Tensor& boxes, const Tensor& index, int64_t i, const DimVector& image,
       const DimVector& size)
      : image(index.data<int32_t>()[i]),
        rows(boxes.data<float>()[4 * i], boxes.data<float>()[4 * i + 2], image[1], size[0]),
        columns(boxes.data<float>()[4 * i + 1], boxes.data<float>()[4 * i + 3], image[2], size[1]) {
  }
  int64_t image;
  CropAxis rows, columns;
};

/// Checks `boxes` [n, 4] and `index` [n].
Status CheckBoxes(const Tensor& boxes, const Tensor& index) {
  if (index.rank() == 1 && boxes.shape() == Shape{index.dim(0), 4}) return OkStatus();
  if (index.shape() == Shape{0} && boxes.rank() == 2 && boxes.num_elements() == 0)
    return OkStatus();
  return InvalidArgument("boxes must be [n, 4] and box_ind [n], found shapes ", boxes.shape(),
                         " and ", index.shape());
}

Status CheckBoxIndices(const Tensor& index, int64_t batch) {
  for (const int32_t i : index.flat<int32_t>()) {
    if (i < 0 || i >= batch) return OutOfRange("box_ind = ", i, " is not in [0, ", batch, ")");
  }
  return OkStatus();
}

/// Whether a node takes the nearest pixel instead of interpolating.
struct CropMethod : KernelState {
  explicit CropMethod(KernelConstruction& c)
      : nearest(c.Attr<std::string>("method") == "nearest") {}
  bool nearest;
};

Status CropAndResizeKernel(KernelContext& ctx, const CropMethod& method, float outside) {
  const Tensor &images = ctx.input(0), &boxes = ctx.input(1), &index = ctx.input(2);
  TENON_RETURN_IF_ERROR(CheckImages(images, "image", true));
  if (images.dim(1) == 0 || images.dim(2) == 0) {
    return InvalidArgument("image must have pixels, found shape ", images.shape());
  }
  TENON_RETURN_IF_ERROR(CheckBoxes(boxes, index));
  TENON_ASSIGN_OR_RETURN(const DimVector size, ReadResize(ctx.input(3), false, false));
  const int64_t channels = images.dim(3), boxes_count = boxes.num_elements() / 4;
  TENON_ASSIGN_OR_RETURN(Tensor * out,
                         ctx.CreateOutput(0, {boxes_count, size[0], size[1], channels}));
  TENON_RETURN_IF_ERROR(CheckBoxIndices(index, images.dim(0)));
  for (const float v : boxes.flat<float>()) {
    if (!std::isfinite(v)) {
      return InvalidArgument("Boxes contains at least one element that is not finite: ", v);
    }
  }
  if (out->num_elements() == 0) return OkStatus();
  const DimVector dims(images.shape().dims().begin(), images.shape().dims().end());
  const int64_t row_size = dims[2] * channels;
  return DispatchStatus(images.dtype(), ImageTypes(), [&]<typename T>(T) {
    const double cost = 3 * static_cast<double>(size[1] * channels);
    ParallelFor(boxes_count * size[0], cost, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const Crop crop(boxes, index, row / size[0], dims, size);
        const CropAxis::Place y = crop.rows.At(row % size[0]);
        const T* const image = images.data<T>() + crop.image * dims[1] * row_size;
        float* to = out->data<float>() + row * size[1] * channels;
        for (int64_t i = 0; i < size[1] && !Interrupted(); ++i, to += channels) {
          const CropAxis::Place x = crop.columns.At(i);
          const auto at = [&](int64_t from_y, int64_t from_x, int64_t c) {
            return static_cast<float>(image[from_y * row_size + from_x * channels + c]);
          };
          for (int64_t c = 0; c < channels; ++c) {
            if (!y.inside || !x.inside) {
              to[c] = outside;
            } else if (method.nearest) {
              to[c] = at(y.nearest, x.nearest, c);
            } else {
              const float a = at(y.low, x.low, c), b = at(y.high, x.low, c);
              const float above = a + (at(y.low, x.high, c) - a) * x.weight;
              const float below = b + (at(y.high, x.high, c) - b) * x.weight;
              to[c] = above + (below - above) * y.weight;
            }
          }
        }
      }
    });
  });
}

/// What both gradients check of the gradient of the crops.
Status CheckCropGradient(const Tensor& dy, const Tensor& boxes, const Tensor& index) {
  TENON_RETURN_IF_ERROR(CheckImages(dy, "grads", true));
  if (dy.dim(1) == 0 || dy.dim(2) == 0) {
    return InvalidArgument("grads must have pixels, found shape ", dy.shape());
  }
  TENON_RETURN_IF_ERROR(CheckBoxes(boxes, index));
  if (dy.dim(0) == boxes.num_elements() / 4) return OkStatus();
  return InvalidArgument("grads of ", dy.dim(0), " crops do not fit boxes of shape ",
                         boxes.shape());
}

Status CropImageGradKernel(KernelContext& ctx, const CropMethod& method) {
  const Tensor &dy = ctx.input(0), &boxes = ctx.input(1), &index = ctx.input(2);
  TENON_RETURN_IF_ERROR(CheckCropGradient(dy, boxes, index));
  TENON_ASSIGN_OR_RETURN(const DimVector dims, ReadIntegerVector(ctx.input(3), "image_size", 4));
  const int64_t channels = dy.dim(3);
  if (dims[1] <= 0 || dims[2] <= 0 || dims[3] != channels) {
    return InvalidArgument("image_size must have pixels of ", channels, " channels, found [",
                           Join(dims, ","), "]");
  }
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, dims));
  TENON_RETURN_IF_ERROR(CheckBoxIndices(index, dims[0]));
  ZeroElements(out);
  if (dy.num_elements() == 0) return OkStatus();
  const DimVector size = {dy.dim(1), dy.dim(2)};
  const int64_t crop_size = size[0] * size[1] * channels,
                image_size = out->num_elements() / dims[0];
  return DispatchStatus(out->dtype(), TypeList<float, double, Half>(), [&]<typename T>(T) {
    const double cost = 6 * static_cast<double>(dy.num_elements()) / static_cast<double>(dims[0]);
    // An image for each thread: crops of one image add to the same pixels.
    ParallelFor(dims[0], cost, [&](int64_t begin, int64_t end) {
      for (int64_t b = 0; b < dy.dim(0) && !Interrupted(); ++b) {
        const Crop crop(boxes, index, b, dims, size);
        if (crop.image < begin || crop.image >= end) continue;
        T* const image = out->data<T>() + crop.image * image_size;
        const float* from = dy.data<float>() + b * crop_size;
        const auto add = [&](int64_t y, int64_t x, float weight_y, float weight_x) {
          T* const pixel = image + (y * dims[2] + x) * channels;
          for (int64_t c = 0; c < channels; ++c) {
            pixel[c] = static_cast<T>(pixel[c] + static_cast<T>(weight_x * (weight_y * from[c])));
          }
        };
        for (int64_t i = 0; i < size[0]; ++i) {
          const CropAxis::Place y = crop.rows.At(i);
          for (int64_t k = 0; k < size[1] && !Interrupted(); ++k, from += channels) {
            const CropAxis::Place x = crop.columns.At(k);
            if (!y.inside || !x.inside) continue;
            if (method.nearest) {
              add(y.nearest, x.nearest, 1, 1);
              continue;
            }
            add(y.low, x.low, 1 - y.weight, 1 - x.weight);
            add(y.low, x.high, 1 - y.weight, x.weight);
            add(y.high, x.low, y.weight, 1 - x.weight);
            add(y.high, x.high, y.weight, x.weight);
          }
        }
      }
    });
  });
}

Status CropBoxesGradKernel(KernelContext& ctx, const Tensor& dy, const Tensor& images,
                           const Tensor& boxes, const Tensor& index) {
  TENON_RETURN_IF_ERROR(CheckCropGradient(dy, boxes, index));
  TENON_RETURN_IF_ERROR(CheckImages(images, "image", true));
  const int64_t channels = dy.dim(3);
  if (images.dim(1) == 0 || images.dim(2) == 0 || images.dim(3) != channels) {
    return InvalidArgument("image must have pixels of ", channels, " channels, found shape ",
                           images.shape());
  }
  TENON_RETURN_IF_ERROR(CheckBoxIndices(index, images.dim(0)));
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, {dy.dim(0), 4}));
  const DimVector dims(images.shape().dims().begin(), images.shape().dims().end());
  const DimVector size = {dy.dim(1), dy.dim(2)};
  const int64_t crop_size = size[0] * size[1] * channels, row_size = dims[2] * channels;
  return DispatchStatus(images.dtype(), ImageTypes(), [&]<typename T>(T) {
    ParallelFor(dy.dim(0), 4 * static_cast<double>(crop_size), [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end && !Interrupted(); ++b) {
        const Crop crop(boxes, index, b, dims, size);
        const T* const image = images.data<T>() + crop.image * dims[1] * row_size;
        const float* from = dy.data<float>() + b * crop_size;
        float sums[4] = {};
        for (int64_t i = 0; i < size[0]; ++i) {
          const CropAxis::Place y = crop.rows.At(i);
          for (int64_t k = 0; k < size[1] && !Interrupted(); ++k, from += channels) {
            const CropAxis::Place x = crop.columns.At(k);
            if (!y.inside || !x.inside) continue;
            float along_y = 0, along_x = 0;
            for (int64_t c = 0; c < channels; ++c) {
              const auto at = [&](int64_t from_y, int64_t from_x) {
                return static_cast<float>(image[from_y * row_size + from_x * channels + c]);
              };
              const float a = at(y.low, x.low), b = at(y.low, x.high), d = at(y.high, x.low),
                          e = at(y.high, x.high);
              along_y += ((1 - x.weight) * (d - a) + x.weight * (e - b)) * from[c];
              along_x += ((1 - y.weight) * (b - a) + y.weight * (e - d)) * from[c];
            }
            // How far the place moves with each end of the box.
            const auto add = [](const CropAxis& axis, int64_t count, int64_t place, float slope,
                                float* low, float* high) {
              const float end = count == 1 ? axis.last / 2 : static_cast<float>(place) * axis.ratio;
              *low += slope * (axis.last - end);
              *high += slope * end;
            };
            add(crop.rows, size[0], i, along_y, &sums[0], &sums[2]);
            add(crop.columns, size[1], k, along_x, &sums[1], &sums[3]);
          }
        }
        std::copy_n(sums, 4, out->data<float>() + 4 * b);
      }
    });
  });
}

Status CropAndResizeShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape images, c.WithRank(0, 4));
  TENON_ASSIGN_OR_RETURN(const PartialShape boxes, c.WithRank(1, 2));
  TENON_ASSIGN_OR_RETURN(const PartialShape index, c.WithRank(2, 1));
  TENON_ASSIGN_OR_RETURN(const PartialShape both, boxes.MergeWith({index.dim(0), 4}));
  TENON_RETURN_IF_ERROR(c.WithRank(3, 1).status());
  TENON_ASSIGN_OR_RETURN(const PartialShape size, c.ConstantShape(3));
  const bool known = size.rank() == 2;
  return c.Return(
      PartialShape{both.dim(0), known ? size.dim(0) : -1, known ? size.dim(1) : -1, images.dim(3)});
}

Status CropImageGradShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape size, c.ConstantShape(3));
  return c.Return(size.MergeWith(PartialShape::OfRank(4)));
}

Status CropBoxesGradShape(ShapeContext& c) { return c.Return(c.WithRank(2, 2)); }

void CropAndResizeGrad(GradContext& g) {
  const DType type = g.in(0).dtype();
  const std::string method = g.Attr<std::string>("method");
  if (type == DType::kFloat || type == DType::kDouble || type == DType::kHalf) {
    g.dx(0) = CropAndResizeGradImage(g.dy(0), g.in(1), g.in(2), ShapeVector(g.in(0)), type,
                                     {.method = method});
  }
  g.dx(1) = CropAndResizeGradBoxes(g.dy(0), g.in(0), g.in(1), g.in(2));
}

}  // namespace

void RegisterCropOps(OpRegistry& ops) {
  const auto boxes = Tensor::Of<float>({2, 4}, {0, 0, 1, 1, 0.1f, 0.2f, 0.8f, 0.7f});
  const Tensor index = Tensor::Vector({1, 0});
  ops.Add("CropAndResize", CropAndResizeShape, CropAndResizeKernel,
          {.attrs = {"extrapolation_value"}})
      .Grad(CropAndResizeGrad)
      .Example({Shape{2, 4, 5, 2}, boxes, index, Tensor::Vector({3, 2})})
      .Example({Shape{2, 4, 5, 2}, boxes, index, Tensor::Vector({3, 2})}, {{"method", "nearest"}});
  ops.Add("CropAndResizeGradImage", CropImageGradShape, CropImageGradKernel)
      .Example({Shape{2, 3, 2, 2}, boxes, index, Tensor::Vector({2, 4, 5, 2})});
  ops.Add("CropAndResizeGradBoxes", CropBoxesGradShape, CropBoxesGradKernel)
      .Example({Shape{2, 3, 2, 2}, Shape{2, 4, 5, 2}, boxes, index});
}

}  // namespace tenon
