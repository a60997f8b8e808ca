// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/op/kernel.h"
#include "core/op/op_schema.h"

// How the parameters of a kernel that is a function get the op's inputs and outputs. A parameter's
// type says how its input is read; the input's name in the op's declaration is in every message.

namespace tenon {

/// A parameter of this type is an input that is a scalar of integers.
struct Integer {
  int64_t value;
  operator int64_t() const { return value; }  // NOLINT: it is the integer
};

/// A parameter of this type is an input that stands for several tensors.
class InputList {
 public:
  InputList(const KernelContext& ctx, int first, int count)
      : ctx_(&ctx), first_(first), count_(count) {}
  int size() const { return count_; }
  const Tensor& operator[](int i) const { return ctx_->input(first_ + i); }

 private:
  const KernelContext* ctx_;
  int first_, count_;
};

/// Writes the elements of `t`, of one of these dtypes of integers, into as many of `values`.
Status WidenIntegers(const Tensor& t, std::string_view what, int64_t* values);
/// The elements of `t` (int8, uint8, int16, uint16, int32 or int64, of any rank), widened.
StatusOr<DimVector> ReadIntegers(const Tensor& t, std::string_view what);
/// The same of a vector, of `size` elements unless that is negative.
StatusOr<DimVector> ReadIntegerVector(const Tensor& t, std::string_view what, int64_t size = -1);
/// The element of the scalar `t`.
StatusOr<int64_t> ReadInteger(const Tensor& t, std::string_view what);
/// The only element of `t`, of any rank.
StatusOr<int64_t> ReadOnlyInteger(const Tensor& t, std::string_view what);
/// `t` as a shape: a vector of sizes that are not negative.
StatusOr<Shape> ReadShape(const Tensor& t, std::string_view what);
/// InvalidArgument unless `t` is a scalar, a vector or a matrix: of rank `rank`, 0 to 2.
Status CheckRank(const Tensor& t, int rank, std::string_view what);

/// The declared shapes of one node's arguments; shared by the runs of its kernel.
class DeclaredShapes {
 public:
  /// Null when the op declares none.
  static std::unique_ptr<const DeclaredShapes> Of(const OpSchema& schema, KernelConstruction& c);

  /// InvalidArgument, naming found and wanted, when an input has another shape than is declared.
  Status Match(const KernelContext& ctx, DimNames* names) const;
  Status Match(const KernelContext& ctx) const;
  /// Memory for output `i`, whose declared shape must follow from the inputs'.
  StatusOr<Tensor*> Allocate(KernelContext& ctx, const DimNames& names, int i) const;

 private:
  struct Input {
    int index;
    ShapePattern pattern;
    std::string name;
  };
  std::vector<Input> inputs_;
  std::vector<ShapePattern> outputs_;  // one per tensor, without dimensions where none is declared
};

/// Where an argument's tensors are among those of a node.
struct ArgumentPlace {
  std::string name;
  int first = 0, count = 1;
};
/// The place of input `i` of the declaration, counted in arguments.
ArgumentPlace PlaceOfInput(const OpSchema& schema, KernelConstruction& c, int i);

/// One run of a kernel whose arguments are being bound. The first mistake is kept.
struct BindingRun {
  KernelContext& ctx;
  const DeclaredShapes* shapes;
  DimNames names;
  Status status;
};

/// How inputs become a parameter of type T, which is not a tensor: only those types do that follow,
/// and those of which a family says it.
template <typename T>
struct InputReader {
  static constexpr int kInputs = 0;  // arguments of the op that make one parameter
};
/// A base for them: `kRead` is a function of the context and of the number of the first tensor.
///
///   template <>
///   struct InputReader<DatasetPtr> : ReadsInputs<DatasetInput> {};
template <auto kRead, int kCount = 1>
struct ReadsInputs {
  static constexpr int kInputs = kCount;
  static auto Read(BindingRun& run, const ArgumentPlace& place) {
    using T = typename decltype(kRead(run.ctx, 0))::value_type;
    if (!run.status.ok()) return T();
    auto value = kRead(run.ctx, place.first);
    if (value.ok()) return *std::move(value);
    run.status = value.status();
    return T();
  }
};
template <>
struct InputReader<Integer> {
  static constexpr int kInputs = 1;
  static Integer Read(BindingRun& run, const ArgumentPlace& place);
};
template <>
struct InputReader<DimVector> {  // a vector of integers
  static constexpr int kInputs = 1;
  static DimVector Read(BindingRun& run, const ArgumentPlace& place);
};
template <>
struct InputReader<Shape> {  // a vector of sizes
  static constexpr int kInputs = 1;
  static Shape Read(BindingRun& run, const ArgumentPlace& place);
};
template <>
struct InputReader<InputList> {
  static constexpr int kInputs = 1;
  static InputList Read(BindingRun& run, const ArgumentPlace& place) {
    return {run.ctx, place.first, place.count};
  }
};

/// Output `i` of a node in its declared shape; null after a mistake.
Tensor* BindOutput(BindingRun& run, int i);

}  // namespace tenon
