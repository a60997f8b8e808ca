// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "core/base/parallel.h"
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/elements.h"
#include "ops/maths.h"
#include "ops/random/draws.h"
#include "ops/random/stream.h"

namespace tenon {
namespace {

/// What boxes are drawn in, by turns.
constexpr float kBoxColors[][4] = {
    {1, 1, 0, 1},       {0, 0, 1, 1},    {1, 0, 0, 1},    {0, 1, 0, 1}, {0.5f, 0, 0.5f, 1},
    {0.5f, 0.5f, 0, 1}, {0.5f, 0, 0, 1}, {0, 0, 0.5f, 1}, {0, 1, 1, 1}, {1, 0, 1, 1}};

/// The pixel at `part` of a side whose last one is `last`. No number is before the first.
int64_t PixelAt(float part, int64_t last) {
  constexpr float kFar = 1e15f;
  const float at = part * static_cast<float>(last);
  return static_cast<int64_t>(at > -kFar ? std::min(at, kFar) : -kFar);
}

Status CheckDrawing(const Tensor& images, const Tensor& boxes) {
  const int64_t channels = images.rank() == 4 ? images.dim(3) : 0;
  if (channels != 1 && channels != 3 && channels != 4) {
    return InvalidArgument(
        "images must be [batch, height, width, channels] of 1, 3 or 4 channels, found shape ",
        images.shape());
  }
  if (boxes.rank() == 3 && boxes.dim(0) == images.dim(0) && boxes.dim(2) == 4) return OkStatus();
  return InvalidArgument("boxes must be [", images.dim(0), ", n, 4], found shape ", boxes.shape());
}

Status DrawBoxesKernel(KernelContext& ctx, const Tensor& images, const Tensor& boxes) {
  TENON_RETURN_IF_ERROR(CheckDrawing(images, boxes));
  const int64_t height = images.dim(1), width = images.dim(2);
  const int64_t channels = images.dim(3);
  const float* colors = &kBoxColors[0][0];
  int64_t num_colors = std::size(kBoxColors), color_size = 4;
  if (ctx.num_inputs() == 3) {
    const Tensor& given = ctx.input(2);
    if (given.rank() != 2 || given.dim(1) < channels) {
      return InvalidArgument("colors must be a matrix of at least ", channels,
                             " columns, found shape ", given.shape());
    }
    if (given.num_elements() > 0) {
      colors = given.data<float>();
      num_colors = given.dim(0);
      color_size = given.dim(1);
    }
  }
  const bool gray = channels == 1 && colors == &kBoxColors[0][0];
  TENON_ASSIGN_OR_RETURN(Tensor out, images.Copy());
  if (out.num_elements() == 0) return ctx.Return(std::move(out));
  const float* box = boxes.data<float>();
  const Status status = DispatchStatus(out.dtype(), TypeList<float, Half>(), [&]<typename T>(T) {
    for (int64_t i = 0; i < boxes.num_elements() / 4 && !Interrupted(); ++i, box += 4) {
      T* const image = out.data<T>() + i / boxes.dim(1) * height * width * channels;
      const float* const color = colors + i % boxes.dim(1) % num_colors * color_size;
      const int64_t top = PixelAt(box[0], height - 1), left = PixelAt(box[1], width - 1),
                    bottom = PixelAt(box[2], height - 1), right = PixelAt(box[3], width - 1);
      if (top > bottom || left > right) continue;  // turned inside out: nothing is drawn
      const auto draw = [&](int64_t first_y, int64_t last_y, int64_t first_x, int64_t last_x) {
        for (int64_t y = std::max<int64_t>(first_y, 0); y <= std::min(last_y, height - 1); ++y) {
          for (int64_t x = std::max<int64_t>(first_x, 0); x <= std::min(last_x, width - 1); ++x) {
            for (int64_t c = 0; c < channels; ++c) {
              image[(y * width + x) * channels + c] = static_cast<T>(gray ? 1.0f : color[c]);
            }
          }
        }
      };
      draw(top, top, left, right);
      draw(bottom, bottom, left, right);
      draw(top, bottom, left, left);
      draw(top, bottom, right, right);
    }
  });
  TENON_RETURN_IF_ERROR(status);
  return ctx.Return(std::move(out));
}

/// A box of whole pixels, [top, bottom) x [left, right).
struct PixelBox {
  int64_t top = 0, left = 0, bottom = 0, right = 0;
  int64_t height() const { return bottom - top; }
  int64_t width() const { return right - left; }
  float area() const { return static_cast<float>(height() * width()); }
};

/// How much of `object` is in `crop`; nothing of one without pixels.
float Covered(const PixelBox& crop, const PixelBox& object) {
  const PixelBox both = {std::max(crop.top, object.top), std::max(crop.left, object.left),
                         std::min(crop.bottom, object.bottom), std::min(crop.right, object.right)};
  return both.height() < 0 || both.width() < 0 ? 0 : both.area() / object.area();
}

/// The limits that a node sets to its crops.
struct CropLimits : KernelState {
  explicit CropLimits(KernelConstruction& c)
      : attempts(c.Attr<int64_t>("max_attempts")),
        image_if_none(c.Attr<bool>("use_image_if_no_bounding_boxes")),
        aspects(c.Attr<std::vector<float>>("aspect_ratio_range")),
        areas(c.Attr<std::vector<float>>("area_range")),
        covered(c.attrs().GetOr("min_object_covered", 0.0f)) {
    if (aspects.size() != 2 || !(aspects[0] > 0) || !(aspects[1] > 0)) {
      c.Fail(InvalidArgument("aspect_ratio_range must be two positive numbers, found [",
                             Join(aspects, ","), "]"));
    } else if (areas.size() != 2 || !(areas[0] > 0 && areas[0] <= 1) ||
               !(areas[1] > 0 && areas[1] <= 1)) {
      c.Fail(InvalidArgument("area_range must be two numbers in (0, 1], found [", Join(areas, ","),
                             "]"));
    } else if (attempts <= 0) {
      c.Fail(InvalidArgument("max_attempts is ", attempts, ", wanted at least 1"));
    }
  }
  int64_t attempts;
  bool image_if_none;
  std::vector<float> aspects, areas;
  float covered;
};

int64_t Rounded(float v) { return static_cast<int64_t>(std::rint(v)); }

/// Draws a crop of a height `aspect` times as wide; nothing when none of such an area fits.
std::optional<PixelBox> DrawCrop(const PixelBox& image, const std::vector<float>& areas,
                                 float aspect, WordDraws& draws) {
  const int64_t image_height = image.bottom, image_width = image.right;
  if (image_height <= 0 || image_width <= 0 || areas[0] > areas[1]) return std::nullopt;
  const float min_area =
      areas[0] * static_cast<float>(image_width) * static_cast<float>(image_height);
  const float max_area =
      areas[1] * static_cast<float>(image_width) * static_cast<float>(image_height);
  const auto width_of = [aspect](int64_t height) {
    return Rounded(static_cast<float>(height) * aspect);
  };
  int64_t most = Rounded(std::sqrt(max_area / aspect));
  if (width_of(most) > image_width) {
    // The largest that rounds to a width inside the image.
    const float rounding = 0.0000001f;
    most = static_cast<int64_t>((static_cast<double>(image_width) + 0.5 - rounding) / aspect);
    if (width_of(most) > image_width) --most;
  }
  most = std::min(most, image_height);
  int64_t height = std::min(Rounded(std::sqrt(min_area / aspect)), most);
  if (height < most) height += draws.Below(static_cast<uint32_t>(most - height + 1));
  const auto area = [&] { return static_cast<float>(width_of(height) * height); };
  if (area() < min_area) ++height;
  if (area() > max_area) --height;
  const int64_t width = width_of(height);
  if (area() < min_area || area() > max_area || width > image_width || height > image_height ||
      width <= 0 || height <= 0) {
    return std::nullopt;
  }
  const auto place = [&draws](int64_t free) -> int64_t {
    return free > 0 ? draws.Below(static_cast<uint32_t>(free)) : 0;
  };
  const int64_t top = place(image_height - height), left = place(image_width - width);
  return PixelBox{top, left, top + height, left + width};
}

/// The boxes of input 1 in pixels of the image, or the image where there are none.
StatusOr<CountedVector<PixelBox>> ReadObjects(const Tensor& boxes, const PixelBox& image,
                                              const CropLimits& limits) {
  if (boxes.rank() != 3 || boxes.dim(2) != 4) {
    return InvalidArgument("bounding_boxes must be [batch, n, 4], found shape ", boxes.shape());
  }
  CountedVector<PixelBox> objects;
  const float* const v = boxes.data<float>();
  for (int64_t i = 0; i < boxes.num_elements(); ++i) {
    if (!(v[i] >= 0 && v[i] <= 1)) {
      return InvalidArgument("bounding_boxes must be in [0, 1], found ", v[i]);
    }
  }
  const auto height = static_cast<float>(image.bottom), width = static_cast<float>(image.right);
  for (int64_t i = 0; i < boxes.num_elements(); i += 4) {
    const auto pixel = [v, i](int k, float size) { return static_cast<int64_t>(v[i + k] * size); };
    objects.push_back({pixel(0, height), pixel(1, width), pixel(2, height), pixel(3, width)});
  }
  if (!objects.empty()) return objects;
  if (limits.image_if_none) return CountedVector<PixelBox>{image};
  return InvalidArgument(
      "no bounding_boxes; use_image_if_no_bounding_boxes would take the image for one");
}

/// A crop that some object lies in to a part of at least `covered`, or the image.
PixelBox SampleCrop(const PixelBox& image, const CountedVector<PixelBox>& objects,
                    const CropLimits& limits, float covered, WordDraws draws) {
  for (int64_t i = 0; i < limits.attempts && !Interrupted(); ++i) {
    const float above = draws.Float() * (limits.aspects[1] - limits.aspects[0]);
    const float aspect = above + limits.aspects[0];
    const std::optional<PixelBox> crop = DrawCrop(image, limits.areas, aspect, draws);
    if (!crop || crop->area() < 1) continue;
    for (const PixelBox& object : objects) {
      if (object.area() >= 1 && Covered(*crop, object) >= covered) return *crop;
    }
  }
  return image;
}

Status SampleBox(KernelContext& ctx, const CropLimits& limits, const Philox& place) {
  TENON_ASSIGN_OR_RETURN(const DimVector size, ReadIntegers(ctx.input(0), "image_size"));
  if (ctx.input(0).shape() != Shape{3} || size[0] < 0 || size[0] >= INT32_MAX || size[1] < 0 ||
      size[1] >= INT32_MAX) {
    return InvalidArgument("image_size must be height, width and channels below 2^31 - 1, found [",
                           Join(size, ","), "] of shape ", ctx.input(0).shape());
  }
  float covered = limits.covered;
  if (ctx.num_inputs() > 2) {
    covered = ctx.input(2).scalar<float>();
  }
  if (!(covered >= 0)) {
    return InvalidArgument("min_object_covered is ", covered, ", wanted at least 0");
  }
  const PixelBox image = {0, 0, size[0], size[1]};
  TENON_ASSIGN_OR_RETURN(const auto objects, ReadObjects(ctx.input(1), image, limits));
  const PixelBox crop = SampleCrop(image, objects, limits, covered, WordDraws(place));
  TENON_ASSIGN_OR_RETURN(Tensor * begin, ctx.AllocateOutput(0, {3}));
  TENON_ASSIGN_OR_RETURN(Tensor * extent, ctx.AllocateOutput(1, {3}));
  const auto height = static_cast<float>(size[0]), width = static_cast<float>(size[1]);
  ctx.set_output(2, Tensor::Of<float>({1, 1, 4}, {static_cast<float>(crop.top) / height,
                                                  static_cast<float>(crop.left) / width,
                                                  static_cast<float>(crop.bottom) / height,
                                                  static_cast<float>(crop.right) / width}));
  return DispatchStatus(begin->dtype(), IntTypes(), [&]<typename T>(T) {
    const int64_t values[] = {crop.top, crop.left, 0, crop.height(), crop.width(), -1};
    for (int i = 0; i < 3; ++i) {
      begin->data<T>()[i] = static_cast<T>(values[i]);
      extent->data<T>()[i] = static_cast<T>(values[i + 3]);
    }
  });
}

Status SampleBoxKernel(KernelContext& ctx, const CropLimits& limits, const Stream& stream) {
  return SampleBox(ctx, limits, stream.Reserve(limits.attempts));
}

Status StatelessSampleBoxKernel(KernelContext& ctx, const CropLimits& limits) {
  TENON_ASSIGN_OR_RETURN(const Philox place, SeededPlace(ctx.input(3)));
  return SampleBox(ctx, limits, place);
}

}  // namespace

void RegisterBoxOps(OpRegistry& ops) {
  const auto boxes = Tensor::Of<float>({1, 2, 4}, {0, 0.1f, 0.9f, 0.8f, 0.2f, 0.3f, 0.7f, 0.5f});
  ops.Add("DrawBoundingBoxes", DrawBoxesKernel).Example({Shape{1, 6, 7, 3}, boxes});
  ops.Add("DrawBoundingBoxesV2", DrawBoxesKernel).Example({Shape{1, 6, 7, 3}, boxes, Shape{2, 3}});
  const Tensor size = Tensor::Vector({60, 70, 3}), covered = Tensor::Scalar(0.2f);
  const AttributeMap seeds = {{"seed", 3}, {"seed2", 7}};
  ops.Add("SampleDistortedBoundingBox", SampleBoxKernel).Example({size, boxes}, seeds);
  ops.Add("SampleDistortedBoundingBoxV2", SampleBoxKernel).Example({size, boxes, covered}, seeds);
  ops.Add("StatelessSampleDistortedBoundingBox", StatelessSampleBoxKernel)
      .Example({size, boxes, covered, Tensor::Vector({3, 7})});
}

}  // namespace tenon
