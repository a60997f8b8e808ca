// SPDX-License-Identifier: Apache-2.0
#include "ops/data/walk.h"

#include "core/base/exceptions.h"
#include "core/base/interruption.h"
#include "ops/data/optional_element.h"

namespace tenon {

StatusOr<std::shared_ptr<DatasetWalk>> DatasetWalk::Begin(const ElementSpec& wanted,
                                                          const Dataset& dataset) {
  TENON_RETURN_IF_ERROR(CheckSpec(wanted, dataset.types(), dataset.shapes()));
  auto walk = std::make_shared<DatasetWalk>();
  TENON_ASSIGN_OR_RETURN(walk->iterator_, dataset.MakeIterator(walk->context_));
  return walk;
}

StatusOr<std::thread> StartThread(std::function<void()> work) {
  return CatchExceptions([&]() -> StatusOr<std::thread> { return std::thread(std::move(work)); });
}

void AwaitEnd(std::thread thread) {
  if (!thread.joinable()) return;
  if (thread.get_id() == std::this_thread::get_id()) {
    thread.detach();
  } else {
    thread.join();
  }
}

WalkResult DatasetWalk::Take() {
  const InterruptibleBy interruption(&context_->cancellation());
  WalkResult result;
  const Status status = CatchExceptions([&] {
    result.found = iterator_->Next(&result.element);
    return OkStatus();
  });
  if (!status.ok()) result.found = status;
  return result;
}

bool ElementRequest::Await(std::function<bool()> withdraw) {
  Cancellation* const cancellation = ctx_.run().cancellation;
  if (cancellation == nullptr) return true;
  token_ = cancellation->Register([this, withdraw = std::move(withdraw)](const Status& why) {
    if (withdraw()) done_(why);
  });
  if (token_ != Cancellation::kAlreadyCancelled) return true;
  done_(cancellation->status());
  return false;
}

void ElementRequest::Answer(WalkResult result) {
  if (token_ != Cancellation::kAlreadyCancelled) ctx_.run().cancellation->Deregister(token_);
  done_(Fill(std::move(result)));
}

Status ElementRequest::Fill(WalkResult result) {
  TENON_RETURN_IF_ERROR(result.found.status());
  if (as_optional_) {
    auto made = std::make_shared<OptionalElement>();
    made->exists = *result.found;
    for (const Tensor& t : result.element) TENON_RETURN_IF_ERROR(made->CountDepth(t));
    made->element = std::move(result.element);
    ctx_.set_output(0, Tensor::Scalar(Variant{std::move(made)}));
    return OkStatus();
  }
  if (!*result.found) return OutOfRange("End of sequence");
  for (size_t i = 0; i < result.element.size(); ++i) {
    ctx_.set_output(static_cast<int>(i), std::move(result.element[i]));
  }
  return OkStatus();
}

}  // namespace tenon
