// SPDX-License-Identifier: Apache-2.0
#include "train/layers/training_flag.h"

#include "ops/control_flow/flow.h"

namespace tenon {

TrainingFlag::TrainingFlag(const Input& training) {
  if (const Output* tensor = training.output()) {
    tensor_ = *tensor;
    if (!tensor_.exists() || tensor_.dtype() == DType::kBool) return;
  } else if (const Literal* literal = training.literal()) {
    const auto value = literal->ToTensor(DType::kBool);
    if (value.ok() && value->shape().IsScalar()) {
      known_ = value->scalar<bool>();
      return;
    }
  }
  CurrentBuilding().Fail(InvalidArgument("training must be true, false or a bool scalar"),
                         training.location());
}

std::vector<Output> TrainingFlag::Choose(
    const std::function<std::vector<Output>()>& in_training,
    const std::function<std::vector<Output>()>& otherwise) const {
  if (known_) return *known_ ? in_training() : otherwise();
  return Cond(tensor_, Branch(in_training), Branch(otherwise));
}

}  // namespace tenon
