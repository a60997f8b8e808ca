// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/op/bound_arguments.h"
#include "core/op/kernel.h"

namespace tenon {

/// Base of what a kernel that is a function may keep from run to run: its parameter of type
/// `const S&` is then an S that is made with the kernel, of the KernelConstruction or of nothing.
/// Used from several threads at once.
struct KernelState {};
template <typename T>
inline constexpr bool kIsKernelState = std::is_base_of_v<KernelState, T>;

/// The name of the kernel's node.
struct NodeName : KernelState {
  explicit NodeName(const KernelConstruction& c) : value(c.name()) {}
  const std::string value;
};

/// The source of a parameter of a function kernel, which its type tells.
enum class ParameterKind : uint8_t { kAttr, kState, kTensor, kRead, kOutput };
template <typename P>
constexpr ParameterKind KindOfParameter() {
  using T = std::decay_t<P>;
  if constexpr (std::is_same_v<P, const Tensor&>) return ParameterKind::kTensor;
  if constexpr (std::is_same_v<P, Tensor*>) return ParameterKind::kOutput;
  if constexpr (InputReader<T>::kInputs > 0) return ParameterKind::kRead;
  return kIsKernelState<T> ? ParameterKind::kState : ParameterKind::kAttr;
}
/// A parameter's kind, and how many of the op's inputs, outputs or attributes it stands for.
struct Parameter {
  ParameterKind kind;
  int count;
  constexpr bool is_input() const {
    return kind == ParameterKind::kTensor || kind == ParameterKind::kRead;
  }
};
template <typename P>
constexpr Parameter ParameterOf() {
  constexpr ParameterKind kKind = KindOfParameter<P>();
  return {kKind, kKind == ParameterKind::kRead ? InputReader<std::decay_t<P>>::kInputs : 1};
}

/// A kernel that is one function. After the context it takes, each by the type of its parameter:
///
///   const Tensor& x                the op's first input that no parameter before it has taken
///   Integer n                      the same of a scalar of integers
///   DimVector dims, Shape shape    the same of a vector of integers, or of sizes
///   InputList values               the same of an input that stands for several tensors
///   DatasetPtr input, ...          what the families' own InputReaders make of inputs
///   Tensor* y                      the first output that is not taken, in its declared shape
///   const S& s                     state: an S that is a KernelState
///   float alpha                    an attribute, in the order in which they are registered
///
/// Inputs have the shapes that are declared, or the kernel fails before the function is called.
template <typename... Params>
class FunctionKernel final : public Kernel {
 public:
  using Function = Status (*)(KernelContext&, Params...);

  FunctionKernel(KernelConstruction& c, const OpSchema& schema, Function function,
                 const std::vector<std::string>& attrs, bool cheap)
      : FunctionKernel(c, schema, function, attrs, cheap, std::index_sequence_for<Params...>()) {}

  Status Compute(KernelContext& ctx) const override {
    return Call(ctx, std::index_sequence_for<Params...>());
  }
  bool is_expensive() const override { return !cheap_; }

 private:
  /// Where an argument comes from: the kernel, and its attribute or argument where it is one.
  struct Source {
    KernelConstruction& c;
    const OpSchema& schema;
    const std::vector<std::string>& attrs;
    int index;
  };
  template <typename P, ParameterKind kKind = KindOfParameter<P>()>
  struct Argument {  // an attribute or state
    using T = std::decay_t<P>;
    Argument(const Source& from) : value(Make(from)) {}  // NOLINT
    static T Make(const Source& from) {
      if constexpr (kKind == ParameterKind::kAttr) {
        return from.c.template Attr<T>(from.attrs[from.index]);
      } else if constexpr (std::is_constructible_v<T, KernelConstruction&>) {
        return T(from.c);
      } else {
        return T();
      }
    }
    template <typename Run>
    const T& Bind(Run&) const {
      return value;
    }
    const T value;
  };
  template <typename P>
  struct Argument<P, ParameterKind::kTensor> {
    Argument(const Source& from)  // NOLINT
        : index(PlaceOfInput(from.schema, from.c, from.index).first) {}
    const Tensor& Bind(const KernelContext& ctx) const { return ctx.input(index); }
    const Tensor& Bind(const BindingRun& run) const { return run.ctx.input(index); }
    const int index;
  };
  template <typename P>
  struct Argument<P, ParameterKind::kRead> {
    Argument(const Source& from)  // NOLINT
        : place(PlaceOfInput(from.schema, from.c, from.index)) {}
    std::decay_t<P> Bind(BindingRun& run) const {
      return InputReader<std::decay_t<P>>::Read(run, place);
    }
    const ArgumentPlace place;
  };
  template <typename P>
  struct Argument<P, ParameterKind::kOutput> {
    Argument(const Source& from) : index(from.index) {}  // NOLINT
    Tensor* Bind(BindingRun& run) const { return BindOutput(run, index); }
    const int index;
  };

  template <size_t... I>
  FunctionKernel(KernelConstruction& c, const OpSchema& schema, Function function,
                 const std::vector<std::string>& attrs, bool cheap, std::index_sequence<I...>)
      : Kernel(c),
        function_(function),
        cheap_(cheap),
        shapes_(DeclaredShapes::Of(schema, c)),
        args_(Source{c, schema, attrs, Before(I)}...) {}

  /// How many inputs, outputs or attributes the parameters before parameter `i` have taken.
  static constexpr int Before(size_t i) {
    constexpr Parameter kParameters[] = {ParameterOf<Params>()..., {ParameterKind::kState, 0}};
    const Parameter& own = kParameters[i];
    int before = 0;
    for (size_t k = 0; k < i; ++k) {
      const Parameter& other = kParameters[k];
      const bool alike = other.kind == own.kind || (other.is_input() && own.is_input());
      before += alike ? other.count : 0;
    }
    return before;
  }

  template <size_t... I>
  Status Call(KernelContext& ctx, std::index_sequence<I...>) const {
    constexpr bool kReads = ((KindOfParameter<Params>() == ParameterKind::kRead ||
                              KindOfParameter<Params>() == ParameterKind::kOutput) ||
                             ...);
    if constexpr (kReads) {
      BindingRun run{ctx, shapes_.get(), {}, OkStatus()};
      if (shapes_ != nullptr) TENON_RETURN_IF_ERROR(shapes_->Match(ctx, &run.names));
      const std::tuple<decltype(std::get<I>(args_).Bind(run))...> bound{
          std::get<I>(args_).Bind(run)...};
      if (!run.status.ok()) return run.status;
      return function_(ctx, std::get<I>(bound)...);
    } else {
      if (shapes_ != nullptr) TENON_RETURN_IF_ERROR(shapes_->Match(ctx));
      return function_(ctx, std::get<I>(args_).Bind(ctx)...);
    }
  }

  const Function function_;
  const bool cheap_;
  const std::unique_ptr<const DeclaredShapes> shapes_;  // null: there are none
  const std::tuple<Argument<Params>...> args_;
};

}  // namespace tenon
