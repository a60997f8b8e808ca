// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>
#include <thread>

#include "core/base/mutex.h"
#include "train/input/input_pipeline.h"

namespace tenon {

/// See InputPipeline::Prefetch.
class PrefetchSource final : public InputSource {
 public:
  PrefetchSource(std::unique_ptr<InputSource> from, int64_t count);
  ~PrefetchSource() override;
  StatusOr<bool> Next(InputElement* element) override;

 private:
  void Fill();

  const std::unique_ptr<InputSource> from_;  // of the thread
  const int64_t count_;
  Mutex mu_;
  CondVar changed_;
  std::deque<InputElement> ready_ ABSL_GUARDED_BY(mu_);
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  Status status_ ABSL_GUARDED_BY(mu_);
  std::thread thread_;
};

}  // namespace tenon
