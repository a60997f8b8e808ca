// SPDX-License-Identifier: Apache-2.0
#include "core/variant.h"

#include <map>

#include "core/mutex.h"

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

void AddVariantDecoder(std::string_view type_name, VariantDecoder decode) {
  Decoders& all = AllDecoders();
  MutexLock lock(all.mu);
  all.of_type.emplace(type_name, decode);
}

StatusOr<VariantRef> DecodeVariant(VariantData data) {
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
