// SPDX-License-Identifier: Apache-2.0
#include "ops/spectral/transform.h"

#include <algorithm>
#include <cmath>
#include <unsupported/Eigen/FFT>

#include "core/base/parallel.h"
#include "core/memory/counted_memory.h"
#include "ops/spectral/line_block.h"

namespace tenon {
namespace {

/// Prime factors up to this are transformed directly, at a cost of n times the factor.
constexpr int64_t kLargestFactor = 64;
/// Blocks that keep threads busy, and elements that one thread transforms at once.
constexpr int64_t kEnoughBlocks = 4, kLittleWork = 1 << 13;

bool HasLargeFactor(int64_t n) {
  for (int64_t p = 2; p <= kLargestFactor; ++p) {
    while (n > 0 && n % p == 0) n /= p;
  }
  return n > 1;
}

/// A transform of one length, for one thread.
template <typename T>
class Transform {
 public:
  using C = std::complex<T>;

  explicit Transform(int64_t n) : n_(n) {
    fft_.SetFlag(Eigen::FFT<T>::Unscaled);
    if (HasLargeFactor(n)) MakeChirp();
  }

  /// x[0..n) in place, not divided by n.
  void Run(C* x, bool inverse) {
    if (n_ <= 1) return;
    if (!chirp_.empty()) return RunChirp(x, inverse);
    work_.resize(n_);
    std::copy_n(x, n_, work_.data());
    const int n = static_cast<int>(n_);
    inverse ? fft_.inv(x, work_.data(), n) : fft_.fwd(x, work_.data(), n);
  }

 private:
  using Wide = std::complex<double>;

  /// Bluestein's way: as 2 j k = j^2 + k^2 - (k - j)^2, the transform is a convolution with
  /// exp(pi i j^2 / n), which transforms of a power of 2 do.
  void MakeChirp() {
    int64_t size = 1;
    while (size < 2 * n_ - 1) size *= 2;
    chirp_.resize(n_);
    spectrum_.assign(size, 0);
    wide_.SetFlag(Eigen::FFT<double>::Unscaled);
    int64_t square = 0;  // j^2 modulo 2 n
    for (int64_t j = 0; j < n_; ++j) {
      chirp_[j] = std::polar(1.0, -M_PI * static_cast<double>(square) / static_cast<double>(n_));
      square = (square + 2 * j + 1) % (2 * n_);
      spectrum_[j] = spectrum_[(size - j) % size] = std::conj(chirp_[j]);
    }
    CountedVector<Wide> kernel = spectrum_;
    wide_.fwd(spectrum_.data(), kernel.data(), static_cast<int>(size));
  }

  void RunChirp(C* x, bool inverse) {
    // The inverse is the conjugate of the transform of the conjugate.
    const auto turned = [inverse](const auto& v) { return inverse ? std::conj(v) : v; };
    const auto size = static_cast<int64_t>(spectrum_.size());
    wide_in_.assign(size, 0);
    wide_out_.resize(size);
    for (int64_t j = 0; j < n_; ++j) wide_in_[j] = Wide(turned(x[j])) * chirp_[j];
    wide_.fwd(wide_out_.data(), wide_in_.data(), static_cast<int>(size));
    for (int64_t j = 0; j < size; ++j) wide_out_[j] *= spectrum_[j] / static_cast<double>(size);
    wide_.inv(wide_in_.data(), wide_out_.data(), static_cast<int>(size));
    for (int64_t k = 0; k < n_; ++k) x[k] = C(turned(wide_in_[k] * chirp_[k]));
  }

  const int64_t n_;
  Eigen::FFT<T> fft_;
  CountedVector<C> work_;
  Eigen::FFT<double> wide_;
  CountedVector<Wide> chirp_, spectrum_, wide_in_, wide_out_;
};

double LineCost(int64_t n) {
  return 3 * static_cast<double>(n) * (1 + std::log2(static_cast<double>(n)));
}

/// The lines as Lines transforms them, each by itself.
template <typename T, typename Load, typename Store>
void ForEachLine(int64_t count, int64_t n, bool inverse, Load load, Store store) {
  using C = std::complex<T>;
  ParallelFor(count, LineCost(n), [&](int64_t begin, int64_t end) {
    Transform<T> transform(n);
    CountedVector<C> line(n);
    for (int64_t i = begin; i < end; ++i) {
      load(i, [&](int64_t j, C value) { line[j] = value; });
      transform.Run(line.data(), inverse);
      store(i, [&](int64_t j) { return line[j]; });
    }
  });
}

/// The same, as many side by side as a LineBlock takes.
template <typename T, typename Load, typename Store>
void ForEachBlock(int64_t count, int64_t n, bool inverse, Load load, Store store) {
  using C = std::complex<T>;
  constexpr int64_t kLines = LineBlock<T>::kLines;
  const LineBlock<T> block(n);
  const double cost = kLines / 4 * LineCost(n);
  ParallelFor((count + kLines - 1) / kLines, cost, [&](int64_t begin, int64_t end) {
    CountedVector<T> first(block.At(n)), second(block.At(n));
    for (int64_t b = begin; b < end; ++b) {
      const int64_t from = b * kLines, to = std::min(count, from + kLines);
      for (int64_t i = from; i < to; ++i) {
        T* const lane = first.data() + (i - from);
        load(i, [&](int64_t j, C value) {
          lane[block.At(j)] = value.real();
          lane[block.At(j) + kLines] = value.imag();
        });
      }
      const T* const done = block.Run(first.data(), second.data(), inverse);
      for (int64_t i = from; i < to; ++i) {
        const T* const lane = done + (i - from);
        store(i, [&](int64_t j) { return C(lane[block.At(j)], lane[block.At(j) + kLines]); });
      }
    }
  });
}

/// Transforms lines: `load(i, set)` calls set(j, value) for each element j of line i; `store(i,
/// get)` takes those of its transform, which is not divided by n, from get(j).
template <typename T, typename Load, typename Store>
void Lines(int64_t count, int64_t n, bool inverse, Load load, Store store) {
  constexpr int64_t kLines = LineBlock<T>::kLines;
  // A block costs as much when it is not full, and is one thread's: long lines want several.
  const bool is_little = count >= kLines / 2 && count * n <= kLittleWork;
  if ((is_little || count >= kEnoughBlocks * kLines) && LineBlock<T>::Takes(n)) {
    ForEachBlock<T>(count, n, inverse, load, store);
  } else {
    ForEachLine<T>(count, n, inverse, load, store);
  }
}

}  // namespace

template <typename T>
void TransformLines(std::complex<T>* data, int64_t outer, int64_t n, int64_t inner, bool inverse) {
  if (n <= 1) return;
  const T scale = inverse ? T(1) / static_cast<T>(n) : T(1);
  const auto first = [&](int64_t i) { return data + i / inner * n * inner + i % inner; };
  Lines<T>(
      outer * inner, n, inverse,
      [&](int64_t i, auto set) {
        const std::complex<T>* const line = first(i);
        for (int64_t j = 0; j < n; ++j) set(j, line[j * inner]);
      },
      [&](int64_t i, auto get) {
        std::complex<T>* const line = first(i);
        for (int64_t j = 0; j < n; ++j) line[j * inner] = get(j) * scale;
      });
}

template <typename T>
void TransformRealLines(absl::FunctionRef<const T*(int64_t i)> line, int64_t count, int64_t n,
                        std::complex<T>* out) {
  if (n == 0) return;
  Lines<T>(
      count, n, /*inverse=*/false,
      [&](int64_t i, auto set) {
        const T* const x = line(i);
        for (int64_t j = 0; j < n; ++j) set(j, x[j]);
      },
      [&](int64_t i, auto get) {
        for (int64_t k = 0; k <= n / 2; ++k) out[i * (n / 2 + 1) + k] = get(k);
      });
}

template <typename T>
void InvertRealLines(const std::complex<T>* lines, int64_t count, int64_t n, T* out) {
  if (n == 0) return;
  Lines<T>(
      count, n, /*inverse=*/true,
      [&](int64_t i, auto set) {
        const std::complex<T>* const half = lines + i * (n / 2 + 1);
        set(0, half[0].real());
        for (int64_t k = 1; k <= n / 2; ++k) {
          set(k, half[k]);
          set(n - k, std::conj(half[k]));
        }
        if (n % 2 == 0) set(n / 2, half[n / 2].real());
      },
      [&](int64_t i, auto get) {
        for (int64_t j = 0; j < n; ++j) out[i * n + j] = get(j).real() / static_cast<T>(n);
      });
}

template void TransformLines(std::complex<float>*, int64_t, int64_t, int64_t, bool);
template void TransformLines(std::complex<double>*, int64_t, int64_t, int64_t, bool);
template void TransformRealLines(absl::FunctionRef<const float*(int64_t)>, int64_t, int64_t,
                                 std::complex<float>*);
template void TransformRealLines(absl::FunctionRef<const double*(int64_t)>, int64_t, int64_t,
                                 std::complex<double>*);
template void InvertRealLines(const std::complex<float>*, int64_t, int64_t, float*);
template void InvertRealLines(const std::complex<double>*, int64_t, int64_t, double*);

}  // namespace tenon
