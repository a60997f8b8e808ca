// SPDX-License-Identifier: Apache-2.0
#include "ops/spectral/line_block.h"

#include <Eigen/Core>
#include <cmath>

// The steps are Stockham's, which leave the elements in order: from x to y,
//   y[q + stride (radix p + k)] = turn(p k) * sum over j of x[q + stride (p + parts j)] root(j k)
// for all q < stride, p < parts and k < radix, where turn(i) = exp(-2 pi i / (radix parts)) and
// root(i) = exp(-2 pi i / radix). The inverse is the same with real and imaginary parts exchanged.

namespace tenon {
namespace {

constexpr int64_t kLargestRadix = 13, kLongestLine = 1 << 14;

template <typename T>
std::complex<T> Root(int64_t i, int64_t n) {
  return std::complex<T>(
      std::polar(1.0, -2 * M_PI * static_cast<double>(i) / static_cast<double>(n)));
}

/// The same element of all lines. Eigen's arrays are vectors in any compiler's code.
template <typename T>
struct Lanes {
  using Array = Eigen::Array<T, LineBlock<T>::kLines, 1>;

  Lanes operator+(const Lanes& b) const { return {re + b.re, im + b.im}; }
  Lanes operator-(const Lanes& b) const { return {re - b.re, im - b.im}; }
  Lanes operator*(T b) const { return {re * b, im * b}; }
  Lanes operator*(std::complex<T> b) const {
    return {re * b.real() - im * b.imag(), re * b.imag() + im * b.real()};
  }

  Array re, im;
};

/// Elements that are some numbers apart.
template <typename T>
struct Elements {
  Lanes<T> operator[](int64_t i) const {
    return {Eigen::Map<const Array>(re + i * apart), Eigen::Map<const Array>(im + i * apart)};
  }
  void Set(int64_t i, const Lanes<T>& value) const {
    Eigen::Map<Array>(re + i * apart) = value.re;
    Eigen::Map<Array>(im + i * apart) = value.im;
  }

  using Array = typename Lanes<T>::Array;
  T *re, *im;
  int64_t apart;
};

template <typename T>
void OfTwo(const Elements<T>& x, const std::complex<T>* turns, const Elements<T>& y) {
  const Lanes<T> a = x[0], b = x[1];
  y.Set(0, a + b);
  y.Set(1, (a - b) * turns[1]);
}

template <typename T>
void OfFour(const Elements<T>& x, const std::complex<T>* turns, const Elements<T>& y) {
  const Lanes<T> even = x[0] + x[2], even_rest = x[0] - x[2];
  const Lanes<T> odd = x[1] + x[3], rest = x[1] - x[3];
  const Lanes<T> odd_rest = {rest.im, -rest.re};  // times -i
  y.Set(0, even + odd);
  y.Set(1, (even_rest + odd_rest) * turns[1]);
  y.Set(2, (even - odd) * turns[2]);
  y.Set(3, (even_rest - odd_rest) * turns[3]);
}

/// The transform of an odd number: with x[j] and x[radix - j] go root(j k) and its conjugate, and
/// these, the other way around, make y[radix - k] too.
template <typename T>
void OfOdd(int64_t radix, const std::complex<T>* roots, const Elements<T>& x,
           const std::complex<T>* turns, const Elements<T>& y) {
  using Array = typename Lanes<T>::Array;
  const int64_t half = radix / 2;
  Lanes<T> sums[kLargestRadix / 2 + 1], differences[kLargestRadix / 2 + 1];
  const Lanes<T> first = x[0];
  Lanes<T> all = first;
  for (int64_t j = 1; j <= half; ++j) {
    sums[j] = x[j] + x[radix - j];
    differences[j] = x[j] - x[radix - j];
    all = all + sums[j];
  }
  y.Set(0, all);
  for (int64_t k = 1; k <= half; ++k) {
    Lanes<T> even = first, odd = {Array::Zero(), Array::Zero()};
    for (int64_t j = 1, jk = k; j <= half; ++j, jk = (jk + k) % radix) {
      even = even + sums[j] * roots[jk].real();
      odd = odd + differences[j] * roots[jk].imag();
    }
    const Lanes<T> turned = {-odd.im, odd.re};  // times i
    y.Set(k, (even + turned) * turns[k]);
    y.Set(radix - k, (even - turned) * turns[radix - k]);
  }
}

}  // namespace

template <typename T>
bool LineBlock<T>::Takes(int64_t n) {
  if (n < 1 || n > kLongestLine) return false;
  for (int64_t factor = 2; factor <= kLargestRadix; ++factor) {
    while (n % factor == 0) n /= factor;
  }
  return n == 1;
}

template <typename T>
LineBlock<T>::LineBlock(int64_t n) {
  for (int64_t left = n, stride = 1; left > 1;) {
    int64_t radix = left % 4 == 0 ? 4 : 2;
    while (left % radix != 0) ++radix;
    Step step = {.radix = radix, .parts = left / radix, .stride = stride, .turns = {}, .roots = {}};
    for (int64_t p = 0; p < step.parts; ++p) {
      for (int64_t k = 0; k < radix; ++k) step.turns.push_back(Root<T>(p * k, left));
    }
    for (int64_t i = 0; i < radix; ++i) step.roots.push_back(Root<T>(i, radix));
    steps_.push_back(std::move(step));
    left /= radix;
    stride *= radix;
  }
}

template <typename T>
T* LineBlock<T>::Run(T* lines, T* other, bool inverse) const {
  const int64_t re = inverse ? kLines : 0, im = kLines - re;
  for (const Step& s : steps_) {
    for (int64_t p = 0; p < s.parts; ++p) {
      const std::complex<T>* const turns = s.turns.data() + p * s.radix;
      for (int64_t q = 0; q < s.stride; ++q) {
        T* const from = lines + At(q + s.stride * p);
        T* const to = other + At(q + s.stride * s.radix * p);
        const Elements<T> x{from + re, from + im, At(s.stride * s.parts)};
        const Elements<T> y{to + re, to + im, At(s.stride)};
        if (s.radix == 2) {
          OfTwo(x, turns, y);
        } else if (s.radix == 4) {
          OfFour(x, turns, y);
        } else {
          OfOdd(s.radix, s.roots.data(), x, turns, y);
        }
      }
    }
    std::swap(lines, other);
  }
  return lines;
}

template class LineBlock<float>;
template class LineBlock<double>;

}  // namespace tenon
