// SPDX-License-Identifier: Apache-2.0
#include "data/arrays/mnist.h"

#include <algorithm>

#include "data/arrays/idx.h"
#include "data/files/file.h"

namespace tenon {
namespace {

constexpr int kClasses = 10;

StatusOr<Tensor> ReadPart(const std::string& folder, const std::string& name, int rank,
                          const FileContext& context) {
  std::string path = JoinPath(folder, name);
  if (!FileExists(path, context)) path += ".gz";
  if (!FileExists(path, context)) {
    return NotFound("the folder '", folder, "' has neither ", name, " nor ", name, ".gz");
  }
  TENON_ASSIGN_OR_RETURN(Tensor t, ReadIdx(path, context));
  if (t.dtype() != DType::kUInt8 || t.rank() != rank) {
    return InvalidArgument("'", path, "' holds ", ToString(t.dtype()), t.shape().ToString(),
                           ", wanted uint8 of rank ", rank);
  }
  return t;
}

/// Flattens the images and scales them to [0,1].
StatusOr<Tensor> ToFloat(const Tensor& images) {
  TENON_ASSIGN_OR_RETURN(Tensor out,
                         Tensor::Allocate(CpuAllocator(), DType::kFloat,
                                          {images.dim(0), images.dim(1) * images.dim(2)}));
  const uint8_t* from = images.data<uint8_t>();
  float* to = out.data<float>();
  for (int64_t i = 0; i < images.num_elements(); ++i) to[i] = from[i] * (1.0f / 255.0f);
  return out;
}

StatusOr<Tensor> ToLabels(const Tensor& labels, bool one_hot, const std::string& name) {
  const int64_t n = labels.num_elements();
  for (int64_t i = 0; i < n; ++i) {
    if (labels.data<uint8_t>()[i] >= kClasses) {
      return InvalidArgument("label ", i, " of ", name, " is ",
                             static_cast<int>(labels.data<uint8_t>()[i]), ", wanted 0 to 9");
    }
  }
  if (!one_hot) {
    TENON_ASSIGN_OR_RETURN(Tensor out, Tensor::Allocate(CpuAllocator(), DType::kInt64, {n}));
    std::copy_n(labels.data<uint8_t>(), n, out.data<int64_t>());
    return out;
  }
  TENON_ASSIGN_OR_RETURN(Tensor out,
                         Tensor::Allocate(CpuAllocator(), DType::kFloat, {n, kClasses}));
  std::fill_n(out.data<float>(), out.num_elements(), 0.0f);
  for (int64_t i = 0; i < n; ++i) {
    out.data<float>()[i * kClasses + labels.data<uint8_t>()[i]] = 1;
  }
  return out;
}

StatusOr<MnistSet> ReadSet(const std::string& folder, const std::string& prefix, bool one_hot,
                           const FileContext& context) {
  TENON_ASSIGN_OR_RETURN(const Tensor images,
                         ReadPart(folder, prefix + "-images-idx3-ubyte", 3, context));
  const std::string labels_name = prefix + "-labels-idx1-ubyte";
  TENON_ASSIGN_OR_RETURN(const Tensor labels, ReadPart(folder, labels_name, 1, context));
  if (images.dim(0) != labels.dim(0)) {
    return InvalidArgument("the folder '", folder, "' has ", images.dim(0), " ", prefix,
                           " images and ", labels.dim(0), " labels");
  }
  MnistSet set;
  TENON_ASSIGN_OR_RETURN(set.images, ToFloat(images));
  TENON_ASSIGN_OR_RETURN(set.labels, ToLabels(labels, one_hot, labels_name));
  return set;
}

}  // namespace

StatusOr<Mnist> LoadMnist(const std::string& folder, const MnistOptions& options,
                          const FileContext& context) {
  Mnist mnist;
  TENON_ASSIGN_OR_RETURN(const MnistSet all, ReadSet(folder, "train", options.one_hot, context));
  TENON_ASSIGN_OR_RETURN(mnist.test, ReadSet(folder, "t10k", options.one_hot, context));
  const int64_t n = all.images.dim(0), held_out = options.validation_size;
  if (held_out < 0 || held_out > n) {
    return InvalidArgument("cannot hold out ", held_out, " of ", n, " images for validation");
  }
  mnist.validation = {all.images.Slice(0, held_out), all.labels.Slice(0, held_out)};
  mnist.train = {all.images.Slice(held_out, n), all.labels.Slice(held_out, n)};
  return mnist;
}

}  // namespace tenon
