// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/base/status.h"
#include "core/tensor/tensor.h"
#include "data/files/file.h"

namespace tenon {

/// Images and what they show, row by row.
struct MnistSet {
  Tensor images;  // float [n,784], each pixel in [0,1]
  Tensor labels;  // float [n,10], one-hot; or int64 [n]
};

/// The MNIST database of handwritten digits (LeCun, Cortes and Burges), split as TensorFlow's
/// tutorials do.
struct Mnist {
  MnistSet train;
  MnistSet validation;  // the first images of the training file
  MnistSet test;
};

struct MnistOptions {
  bool one_hot = true;
  int64_t validation_size = 5000;
};

/// Reads train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and
/// t10k-labels-idx1-ubyte, each plain or with the ending .gz, from a folder. NotFound names the
/// file that is missing; InvalidArgument and DataLoss one that is not what it should be.
StatusOr<Mnist> LoadMnist(const std::string& folder, const MnistOptions& options = {},
                          const FileContext& context = {});

}  // namespace tenon
