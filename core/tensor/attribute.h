// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"
#include "core/tensor/tensor.h"

namespace tenon {

class AttributeMap;

/// A function by name, with the attributes it is called with.
struct FunctionName {
  std::string name;
  std::vector<std::pair<std::string, class Attribute>> attrs;
};

/// The value of one attribute of a node (TensorFlow's AttrValue). A list that is empty in a
/// GraphDef does not say of what; it is an empty std::vector<int64_t> until the op's schema gives
/// it its type.
class Attribute {
 public:
  using Value =
      std::variant<std::monostate, std::string, int64_t, float, bool, DType, PartialShape, Tensor,
                   FunctionName, std::vector<std::string>, std::vector<int64_t>, std::vector<float>,
                   std::vector<bool>, std::vector<DType>, std::vector<PartialShape>,
                   std::vector<Tensor>, std::vector<FunctionName>>;

  Attribute() = default;
  Attribute(std::string v) : value_(std::move(v)) {}         // NOLINT
  Attribute(std::string_view v) : value_(std::string(v)) {}  // NOLINT
  Attribute(const char* v) : value_(std::string(v)) {}       // NOLINT
  Attribute(int64_t v) : value_(v) {}                        // NOLINT
  Attribute(int v) : value_(static_cast<int64_t>(v)) {}      // NOLINT
  Attribute(float v) : value_(v) {}                          // NOLINT
  Attribute(bool v) : value_(v) {}                           // NOLINT
  Attribute(DType v) : value_(v) {}                          // NOLINT
  Attribute(PartialShape v) : value_(std::move(v)) {}        // NOLINT
  Attribute(const Shape& v) : value_(PartialShape(v)) {}     // NOLINT
  Attribute(Tensor v) : value_(std::move(v)) {}              // NOLINT
  Attribute(FunctionName v) : value_(std::move(v)) {}        // NOLINT
  template <typename T>
  Attribute(std::vector<T> v) : value_(std::move(v)) {}  // NOLINT

  /// A list of `kind` ("int", "type", …) of values that are each of that kind.
  static Attribute ListOf(std::string_view kind, const std::vector<Attribute>& values);

  /// The value, or null when it is of another type.
  template <typename T>
  const T* get_if() const {
    return std::get_if<T>(&value_);
  }
  const Value& value() const { return value_; }
  bool has_value() const { return value_.index() != 0; }

  /// The kind as op schemas write it: "int", "list(type)", "tensor".
  std::string_view kind() const;
  /// For messages.
  std::string ToString() const;
  /// Equality of kind and content; tensors by value.
  bool Equals(const Attribute& other) const;

 private:
  Value value_;
};

/// The attributes of a node: few, so a vector sorted by name.
class AttributeMap {
 public:
  using Entry = std::pair<std::string, Attribute>;

  AttributeMap() = default;
  AttributeMap(std::initializer_list<Entry> entries) {
    for (const Entry& e : entries) Set(e.first, e.second);
  }

  /// Null when there is none of that name.
  const Attribute* Find(std::string_view name) const;
  void Set(std::string_view name, Attribute value);
  void Erase(std::string_view name);
  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }

  /// The value of attribute `name`; NotFound when absent, InvalidArgument when of another type.
  /// T: std::string, int64_t, float, bool, DType, PartialShape, Tensor, FunctionName, or a
  /// std::vector of one of them.
  template <typename T>
  StatusOr<T> Get(std::string_view name) const {
    const Attribute* found = Find(name);
    if (found == nullptr) return NotFound("attr '", name, "' is missing");
    if (const T* value = found->get_if<T>()) return *value;
    return InvalidArgument("attr '", name, "' has the wrong type: found ", found->kind(),
                           ", wanted ", Attribute(T()).kind());
  }
  /// The value that Get finds, or `fallback` when it is absent or of another type.
  template <typename T>
  T GetOr(std::string_view name, T fallback) const {
    const Attribute* found = Find(name);
    const T* value = found == nullptr ? nullptr : found->get_if<T>();
    return value == nullptr ? fallback : *value;
  }

 private:
  std::vector<Entry> entries_;
};

}  // namespace tenon
