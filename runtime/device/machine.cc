// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/machine.h"

#include <random>
#include <thread>
#include <utility>

#include "core/base/exceptions.h"

namespace tenon {
namespace {

class SystemEntropy final : public Entropy {
 public:
  uint64_t Next() override {
    std::random_device device;
    return uint64_t{device()} << 32 | device();
  }
};

class SystemThreads final : public ThreadStarter {
 public:
  StatusOr<std::unique_ptr<Work>> Start(std::function<void()> work) override {
    struct Running final : Work {
      explicit Running(std::function<void()> run) : thread(std::move(run)) {}
      std::jthread thread;
    };
    return CatchExceptions([&]() -> StatusOr<std::unique_ptr<Work>> {
      return std::make_unique<Running>(std::move(work));
    });
  }
};

}  // namespace

Entropy& MachineEntropy() {
  static auto* const entropy = new SystemEntropy;
  return *entropy;
}

ThreadStarter& MachineThreads() {
  static auto* const threads = new SystemThreads;
  return *threads;
}

}  // namespace tenon
