// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <initializer_list>
#include <source_location>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/graph/output.h"

// What the functions that build graphs take where an op takes tensors.

namespace tenon {

/// A number, truth value or text, or nested braces of these, whose dtype follows from what takes
/// it: 2 is a float in x * 2 when x is.
class Literal {
 public:
  template <typename T>
  requires std::is_arithmetic_v<T> Literal(T value) {  // NOLINT
    if constexpr (std::is_same_v<T, bool>) {
      value_ = value;
    } else if constexpr (std::is_integral_v<T>) {
      if (std::in_range<int64_t>(value)) {
        value_ = static_cast<int64_t>(value);
      } else {
        value_ = static_cast<uint64_t>(value);
      }
    } else {
      value_ = static_cast<double>(value);
    }
  }
  Literal(const char* text) : value_(std::string(text)) {}  // NOLINT
  Literal(std::string text) : value_(std::move(text)) {}    // NOLINT
  Literal(std::initializer_list<Literal> elements)
      : value_(std::vector<Literal>(elements)) {}  // NOLINT
  explicit Literal(std::vector<Literal> elements) : value_(std::move(elements)) {}

  /// The dtype when nothing else says it: string; bool; float when a number has a fraction or an
  /// exponent; int32, or int64 when it must be.
  DType NaturalType() const;
  /// The tensor of that dtype, one dimension for each level of braces. InvalidArgument when braces
  /// of one level differ in length, or a value is none of the dtype.
  StatusOr<Tensor> ToTensor(DType dtype) const;

 private:
  Status Append(DType dtype, int depth, const std::vector<int64_t>& dims, int64_t* place,
                Tensor* out) const;

  std::variant<bool, int64_t, uint64_t, double, std::string, std::vector<Literal>> value_;
};

/// What can stand where an Output can, like Variable.
template <typename T>
concept StandsForOutput =
    std::convertible_to<const T&, Output> && !std::is_arithmetic_v<T> && !std::is_pointer_v<T> &&
    !std::is_same_v<T, Output> && !std::is_same_v<T, std::nullptr_t>;

/// An input of an op: an Output or what stands for one, a literal, braces of literals, a vector, or
/// a Tensor. All but the first become constants of the graph. Knows where in the program it stands.
class Input {
 public:
  using Location = std::source_location;

  /// `{}`: left out where the input has a default, else an empty vector.
  Input(Location at = Location::current())  // NOLINT
      : value_(Literal(std::vector<Literal>())), left_out_(true), at_(at) {}
  Input(const Output& value, Location at = Location::current())
      : value_(value), at_(at) {}                                                    // NOLINT
  Input(Node* node, Location at = Location::current()) : Input(Output(node), at) {}  // NOLINT
  template <StandsForOutput T>
  Input(const T& value, Location at = Location::current())  // NOLINT
      : Input(static_cast<Output>(value), at) {}
  Input(Tensor value, Location at = Location::current())  // NOLINT
      : value_(std::move(value)), at_(at) {}
  template <typename T>
  requires std::is_arithmetic_v<T> Input(T value, Location at = Location::current())
      : value_(Literal(value)), at_(at) {}                    // NOLINT
  Input(const char* text, Location at = Location::current())  // NOLINT
      : value_(Literal(text)), at_(at) {}
  Input(std::string text, Location at = Location::current())  // NOLINT
      : value_(Literal(std::move(text))), at_(at) {}
  Input(std::initializer_list<Literal> elements, Location at = Location::current())  // NOLINT
      : value_(Literal(elements)), at_(at) {}
  template <typename T>
  requires(kDTypeOf<T> != DType::kInvalid || std::is_same_v<T, std::string>)
      Input(const std::vector<T>& elements, Location at = Location::current())  // NOLINT
      : value_(Tensor::Vector<T>(elements)), at_(at) {}

  bool left_out() const { return left_out_; }
  const Output* output() const { return std::get_if<Output>(&value_); }
  const Tensor* tensor() const { return std::get_if<Tensor>(&value_); }
  const Literal* literal() const { return std::get_if<Literal>(&value_); }
  const Location& location() const { return at_; }

 private:
  std::variant<Output, Tensor, Literal> value_;
  bool left_out_ = false;
  Location at_;
};

/// A list of inputs: braces, a vector of Outputs, or one Output.
class Inputs {
 public:
  Inputs(const Output& value) : values_{value} {}  // NOLINT
  template <StandsForOutput T>
  Inputs(const T& value) : values_{value} {}                        // NOLINT
  Inputs(std::initializer_list<Input> values) : values_(values) {}  // NOLINT
  Inputs(const std::vector<Output>& values)                         // NOLINT
      : values_(values.begin(), values.end()) {}
  Inputs(std::vector<Input> values) : values_(std::move(values)) {}  // NOLINT

  const std::vector<Input>& values() const { return values_; }

 private:
  std::vector<Input> values_;
};

}  // namespace tenon
