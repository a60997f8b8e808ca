// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/types/span.h"
#include "core/base/status.h"
#include "core/device/communicator.h"
#include "core/device/device_queue.h"
#include "core/tensor/dtype.h"
#include "core/tensor/tensor.h"
#include "runtime/collectives/key_value_store.h"

// Libraries of collectives come in plugins, which programs load when ranks join.

namespace tenon {

/// One call of a library.
struct CollectiveCall {
  /// Tells calls apart that are not the same on all ranks, where the library can: these then wait
  /// until the limit, or fail with Unavailable.
  uint32_t tag = 0;
  std::chrono::milliseconds limit{0};
  /// The owners of the memory, for a library that cannot give up a call which it has begun: it
  /// keeps them for as long as it may write there.
  Tensor in = {}, out = {};
};

/// A library of collectives, for the ranks of one job. The calls come from one thread, block, and
/// fail with Unavailable when a rank has gone and DeadlineExceeded after the limit; after a failure
/// nothing else may be called but Abort. Sizes are in bytes, one of each rank.
class CollectiveBackend {
 public:
  virtual ~CollectiveBackend() = default;

  /// `data` in place; `dtype` is one of ReducedTypes.
  virtual Status AllReduce(void* data, int64_t count, DType dtype, Reduction reduction,
                           const CollectiveCall& call) = 0;
  virtual Status Broadcast(void* data, int64_t bytes, int root, const CollectiveCall& call) = 0;
  /// `out` has the parts of all ranks, one after the other.
  virtual Status AllGather(const void* in, void* out, absl::Span<const int64_t> sizes,
                           const CollectiveCall& call) = 0;
  virtual Status AllToAll(const void* in, absl::Span<const int64_t> sent, void* out,
                          absl::Span<const int64_t> received, const CollectiveCall& call) = 0;
  virtual Status Barrier(const CollectiveCall& call) = 0;
  /// Makes the calls of all ranks fail. `has_failed`: by an error of the job, and not because this
  /// rank is done, or its data are. From any thread, also during a call.
  virtual void Abort(bool has_failed) = 0;
};

/// The libraries by which the ranks of a job have joined.
struct CollectiveBackends {
  std::unique_ptr<CollectiveBackend> host;    ///< Null where there is one rank.
  std::unique_ptr<CollectiveBackend> device;  ///< For a device's memory; null where that is none's.
};

/// Which rank of which job a process is.
struct RankOptions {
  int rank = 0, size = 1;
  /// The host by which other ranks reach this process.
  std::string host = "127.0.0.1";
  /// Where ranks find each other; outlives the backend.
  KeyValueStore* store = nullptr;
  /// How often these ranks have joined before.
  int64_t generation = 0;
  /// How long ranks wait for each other at the start.
  std::chrono::milliseconds start_limit{60000};
  /// For a library of a kind of devices, in whose memory the data are: the rank's device, which
  /// outlives the backend.
  DeviceQueue* device = nullptr;
};

/// The entry of a plugin. Only its first member may be read before it is known to be of this
/// program's version.
struct CollectivesPlugin {
  const char* version;
  /// Blocks until all ranks have joined; DeadlineExceeded names one that has not.
  StatusOr<std::unique_ptr<CollectiveBackend>> (*join)(const RankOptions& options);
  /// Whether this rank has what `join` needs, without the others; null: it has.
  Status (*check)(const RankOptions& options) = nullptr;
};

/// The name of the function that gives it:
/// `extern "C" const tenon::CollectivesPlugin* TenonCollectivesPlugin()`.
inline constexpr char kCollectivesPluginFunction[] = "TenonCollectivesPlugin";

/// The libraries for which there are plugins: "gloo", "openmpi" and "mpich", and "cuda" for the
/// memory of GPUs.
const std::vector<std::string>& CollectiveLibraries();

/// Loads the plugin of one of these, libtenon_<name>.so or what TENON_<NAME>_PLUGIN names.
StatusOr<const CollectivesPlugin*> LoadCollectives(const std::string& library);

/// Joins by one of these.
StatusOr<std::unique_ptr<CollectiveBackend>> JoinBy(const std::string& library,
                                                    const RankOptions& options);

}  // namespace tenon
