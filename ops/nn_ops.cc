// SPDX-License-Identifier: Apache-2.0
#include "ops/nn_ops.h"

namespace tenon {

#define TENON_ACTIVATION(NAME)                       \
  Output NAME(const Scope& s, Output features) {     \
    return s.Op(#NAME).Input(features).Output();     \
  }
TENON_ACTIVATION(Softplus)
TENON_ACTIVATION(Softsign)
TENON_ACTIVATION(Relu)
TENON_ACTIVATION(Relu6)
TENON_ACTIVATION(Elu)
TENON_ACTIVATION(Selu)
TENON_ACTIVATION(Softmax)
TENON_ACTIVATION(LogSoftmax)
#undef TENON_ACTIVATION

Output BiasAdd(const Scope& s, Output value, Output bias, std::string_view data_format) {
  return s.Op("BiasAdd").Input(value).Input(bias).Attr("data_format", data_format).Output();
}
Output BiasAddGrad(const Scope& s, Output out_backprop, std::string_view data_format) {
  return s.Op("BiasAddGrad").Input(out_backprop).Attr("data_format", data_format).Output();
}
std::vector<Output> SoftmaxCrossEntropyWithLogits(const Scope& s, Output features, Output labels) {
  return s.Op("SoftmaxCrossEntropyWithLogits").Input(features).Input(labels).Outputs();
}
std::vector<Output> SparseSoftmaxCrossEntropyWithLogits(const Scope& s, Output features,
                                                        Output labels) {
  return s.Op("SparseSoftmaxCrossEntropyWithLogits").Input(features).Input(labels).Outputs();
}
Output InTopK(const Scope& s, Output predictions, Output targets, int64_t k) {
  return s.Op("InTopK").Input(predictions).Input(targets).Attr("k", k).Output();
}

}  // namespace tenon
