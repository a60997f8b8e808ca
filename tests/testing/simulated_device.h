// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "ops/cuda/device_kind.h"
#include "runtime/accelerator/stream_device.h"
#include "tests/testing/simulated_driver.h"

namespace tenon::testing {

inline constexpr char kSimulatedName[] = "/job:localhost/replica:0/task:0/device:GPU:0";

/// A device whose driver is its own, and lives on as drivers do.
struct SimulatedDevice {
  SimulatedDriver& driver = *new SimulatedDriver(7);
  StreamDevice device{kSimulatedName, kCuda, driver, 1 << 30, std::make_shared<ResourceStore>()};

  using Done = std::function<void(StatusOr<Tensor>)>;
  static StatusOr<Tensor> Await(const std::function<void(Done)>& start) {
    StatusOr<Tensor> result = Internal("not called");
    Mutex mu;
    CondVar cv;
    bool over = false;
    start([&](StatusOr<Tensor> copy) {
      MutexLock lock(mu);
      result = std::move(copy);
      over = true;
      cv.NotifyOne();
    });
    MutexLock lock(mu);
    while (!over) cv.Wait(mu);
    return result;
  }
  StatusOr<Tensor> ToHost(const Tensor& t) {
    return Await([&](Done done) { device.CopyToHost(t, 1, std::move(done)); });
  }
  StatusOr<Tensor> ToPeer(const Tensor& t, SimulatedDevice& peer) {
    return Await([&](Done done) { device.CopyToPeer(t, peer.device, 1, std::move(done)); });
  }
  /// Queues a kernel that adds one to each of the floats.
  void AddOne(const Tensor& from, Tensor* to, Stream stream = Stream::kCompute) {
    const float* const in = from.data<float>();
    float* const out = to->data<float>();
    const int64_t n = from.num_elements();
    driver.Launch(stream, {{in, from.num_bytes(), false}, {out, to->num_bytes(), true}},
                  [this, in, out, n] {
                    auto* const source = static_cast<const float*>(driver.OnDevice(in));
                    auto* const target = static_cast<float*>(driver.OnDevice(out));
                    for (int64_t i = 0; i < n; ++i) target[i] = source[i] + 1;
                  });
  }
  Tensor New(const Shape& shape) {
    return Tensor::Allocate(device.allocator(), DType::kFloat, shape).value();
  }
};

/// 0, 1, ..., n - 1.
inline Tensor Numbers(int64_t n) {
  Tensor t(DType::kFloat, {n});
  for (int64_t i = 0; i < n; ++i) t.data<float>()[i] = static_cast<float>(i);
  return t;
}

}  // namespace tenon::testing
