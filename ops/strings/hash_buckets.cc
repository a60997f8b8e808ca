// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "core/base/interruption.h"
#include "core/op/op_registry.h"
#include "ops/fingerprint.h"
#include "ops/strings/strings_ops.h"

// Hashes of texts that programs have stored: each must give the same number for ever.

namespace tenon {
namespace {

template <typename Hash>
Status HashTexts(KernelContext& ctx, int64_t buckets, Hash hash) {
  const Tensor& in = ctx.input(0);
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.shape()));
  for (int64_t i = 0; i < in.num_elements(); ++i) {
    if (i % kStepsBetweenLooks == 0 && Interrupted()) break;
    out->data<int64_t>()[i] =
        static_cast<int64_t>(hash(in.data<TString>()[i]) % static_cast<uint64_t>(buckets));
  }
  return OkStatus();
}

Status MurmurKernel(KernelContext& ctx, int64_t buckets) {
  return HashTexts(ctx, buckets, Murmur64);
}

Status FarmKernel(KernelContext& ctx, int64_t buckets) {
  return HashTexts(ctx, buckets, Fingerprint64);
}

Status StrongKernel(KernelContext& ctx, int64_t buckets, std::vector<int64_t> key) {
  if (key.size() != 2) {
    return InvalidArgument("Key must have 2 elements, found ", key.size());
  }
  const std::array<uint64_t, 2> words = {static_cast<uint64_t>(key[0]),
                                         static_cast<uint64_t>(key[1])};
  return HashTexts(ctx, buckets, [&](std::string_view text) { return SipHash(words, text); });
}

}  // namespace

void RegisterHashBuckets(OpRegistry& ops) {
  ops.Add("StringToHashBucket", UnchangedShape, MurmurKernel, {.attrs = {"num_buckets"}})
      .Example({Shape{2, 3}}, {{"num_buckets", 10}});
  ops.Add("StringToHashBucketFast", UnchangedShape, FarmKernel, {.attrs = {"num_buckets"}})
      .Example({Shape{2, 3}}, {{"num_buckets", 10}});
  ops.Add("StringToHashBucketStrong", UnchangedShape, StrongKernel,
          {.attrs = {"num_buckets", "key"}})
      .Example({Shape{2, 3}}, {{"num_buckets", 10}, {"key", std::vector<int64_t>{1, 2}}});
}

}  // namespace tenon
