// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <source_location>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/tensor/buffer.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"
#include "core/tensor/tstring.h"

namespace tenon {

/// A value in a graph: dtype, shape and a refcounted, 64-byte aligned, row-major buffer. Copying a
/// Tensor shares the buffer; slices share it too. Immutable by convention once another Tensor
/// shares the buffer: only the sole owner writes (HasOneReference()). A tensor that follows a ref
/// variable becomes another value only where Renew() is called. Distinct Tensor objects may
/// be used from different threads; one object must not be written while others use it.
///
///   Tensor t(DType::kFloat, {2, 3});
///   t.data<float>()[0] = 1;
class Tensor {
 public:
  /// Invalid: no dtype, no elements.
  Tensor() = default;

  /// Host memory for `shape`; numbers are uninitialised, strings empty. Ends the process when
  /// memory is out: for sizes that come from outside use Allocate.
  Tensor(DType dtype, const Shape& shape);
  /// A view of `buffer`, whose bytes begin with the first element.
  Tensor(DType dtype, const Shape& shape, BufferRef buffer);

  /// As the constructor; ResourceExhausted when memory is out.
  static StatusOr<Tensor> Allocate(Allocator& allocator, DType dtype, const Shape& shape);

  /// What a T is in a tensor: text of any kind becomes a TString.
  template <typename T>
  using ElementOf =
      std::conditional_t<std::is_convertible_v<const T&, std::string_view>, TString, T>;

  template <typename T>
  static Tensor Scalar(T value) {
    Tensor t(kDTypeOf<ElementOf<T>>, Shape());
    *t.data<ElementOf<T>>() = std::move(value);
    return t;
  }
  /// The values in row-major order. With another number of them than `shape` has elements, the
  /// tensor has no value, and a mistake that names `at`: a graph or a step that is given it fails.
  template <typename T>
  static Tensor Of(const Shape& shape, absl::Span<const T> values,
                   const std::source_location& at = std::source_location::current()) {
    if (shape.num_elements() != static_cast<int64_t>(values.size())) {
      return WrongCount(shape, values.size(), at);
    }
    Tensor t(kDTypeOf<ElementOf<T>>, shape);
    std::copy(values.begin(), values.end(), t.data<ElementOf<T>>());
    return t;
  }
  template <typename T>
  static Tensor Of(const Shape& shape, std::initializer_list<T> values,
                   const std::source_location& at = std::source_location::current()) {
    return Of(shape, absl::Span<const T>(values.begin(), values.size()), at);
  }
  template <typename T>
  static Tensor Vector(const std::vector<T>& values) {
    Tensor t(kDTypeOf<ElementOf<T>>, {static_cast<int64_t>(values.size())});
    std::copy(values.begin(), values.end(), t.data<ElementOf<T>>());
    return t;
  }
  template <typename T>
  static Tensor Vector(std::initializer_list<T> values) {
    return Vector(std::vector<T>(values));
  }
  /// All elements zero, false or empty.
  static Tensor Zeros(DType dtype, const Shape& shape);

  bool valid() const { return dtype_ != DType::kInvalid; }
  /// Why there is no value: of a tensor that is not valid.
  Status mistake() const;
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int rank() const { return shape_.rank(); }
  int64_t dim(int i) const { return shape_.dim(i); }
  int64_t num_elements() const { return valid() ? shape_.num_elements() : 0; }
  /// Bytes of the elements; of string tensors, the bytes of the text.
  size_t num_bytes() const;

  /// The elements. T must be the dtype's C++ type.
  template <typename T>
  const T* data() const {
    static_assert(kDTypeOf<T> != DType::kInvalid);
    TENON_CHECK(kDTypeOf<T> == dtype_, ToString(dtype_));
    return static_cast<const T*>(raw_data());
  }
  template <typename T>
  T* data() {
    static_assert(kDTypeOf<T> != DType::kInvalid);
    TENON_CHECK(kDTypeOf<T> == dtype_, ToString(dtype_));
    return static_cast<T*>(raw_data());
  }
  template <typename T>
  absl::Span<const T> flat() const {
    return absl::Span<const T>(data<T>(), static_cast<size_t>(num_elements()));
  }
  template <typename T>
  absl::Span<T> flat() {
    return absl::Span<T>(data<T>(), static_cast<size_t>(num_elements()));
  }
  /// The first element. REQUIRES: num_elements() >= 1.
  template <typename T>
  const T& scalar() const {
    return *data<T>();
  }
  const void* raw_data() const { return data_; }
  void* raw_data() { return data_; }

  /// The same buffer under another shape of as many elements; InvalidArgument otherwise.
  StatusOr<Tensor> Reshaped(const Shape& shape) const;
  /// The same bytes as another dtype. REQUIRES: plain dtypes, and `shape` has as many bytes.
  Tensor BitcastTo(DType dtype, const Shape& shape) const;
  /// Rows [begin, end) of dimension 0, sharing the buffer. REQUIRES: 0 <= begin <= end <= dim(0).
  Tensor Slice(int64_t begin, int64_t end) const;
  /// A copy with a buffer of its own in the same memory; ResourceExhausted when that is out. In
  /// host memory it stops half-way when the kernel that asks for it is interrupted (see
  /// interruption.h); in a device's it is made in the order of its kernels (see Allocator::Copy).
  StatusOr<Tensor> Copy() const;

  /// True when no other Tensor shares the buffer, so that it may be written in place.
  bool HasOneReference() const { return buffer_ && buffer_->HasOneReference(); }
  /// The buffer, which is then the result's alone: this tensor goes on reading its elements while
  /// the result lives. REQUIRES: OwnsBuffer(), and `shape` has as many elements.
  Tensor HandOver(const Shape& shape) {
    Tensor taken;
    taken.dtype_ = dtype_;
    taken.shape_ = shape;
    taken.buffer_ = std::move(buffer_);
    taken.data_ = data_;
    return taken;
  }
  bool SharesBufferWith(const Tensor& other) const {
    return buffer_.get() != nullptr && buffer_.get() == other.buffer_.get();
  }
  /// Whether nobody else shares the buffer and the tensor begins where it does: then a variable may
  /// take it, to write in place later.
  bool OwnsBuffer() const { return HasOneReference() && data_ == buffer_->data(); }

  /// True of what was read from a ref variable and not copied since: the value then shows the
  /// updates of the variable until a kernel begins to read it, as TensorFlow's does, whose memory
  /// the variable's is. Tensors made of this one (Slice, Reshaped) follow too.
  bool follows() const { return follows_; }
  /// Shows the updates until now. What runs kernels calls it for each input; a kernel calls it for
  /// tensors that it has kept.
  void Renew() {
    if (follows_) [[unlikely]]
      TakeNewest();
  }
  /// Shows no later updates: the value is that of this moment from now on.
  void Settle() {
    Renew();
    follows_ = false;
  }
  /// Makes the tensor, whose buffer is a version of a ref variable's, follow it.
  void Follow() { follows_ = buffer_ && buffer_->versions() != nullptr; }

  bool IsHostMemory() const { return !buffer_ || buffer_->IsHostMemory(); }
  /// Where memory of the same kind comes from.
  Allocator& allocator() const { return buffer_ ? buffer_->allocator() : CpuAllocator(); }
  const BufferRef& buffer() const { return buffer_; }

  /// True when dtype, shape and bytes (text of strings) are the same, and variants hold the same
  /// objects. Host memory only.
  bool Equals(const Tensor& other) const;
  /// "float[2,3] 1 2 3 ...", at most `max_elements`; text as Python shows bytes, without the b.
  std::string ToString(int max_elements = 8) const;

 private:
  static std::string ToString(DType t) { return ::tenon::ToString(t); }
  static Tensor WrongCount(const Shape& shape, size_t values, const std::source_location& at);
  void TakeNewest();

  DType dtype_ = DType::kInvalid;
  bool follows_ = false;
  Shape shape_;
  BufferRef buffer_;
  void* data_ = nullptr;
};

}  // namespace tenon
