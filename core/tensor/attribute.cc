// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/attribute.h"

#include <algorithm>
#include <array>
#include <bit>

namespace tenon {
namespace {

constexpr std::array<std::string_view, 17> kKinds = {
    "nothing",    "string",     "int",         "float",        "bool",      "type",
    "shape",      "tensor",     "func",        "list(string)", "list(int)", "list(float)",
    "list(bool)", "list(type)", "list(shape)", "list(tensor)", "list(func)"};
static_assert(kKinds.size() == std::variant_size_v<Attribute::Value>);

std::string Text(std::monostate) { return "nothing"; }
std::string Text(const std::string& v) { return StrCat("\"", v, "\""); }
std::string Text(int64_t v) { return StrCat(v); }
std::string Text(float v) { return StrCat(v); }
std::string Text(bool v) { return v ? "true" : "false"; }
std::string Text(DType v) { return ToString(v); }
std::string Text(const PartialShape& v) { return v.ToString(); }
std::string Text(const Tensor& v) { return v.ToString(); }
std::string Text(const FunctionName& v) { return v.name; }
template <typename T>
std::string Text(const std::vector<T>& list) {
  std::string out = "[";
  for (size_t i = 0; i < list.size(); ++i) {
    if (i > 0) out += ", ";
    out += Text(static_cast<T>(list[i]));
  }
  return out + "]";
}

template <typename T>
bool Same(const T& a, const T& b) {
  return a == b;
}
/// By their bits, as those of tensors: 0 and -0 are not the same, and a NaN is.
bool Same(float a, float b) { return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b); }
bool Same(const Tensor& a, const Tensor& b) { return a.Equals(b); }
bool Same(const FunctionName& a, const FunctionName& b) {
  return a.name == b.name && std::equal(a.attrs.begin(), a.attrs.end(), b.attrs.begin(),
                                        b.attrs.end(), [](const auto& x, const auto& y) {
                                          return x.first == y.first && x.second.Equals(y.second);
                                        });
}
template <typename T>
bool SameList(const std::vector<T>& a, const std::vector<T>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const T& x, const T& y) { return Same(x, y); });
}
bool Same(const std::vector<float>& a, const std::vector<float>& b) { return SameList(a, b); }
bool Same(const std::vector<Tensor>& a, const std::vector<Tensor>& b) { return SameList(a, b); }
bool Same(const std::vector<FunctionName>& a, const std::vector<FunctionName>& b) {
  return SameList(a, b);
}

template <typename T>
Attribute List(const std::vector<Attribute>& values) {
  std::vector<T> list;
  for (const Attribute& v : values) list.push_back(*v.get_if<T>());
  return Attribute(std::move(list));
}

bool NameLess(const AttributeMap::Entry& e, std::string_view name) { return e.first < name; }

}  // namespace

Attribute Attribute::ListOf(std::string_view kind, const std::vector<Attribute>& values) {
  if (kind == "string") return List<std::string>(values);
  if (kind == "int") return List<int64_t>(values);
  if (kind == "float") return List<float>(values);
  if (kind == "bool") return List<bool>(values);
  if (kind == "type") return List<DType>(values);
  if (kind == "shape") return List<PartialShape>(values);
  if (kind == "tensor") return List<Tensor>(values);
  TENON_CHECK(kind == "func", "there is no list of ", kind);
  return List<FunctionName>(values);
}

std::string_view Attribute::kind() const { return kKinds[value_.index()]; }

std::string Attribute::ToString() const {
  return std::visit([](const auto& v) { return Text(v); }, value_);
}

bool Attribute::Equals(const Attribute& other) const {
  if (value_.index() != other.value_.index()) return false;
  return std::visit(
      [&](const auto& v) {
        using T = std::decay_t<decltype(v)>;
        return Same(v, *other.get_if<T>());
      },
      value_);
}

const Attribute* AttributeMap::Find(std::string_view name) const {
  const auto it = std::lower_bound(entries_.begin(), entries_.end(), name, NameLess);
  return it != entries_.end() && it->first == name ? &it->second : nullptr;
}

void AttributeMap::Set(std::string_view name, Attribute value) {
  const auto it = std::lower_bound(entries_.begin(), entries_.end(), name, NameLess);
  if (it != entries_.end() && it->first == name) {
    it->second = std::move(value);
  } else {
    entries_.insert(it, Entry(std::string(name), std::move(value)));
  }
}

void AttributeMap::Erase(std::string_view name) {
  const auto it = std::lower_bound(entries_.begin(), entries_.end(), name, NameLess);
  if (it != entries_.end() && it->first == name) entries_.erase(it);
}

}  // namespace tenon
