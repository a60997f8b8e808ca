// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/simulated_ranks.h"

#include <numeric>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/strings.h"
#include "runtime/accelerator/stream_device.h"
#include "tests/testing/simulated_driver.h"

namespace tenon::testing {
namespace {

/// The store of a job with names of its own, beside those of the ranks' other library.
class OwnNames final : public KeyValueStore {
 public:
  explicit OwnNames(KeyValueStore& store) : store_(store) {}
  Status Put(const std::string& key, const std::string& value,
             std::chrono::milliseconds limit) override {
    return store_.Put(StrCat("device/", key), value, limit);
  }
  Status Replace(const std::string& key, const std::string& value,
                 std::chrono::milliseconds limit) override {
    return store_.Replace(StrCat("device/", key), value, limit);
  }
  StatusOr<std::string> Get(const std::string& key, std::chrono::milliseconds limit) override {
    return store_.Get(StrCat("device/", key), limit);
  }

 private:
  KeyValueStore& store_;
};

int64_t SumOf(absl::Span<const int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
}

class SimulatedBackend final : public CollectiveBackend {
 public:
  SimulatedBackend(SimulatedDriver& driver, std::unique_ptr<OwnNames> names,
                   std::unique_ptr<CollectiveBackend> backend)
      : driver_(driver), names_(std::move(names)), backend_(std::move(backend)) {}

  Status AllReduce(void* data, int64_t count, DType dtype, Reduction reduction,
                   const CollectiveCall& call) override {
    const int64_t bytes = count * static_cast<int64_t>(SizeOf(dtype));
    return Do({{data, bytes, true}}, [&] {
      return backend_->AllReduce(driver_.OnDevice(data), count, dtype, reduction, call);
    });
  }
  Status Broadcast(void* data, int64_t bytes, int root, const CollectiveCall& call) override {
    return Do({{data, bytes, true}},
              [&] { return backend_->Broadcast(driver_.OnDevice(data), bytes, root, call); });
  }
  Status AllGather(const void* in, void* out, absl::Span<const int64_t> sizes,
                   const CollectiveCall& call) override {
    return Do(
        {{in, static_cast<int64_t>(call.in.num_bytes()), false}, {out, SumOf(sizes), true}}, [&] {
          return backend_->AllGather(driver_.OnDevice(in), driver_.OnDevice(out), sizes, call);
        });
  }
  Status AllToAll(const void* in, absl::Span<const int64_t> sent, void* out,
                  absl::Span<const int64_t> received, const CollectiveCall& call) override {
    return Do({{in, SumOf(sent), false}, {out, SumOf(received), true}}, [&] {
      return backend_->AllToAll(driver_.OnDevice(in), sent, driver_.OnDevice(out), received, call);
    });
  }
  Status Barrier(const CollectiveCall& call) override { return backend_->Barrier(call); }
  void Abort(bool has_failed) override { backend_->Abort(has_failed); }

 private:
  struct Access {
    const void* memory;
    int64_t bytes;
    bool writes;
  };

  /// Queues it behind the kernels, and waits for it.
  Status Do(const std::vector<Access>& accesses, const std::function<Status()>& work) {
    std::vector<SimulatedDriver::Access> used;
    for (const Access& a : accesses) {
      if (a.bytes > 0) used.push_back({a.memory, static_cast<size_t>(a.bytes), a.writes});
    }
    Status status;
    Mutex mu;
    CondVar ends;
    bool is_done = false;
    driver_.Launch(Stream::kCompute, std::move(used), [&] { status = work(); });
    driver_.CallWhenDone(Stream::kCompute, [&](const Status& end) {
      MutexLock lock(mu);
      status.Update(end);
      is_done = true;
      ends.NotifyAll();
    });
    MutexLock lock(mu);
    while (!is_done) ends.Wait(mu);
    return status;
  }

  SimulatedDriver& driver_;
  const std::unique_ptr<OwnNames> names_;  // for longer than the backend
  const std::unique_ptr<CollectiveBackend> backend_;
};

}  // namespace

StatusOr<std::unique_ptr<CollectiveBackend>> JoinBySimulatedDevice(const RankOptions& options,
                                                                   const JoinFunction& join) {
  auto& driver =
      static_cast<SimulatedDriver&>(static_cast<StreamDevice&>(*options.device).driver());
  auto names = std::make_unique<OwnNames>(*options.store);
  RankOptions inner = options;
  inner.store = names.get();
  inner.device = nullptr;
  TENON_ASSIGN_OR_RETURN(auto backend, join(inner));
  return std::make_unique<SimulatedBackend>(driver, std::move(names), std::move(backend));
}

}  // namespace tenon::testing
