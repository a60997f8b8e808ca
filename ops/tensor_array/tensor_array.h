// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "core/base/mutex.h"
#include "core/memory/counted_memory.h"
#include "core/tensor/resource.h"
#include "core/tensor/tensor.h"
#include "ops/any_memory.h"

namespace tenon {

/// The tensors that a loop reads or makes, one an iteration. Lives as long as its step. An element
/// is written once and, with clear_after_read, read once. A gradient array adds up what is written
/// to one index. All are in the memory of the device whose kernels use the array. Thread-safe.
class TensorArray final : public Resource {
 public:
  static constexpr std::string_view kKind = "tensor_array", kContainer = "_tensor_arrays",
                                    kTypeName = "N10tensorflow11TensorArrayE";
  /// What an array may come to hold; an index from outside must not exhaust memory.
  static constexpr int64_t kMaxSize = int64_t{1} << 28;

  struct Options {
    DType dtype = DType::kInvalid;
    PartialShape element_shape;
    bool dynamic_size = false;
    bool clear_after_read = true;
    bool identical_shapes = false;
    bool is_gradient = false;
  };

  TensorArray(std::string name, const Options& options, int64_t size);

  std::string_view kind() const override { return kKind; }
  DType dtype() const { return dtype_; }
  const std::string& name() const { return name_; }

  /// InvalidArgument when the index is out of range, dtype or shape do not fit, or the element was
  /// written or read before. `add` is what adds up in the kernel's memory.
  Status Write(const KernelContext& ctx, int64_t index, Tensor value, AddTensors add);
  /// An element never written is zero when its shape is known; else InvalidArgument.
  StatusOr<Tensor> Read(const KernelContext& ctx, int64_t index);
  StatusOr<int64_t> Size() const;
  /// How many elements there are for ops that join all of them: of a gradient array those that the
  /// array had when its elements were set together last, if they were.
  StatusOr<int64_t> JoinedSize() const;
  /// Says that all elements there are now were set together.
  void MarkSize();
  /// Makes sure that there are `size` elements; InvalidArgument when there are fewer and the size
  /// is fixed.
  Status Grow(int64_t size);
  /// The element shape as far as it is known, with `also` taken into account.
  StatusOr<PartialShape> ElementShape(const PartialShape& also) const;
  /// A new array for the gradients of this one, of the same size, which is fixed from now on. Its
  /// elements have the dimensions `prefix` before those of this one's.
  StatusOr<std::shared_ptr<TensorArray>> MakeGradient(std::string name, const Shape& prefix);
  /// Drops the elements; everything after is an error.
  void Close();

 private:
  struct Element {
    Tensor value;
    bool written = false;
    bool cleared = false;
    PartialShape shape;  // of what was written, also once it was cleared
  };

  /// InvalidArgument with the array's name before these.
  template <typename... Args>
  Status Refuse(const Args&... args) const {
    return InvalidArgument("TensorArray ", name_, args...);
  }
  Status CheckOpen() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status CheckWrite(int64_t index, const Tensor& value) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::string name_;
  const DType dtype_;
  mutable Mutex mu_;
  Options options_ ABSL_GUARDED_BY(mu_);
  CountedVector<Element> elements_ ABSL_GUARDED_BY(mu_);
  std::optional<int64_t> marked_size_ ABSL_GUARDED_BY(mu_);  // of gradients that of their array
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace tenon
