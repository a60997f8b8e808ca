// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

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

/// A kernel that is one function of the context, of the values of some attributes and of state.
template <typename... Params>
class FunctionKernel final : public Kernel {
 public:
  using Function = Status (*)(KernelContext&, Params...);

  FunctionKernel(KernelConstruction& c, Function function, const std::vector<std::string>& attrs,
                 bool cheap)
      : FunctionKernel(c, function, attrs, cheap, std::index_sequence_for<Params...>()) {}

  Status Compute(KernelContext& ctx) const override {
    return std::apply([&](const auto&... args) { return function_(ctx, args.value...); }, args_);
  }
  bool is_expensive() const override { return !cheap_; }

 private:
  /// Where an argument comes from: the kernel, and its attribute where it is one.
  struct Source {
    KernelConstruction& c;
    const std::string* attr;
  };
  template <typename T>
  struct Argument {
    Argument(const Source& from) : value(Make(from)) {}  // NOLINT
    static T Make(const Source& from) {
      if constexpr (!kIsKernelState<T>) {
        return from.c.template Attr<T>(*from.attr);
      } else if constexpr (std::is_constructible_v<T, KernelConstruction&>) {
        return T(from.c);
      } else {
        return T();
      }
    }
    const T value;
  };

  template <size_t... I>
  FunctionKernel(KernelConstruction& c, Function function, const std::vector<std::string>& attrs,
                 bool cheap, std::index_sequence<I...>)
      : Kernel(c),
        function_(function),
        cheap_(cheap),
        args_(Source{c, attrs.data() + AttrsBefore(I)}...) {}

  /// How many of the first `count` parameters are attributes.
  static constexpr size_t AttrsBefore(size_t count) {
    size_t attrs = 0, i = 0;
    ((attrs += i++ < count && !kIsKernelState<std::decay_t<Params>>), ...);
    return attrs;
  }

  const Function function_;
  const bool cheap_;
  const std::tuple<Argument<std::decay_t<Params>>...> args_;
};

}  // namespace tenon
