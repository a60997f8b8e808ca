// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/variant.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <type_traits>

#include "core/base/float_text.h"
#include "core/base/mutex.h"
#include "core/base/strings.h"

namespace tenon {
namespace {

struct Decoders {
  Mutex mu;
  std::map<std::string, VariantDecoder, std::less<>> of_type ABSL_GUARDED_BY(mu);
};

Decoders& AllDecoders() {
  static auto* const decoders = new Decoders;
  return *decoders;
}

/// A number, as constants of GraphDefs hold them.
template <typename T>
class Number final : public VariantValue {
 public:
  Number(std::string_view type_name, T number) : type_name_(type_name), number_(number) {}

  std::string_view type_name() const override { return type_name_; }
  std::string Text() const override {
    if constexpr (std::is_floating_point_v<T>) {
      return FloatText(number_);
    } else {
      return StrCat(+number_);
    }
  }
  StatusOr<VariantData> Encode() const override {
    std::string bytes(sizeof(T), '\0');
    std::memcpy(bytes.data(), &number_, sizeof(T));
    return VariantData{std::string(type_name_), std::move(bytes), {}};
  }
  StatusOr<VariantRef> ZerosLike() const override { return Make(T{0}); }
  StatusOr<VariantRef> Plus(const VariantValue& other) const override {
    const auto* const number = dynamic_cast<const Number*>(&other);
    if (number == nullptr) return VariantValue::Plus(other);
    if constexpr (std::is_same_v<T, int32_t>) {
      return Make(
          static_cast<T>(static_cast<uint32_t>(number_) + static_cast<uint32_t>(number->number_)));
    } else {
      return Make(static_cast<T>(number_ + number->number_));
    }
  }

  static StatusOr<VariantRef> Decode(std::string_view type_name, const VariantData& data) {
    if (data.metadata.size() != sizeof(T) || !data.tensors.empty()) {
      return InvalidArgument("a variant of type '", type_name, "' has ", data.metadata.size(),
                             " bytes and ", data.tensors.size(), " tensors; wanted ", sizeof(T),
                             " bytes and no tensor");
    }
    T number;
    if constexpr (std::is_same_v<T, bool>) {
      number = data.metadata[0] != 0;  // any byte, of which a bool may hold two
    } else {
      std::memcpy(&number, data.metadata.data(), sizeof(T));
    }
    return VariantRef(std::make_shared<Number>(type_name, number));
  }

 private:
  StatusOr<VariantRef> Make(T number) const {
    return VariantRef(std::make_shared<Number>(type_name_, number));
  }

  const std::string_view type_name_;  // of a literal
  const T number_;
};

}  // namespace

StatusOr<VariantData> VariantValue::Encode() const {
  return Unimplemented("a variant of type '", type_name(), "' cannot leave its process");
}

StatusOr<VariantRef> VariantValue::ZerosLike() const {
  return Unimplemented("there are no zeros of a variant of type '", type_name(), "'");
}

StatusOr<VariantRef> VariantValue::Plus(const VariantValue& other) const {
  return Unimplemented("variants of types '", type_name(), "' and '", other.type_name(),
                       "' cannot be added");
}

Status VariantValue::CountDepth(const Tensor& held) {
  if (held.dtype() != DType::kVariant) return OkStatus();
  for (const Variant& v : held.flat<Variant>()) {
    if (v.value != nullptr) depth_ = std::max(depth_, 1 + v.value->depth_);
  }
  if (depth_ <= kMaxDepth) return OkStatus();
  return InvalidArgument("variants lie within each other, more than ", kMaxDepth, " deep");
}

void AddVariantDecoder(std::string_view type_name, VariantDecoder decode) {
  Decoders& all = AllDecoders();
  MutexLock lock(all.mu);
  all.of_type.emplace(type_name, decode);
}

StatusOr<VariantRef> DecodeVariant(VariantData data) {
  if (data.type_name.empty()) {
    if (data.metadata.empty() && data.tensors.empty()) return VariantRef();
    return InvalidArgument("a variant without a type has ", data.metadata.size(), " bytes and ",
                           data.tensors.size(), " tensors; wanted neither");
  }
  if (data.type_name == "int") return Number<int32_t>::Decode("int", data);
  if (data.type_name == "float") return Number<float>::Decode("float", data);
  if (data.type_name == "double") return Number<double>::Decode("double", data);
  if (data.type_name == "bool") return Number<bool>::Decode("bool", data);
  VariantDecoder decode = nullptr;
  {
    Decoders& all = AllDecoders();
    MutexLock lock(all.mu);
    const auto found = all.of_type.find(data.type_name);
    if (found != all.of_type.end()) decode = found->second;
  }
  if (decode != nullptr) return decode(std::move(data));
  return InvalidArgument("a variant of type '", data.type_name, "' cannot be read from a message");
}

}  // namespace tenon
