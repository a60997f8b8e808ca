// SPDX-License-Identifier: Apache-2.0
#include <atomic>

#include "core/base/hash_map.h"
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/elements.h"
#include "ops/math/math_ops.h"
#include "ops/tensor_list/tensor_list.h"
#include "ops/tensor_list/tensor_list_ops.h"

namespace tenon {
namespace {

/// Tensors by tensors.
class TensorMap final : public VariantValue {
 public:
  struct Entry {
    Tensor key, value;
  };

  std::string_view type_name() const override { return "tensorflow::TensorMap"; }
  StatusOr<VariantRef> ZerosLike() const override { return std::make_shared<TensorMap>(); }

  const StringMap<Entry>& entries() const { return entries_; }
  const Entry* Find(const Tensor& key) const {
    const auto found = entries_.find(Bytes(key));
    return found == entries_.end() ? nullptr : &found->second;
  }
  /// InvalidArgument when values would lie too deep in others.
  Status Set(const Tensor& key, Tensor value) {
    TENON_RETURN_IF_ERROR(CountDepth(value));
    entries_[Bytes(key)] = {key, std::move(value)};
    return OkStatus();
  }
  void Erase(const Tensor& key) { entries_.erase(Bytes(key)); }

 private:
  /// The same for equal keys only.
  static std::string Bytes(const Tensor& key) {
    std::string bytes = StrCat(ToString(key.dtype()), key.shape());
    if (key.dtype() == DType::kString) {
      for (const TString& text : key.flat<TString>()) StrAppend(&bytes, text.size(), ":", text);
    } else {
      bytes.append(static_cast<const char*>(key.raw_data()), key.num_bytes());
    }
    return bytes;
  }

  StringMap<Entry> entries_;
};

StatusOr<const TensorMap*> MapInput(const KernelContext& ctx) {
  TENON_RETURN_IF_ERROR(CheckRank(ctx.input(0), 0, "input_handle"));
  const auto* map = dynamic_cast<const TensorMap*>(ctx.input(0).scalar<Variant>().value.get());
  if (map == nullptr) return InvalidArgument("input_handle is no map");
  return map;
}

/// The key in input 1.
StatusOr<Tensor> KeyInput(const KernelContext& ctx) {
  const Tensor& key = ctx.input(1);
  if (IsPlain(key.dtype()) || key.dtype() == DType::kString) return key;
  return InvalidArgument("a map cannot have keys of ", key.dtype());
}

/// The value of a key that must be there for what is `tried`.
StatusOr<const TensorMap::Entry*> Entry(const KernelContext& ctx, std::string_view tried) {
  TENON_ASSIGN_OR_RETURN(const TensorMap* map, MapInput(ctx));
  TENON_ASSIGN_OR_RETURN(const Tensor key, KeyInput(ctx));
  const TensorMap::Entry* const entry = map->Find(key);
  if (entry == nullptr)
    return InvalidArgument("Trying to ", tried, ". Could not find key ", key.ToString());
  return entry;
}

/// Output 0: the map after `change(TensorMap&)`, which gives a status; that of input 0 if nobody
/// else holds it.
template <typename Change>
Status ChangeMap(KernelContext& ctx, Change change) {
  Tensor handle = ctx.TakeInput(0);
  if (!handle.HasOneReference()) {
    TENON_ASSIGN_OR_RETURN(handle, handle.Copy());
  }
  VariantRef& value = handle.data<Variant>()->value;
  if (value.use_count() > 1) {
    value = std::make_shared<TensorMap>(static_cast<const TensorMap&>(*value));
  }
  // What others did with the map before they let go of it comes before what is done now.
  std::atomic_thread_fence(std::memory_order_acquire);
  // It is not shared, and no map was made const.
  TENON_RETURN_IF_ERROR(change(const_cast<TensorMap&>(static_cast<const TensorMap&>(*value))));
  return ctx.Return(std::move(handle));
}

Status EmptyMapKernel(KernelContext& ctx) {
  Tensor handle(DType::kVariant, Shape());
  handle.data<Variant>()->value = std::make_shared<TensorMap>();
  return ctx.Return(std::move(handle));
}

Status MapSizeKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const TensorMap* map, MapInput(ctx));
  return ctx.Return(Tensor::Scalar(static_cast<int32_t>(map->entries().size())));
}

Status MapInsertKernel(KernelContext& ctx) {
  TENON_RETURN_IF_ERROR(MapInput(ctx).status());
  TENON_ASSIGN_OR_RETURN(const Tensor key, KeyInput(ctx));
  return ChangeMap(ctx, [&](TensorMap& map) { return map.Set(key, ctx.input(2)); });
}

Status MapEraseKernel(KernelContext& ctx) {
  TENON_RETURN_IF_ERROR(Entry(ctx, "erase non-existent item").status());
  return ChangeMap(ctx, [&](TensorMap& map) {
    map.Erase(ctx.input(1));
    return OkStatus();
  });
}

Status MapLookupKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const TensorMap::Entry* entry, Entry(ctx, "lookup non-existent key"));
  if (entry->value.dtype() != ctx.output_type(0)) {
    return InvalidArgument("the map's value is ", entry->value.dtype(), ", wanted ",
                           ctx.output_type(0));
  }
  return ctx.Return(entry->value);
}

Status MapHasKeyKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const TensorMap* map, MapInput(ctx));
  TENON_ASSIGN_OR_RETURN(const Tensor key, KeyInput(ctx));
  return ctx.Return(Tensor::Scalar(map->Find(key) != nullptr));
}

Status MapStackKeysKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const TensorMap* map, MapInput(ctx));
  if (map->entries().empty())
    return InvalidArgument("TensorMapStackKeys cannot be called on empty map.");
  const Shape shape = map->entries().begin()->second.key.shape();
  const auto n = static_cast<int64_t>(map->entries().size());
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, Concat({n}, shape.dims())));
  int64_t row = 0;
  for (const auto& [bytes, entry] : map->entries()) {
    if (entry.key.dtype() != out->dtype()) {
      return InvalidArgument("Key does not match requested dtype. Found ", entry.key.dtype(),
                             ", wanted ", out->dtype());
    }
    if (entry.key.shape() != shape) {
      return InvalidArgument("Keys must all have the same shape. Found ", entry.key.shape(),
                             " and ", shape);
    }
    CopyElements(entry.key, 0, out, row++ * shape.num_elements(), shape.num_elements());
  }
  return OkStatus();
}

}  // namespace

void RegisterTensorMapOps(OpRegistry& ops) {
  const char* const why = "needs a map; tensor_map_test covers it";
  ops.Add("EmptyTensorMap", ScalarShape, EmptyMapKernel, {.cheap = true}).Example({});
  ops.Add("TensorMapSize", ScalarShape, MapSizeKernel, {.cheap = true}).NoExample(why);
  ops.Add("TensorMapInsert", ScalarShape, MapInsertKernel).NoExample(why);
  ops.Add("TensorMapErase", ScalarShape, MapEraseKernel).NoExample(why);
  ops.Add("TensorMapLookup", UnknownShape, MapLookupKernel).NoExample(why);
  ops.Add("TensorMapHasKey", ScalarShape, MapHasKeyKernel).NoExample(why);
  ops.Add("TensorMapStackKeys", UnknownShape, MapStackKeysKernel).NoExample(why);
}

}  // namespace tenon
