// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <numbers>

#include "core/base/interruption.h"
#include "core/base/parallel.h"
#include "core/memory/counted_memory.h"
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/spectral/transform.h"

namespace tenon {
namespace {

/// How windows of a sound are transformed.
struct SoundWindows {
  static StatusOr<SoundWindows> Create(int64_t size, int64_t stride) {
    constexpr int64_t kMost = int64_t{1} << 28;
    if (size < 2 || size > kMost || stride < 1) {
      return InvalidArgument("window_size must be in [2, 2^28] and stride at least 1, found ", size,
                             " and ", stride);
    }
    return SoundWindows{size, stride, static_cast<int64_t>(std::bit_ceil<uint64_t>(size))};
  }
  /// Windows of `frames` samples, and the frequencies that are told of each.
  int64_t Count(int64_t frames) const { return frames < size ? 0 : 1 + (frames - size) / stride; }
  int64_t frequencies() const { return padded / 2 + 1; }

  int64_t size, stride, padded;
};

Status AudioSpectrogramKernel(KernelContext& ctx, int64_t size, int64_t stride, bool squared) {
  const Tensor& in = ctx.input(0);
  TENON_RETURN_IF_ERROR(CheckRank(in, 2, "input"));
  TENON_ASSIGN_OR_RETURN(const SoundWindows windows, SoundWindows::Create(size, stride));
  const int64_t channels = in.dim(1), count = windows.Count(in.dim(0)), n = windows.frequencies();
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, {channels, count, n}));
  if (out->num_elements() == 0) return OkStatus();
  CountedVector<double> hann(size);
  for (int64_t i = 0; i < size; ++i) {
    const double turn = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(size);
    hann[i] = 0.5 - 0.5 * std::cos(turn);
  }
  // So many windows at a time that each block is worth planning its transforms.
  const int64_t block = std::clamp<int64_t>((1 << 20) / windows.padded, 1, 64);
  CountedVector<double> lines(block * windows.padded);
  CountedVector<std::complex<double>> spectra(block * n);
  for (int64_t row = 0; row < channels * count && !Interrupted(); row += block) {
    const int64_t rows = std::min(block, channels * count - row);
    for (int64_t i = 0; i < rows; ++i) {
      const float* const from =
          in.data<float>() + (row + i) % count * stride * channels + (row + i) / count;
      for (int64_t k = 0; k < size; ++k)
        lines[i * windows.padded + k] = from[k * channels] * hann[k];
    }
    TransformRealLines<double>([&](int64_t i) { return &lines[i * windows.padded]; }, rows,
                               windows.padded, spectra.data());
    for (int64_t i = 0; i < rows * n; ++i) {
      const auto power = static_cast<float>(std::norm(spectra[i]));
      out->data<float>()[row * n + i] = squared ? power : std::sqrt(power);
    }
  }
  return OkStatus();
}

/// How spectra become cepstral coefficients.
struct CepstrumAttrs : KernelState {
  explicit CepstrumAttrs(KernelConstruction& c)
      : low(c.Attr<float>("lower_frequency_limit")),
        high(c.Attr<float>("upper_frequency_limit")),
        bands(c.Attr<int64_t>("filterbank_channel_count")),
        coefficients(c.Attr<int64_t>("dct_coefficient_count")) {}
  double low, high;
  int64_t bands, coefficients;
};

/// A bank of filters, triangles that overlap by half, evenly on the mel scale.
class MelBands {
 public:
  MelBands(const CepstrumAttrs& attrs, int64_t size, double sample_rate) : bands_(attrs.bands) {
    const double step = 0.5 * sample_rate / static_cast<double>(size - 1);
    const double low = Mel(attrs.low);
    const double width = (Mel(attrs.high) - low) / (static_cast<double>(bands_) + 1);
    const auto bin = [&](double place) { return static_cast<int64_t>(std::min(place, 1e18)); };
    first_ = bin(1.5 + attrs.low / step);
    last_ = bin(attrs.high / step);
    complete_ = last_ < size;
    if (!complete_) return;
    int64_t band = 0;
    for (int64_t i = first_; i <= last_; ++i) {
      const double mel = Mel(static_cast<double>(i) * step);
      const auto center = [&](int64_t b) { return low + width * (static_cast<double>(b) + 1); };
      for (int64_t end = bands_; band < end;) {  // the first from there on that is not below
        const int64_t middle = band + (end - band) / 2;
        if (center(middle) < mel) {
          band = middle + 1;
        } else {
          end = middle;
        }
      }
      parts_.push_back({band, (center(band) - mel) / (center(band) - center(band - 1))});
    }
  }
  /// Whether spectra have what the highest band takes.
  bool complete() const { return complete_; }

  void Apply(const float* power, double* out) const {
    std::fill_n(out, bands_, 0.0);
    for (size_t i = 0; i < parts_.size(); ++i) {
      const double amplitude = std::sqrt(static_cast<double>(power[first_ + i]));
      const double falling = amplitude * parts_[i].falling;
      if (parts_[i].band > 0) out[parts_[i].band - 1] += falling;
      if (parts_[i].band < bands_) out[parts_[i].band] += amplitude - falling;
    }
  }

 private:
  static double Mel(double hertz) { return 1127 * std::log1p(hertz / 700); }

  /// A frequency is in the falling part of band - 1 and in the rising one of `band`.
  struct Part {
    int64_t band;
    double falling;
  };
  int64_t bands_, first_ = 0, last_ = 0;
  bool complete_ = false;
  CountedVector<Part> parts_;
};

Status CheckCepstrum(const CepstrumAttrs& attrs, int64_t size, int64_t sample_rate) {
  if (size < 2 || sample_rate <= 0) {
    return InvalidArgument(
        "spectra must have 2 frequencies at least and sample_rate be positive, "
        "found ",
        size, " and ", sample_rate);
  }
  if (!(attrs.low >= 0) || !(attrs.high > attrs.low)) {
    return InvalidArgument("frequency limits must be positive and rise, found ", attrs.low, " and ",
                           attrs.high);
  }
  if (attrs.bands < 1 || attrs.coefficients < 1 || attrs.coefficients > attrs.bands) {
    return InvalidArgument("dct_coefficient_count must be in [1, filterbank_channel_count], found ",
                           attrs.coefficients, " and ", attrs.bands);
  }
  return MultiplySizes(attrs.bands, attrs.coefficients).status();
}

Status MfccKernel(KernelContext& ctx, const Tensor& in, const CepstrumAttrs& attrs) {
  const int64_t size = in.dim(2), rate = ctx.input(1).scalar<int32_t>(), bands = attrs.bands;
  TENON_RETURN_IF_ERROR(CheckCepstrum(attrs, size, rate));
  TENON_ASSIGN_OR_RETURN(Tensor * out,
                         ctx.CreateOutput(0, {in.dim(0), in.dim(1), attrs.coefficients}));
  if (out->num_elements() == 0) return OkStatus();
  const MelBands mel(attrs, size, static_cast<double>(rate));
  const double width = static_cast<double>(bands);
  CountedVector<double> cosines(bands * attrs.coefficients);
  ParallelFor(bands * attrs.coefficients, 30, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const double turn = std::numbers::pi / width * static_cast<double>(k / bands);
      cosines[k] = std::sqrt(2 / width) * std::cos(turn * (static_cast<double>(k % bands) + 0.5));
    }
  });
  const double cost = static_cast<double>(3 * size + bands * attrs.coefficients);
  ParallelFor(in.dim(0) * in.dim(1), cost, [&](int64_t begin, int64_t end) {
    CountedVector<double> energy(bands);
    for (int64_t row = begin; row < end; ++row) {
      mel.Apply(in.data<float>() + row * size, energy.data());
      // TensorFlow's bank says nothing of spectra that it finds too short.
      SerialFor(bands, 10, [&](int64_t first, int64_t last) {
        for (int64_t j = first; j < last; ++j) {
          energy[j] = mel.complete() ? std::log(energy[j] < 1e-12 ? 1e-12 : energy[j]) : 0;
        }
      });
      SerialFor(attrs.coefficients, width, [&](int64_t first, int64_t last) {
        for (int64_t i = first; i < last; ++i) {
          double sum = 0;
          for (int64_t j = 0; j < bands; ++j) sum += cosines[i * bands + j] * energy[j];
          out->data<float>()[row * attrs.coefficients + i] = static_cast<float>(sum);
        }
      });
    }
  });
  return OkStatus();
}

Status AudioSpectrogramShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape in, c.WithRank(0, 2));
  TENON_ASSIGN_OR_RETURN(const int64_t size, c.Attr<int64_t>("window_size"));
  TENON_ASSIGN_OR_RETURN(const int64_t stride, c.Attr<int64_t>("stride"));
  TENON_ASSIGN_OR_RETURN(const SoundWindows windows, SoundWindows::Create(size, stride));
  const int64_t count = in.dim(0) < 0 ? -1 : windows.Count(in.dim(0));
  return c.Return(PartialShape{in.dim(1), count, windows.frequencies()});
}

}  // namespace

void RegisterSpectrogramOps(OpRegistry& ops) {
  ops.Add("AudioSpectrogram", AudioSpectrogramShape, AudioSpectrogramKernel,
          {.attrs = {"window_size", "stride", "magnitude_squared"}})
      .Example({Shape{20, 2}}, {{"window_size", 6}, {"stride", 3}});
  ops.Add("Mfcc", MfccKernel).InDomain(0.1, 5).Example({Shape{2, 3, 65}, Tensor::Scalar(16000)});
}

}  // namespace tenon
