// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#include "core/base/interruption.h"
#include "core/base/parallel.h"
#include "core/tensor/resource.h"
#include "core/tensor/tensor.h"
#include "core/tensor/variant.h"
#include "ops/element_bytes.h"

// Moving elements about without knowing what they are, texts and handles among them.

namespace tenon {

/// Bytes that one element takes in a tensor's buffer; of strings and handles, the object itself.
inline size_t StrideOf(DType t) {
  switch (t) {
    case DType::kString:
      return sizeof(TString);
    case DType::kResource:
      return sizeof(ResourceHandle);
    case DType::kVariant:
      return sizeof(Variant);
    default:
      return SizeOf(t);
  }
}

/// Calls `fn(T())` with a type of the size of `type`'s elements, or TString, ResourceHandle or
/// Variant for those. T* may be formed from raw_data().
template <typename Fn>
void DispatchElement(DType type, Fn&& fn) {
  if (!Dispatch(type, TypeList<TString, ResourceHandle, Variant>(), fn)) DispatchBytes(type, fn);
}

/// Where element `i` of `t` begins.
inline const char* ElementAt(const Tensor& t, int64_t i) {
  return static_cast<const char*>(t.raw_data()) + i * static_cast<int64_t>(StrideOf(t.dtype()));
}
inline char* ElementAt(Tensor& t, int64_t i) {
  return static_cast<char*>(t.raw_data()) + i * static_cast<int64_t>(StrideOf(t.dtype()));
}

/// Elements from which on it is worth a look whether the kernel was interrupted meanwhile.
inline constexpr int64_t kLongCopy = 1 << 22;

/// Copies the runs of `width` elements from `begin` to before `end`: run i from the element that
/// `from_of(i)` names, to where it is when all lie one after the other.
template <typename FromOf>
void CopyRuns(const Tensor& from, FromOf from_of, int64_t width, int64_t begin, int64_t end,
              Tensor* to) {
  DispatchElement(from.dtype(), [&]<typename T>(T) {
    const T* const source = static_cast<const T*>(from.raw_data());
    T* const target = static_cast<T*>(to->raw_data());
    for (int64_t i = begin; i < end; ++i) {
      if (i % kStepsBetweenLooks == 0 && Interrupted()) return;
      const T* const run = source + from_of(i);
      if (width == 1) {
        target[i] = *run;
      } else {
        std::copy_n(run, width, target + i * width);
      }
    }
  });
}

/// Copies `count` consecutive elements of `type`; the ranges do not overlap. A long copy stops when
/// the kernel is interrupted.
inline void CopyElements(DType type, const void* from, void* to, int64_t count) {
  if (count <= 0) return;
  if (const size_t size = SizeOf(type); size != 0) {
    if (count <= kLongCopy) {
      std::memcpy(to, from, size * count);
      return;
    }
    SerialFor(count, 0.1 * static_cast<double>(size), [&](int64_t begin, int64_t end) {
      std::memcpy(static_cast<char*>(to) + begin * size,
                  static_cast<const char*>(from) + begin * size, (end - begin) * size);
    });
    return;
  }
  DispatchElement(type, [&]<typename T>(T) {
    const T* source = static_cast<const T*>(from);
    SerialFor(count, 50, [&](int64_t begin, int64_t end) {
      std::copy(source + begin, source + end, static_cast<T*>(to) + begin);
    });
  });
}

/// Copies `count` elements from number `i` of `from` on to number `j` of `to`, of the same dtype.
inline void CopyElements(const Tensor& from, int64_t i, Tensor* to, int64_t j, int64_t count) {
  CopyElements(from.dtype(), ElementAt(from, i), ElementAt(*to, j), count);
}

/// Sets every element of `t` to zero, false or empty; stops when the kernel is interrupted.
inline void ZeroElements(Tensor* t) {
  const int64_t n = t->num_elements();
  if (const size_t size = SizeOf(t->dtype()); size != 0) {
    SerialFor(n, 0.1 * static_cast<double>(size), [&](int64_t begin, int64_t end) {
      std::memset(static_cast<char*>(t->raw_data()) + begin * size, 0, (end - begin) * size);
    });
    return;
  }
  DispatchElement(t->dtype(),
                  [&]<typename T>(T) { std::fill_n(static_cast<T*>(t->raw_data()), n, T()); });
}

}  // namespace tenon
