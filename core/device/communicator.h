// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace tenon {

/// How the values of several ranks become one. kMean is of floats only.
enum class Reduction : uint8_t { kSum, kMin, kMax, kProduct, kMean };

/// A thing that ranks do together. Every rank starts the same ones in the same order.
struct Collective {
  enum class Kind : uint8_t {
    kAllReduce,  ///< data becomes the reduction of the data of all ranks.
    kBroadcast,  ///< data becomes that of the rank `root`.
    kAllGather,  ///< The rows (dimension 0) of all ranks in their order; ranks may differ in
                 ///< number.
    kAllToAll,   ///< The rows that each rank has for this one, in the order of the ranks.
    kBarrier,    ///< Nothing, when all ranks have come.
  };

  Kind kind = Kind::kBarrier;
  /// The same on every rank: what messages call it.
  std::string name = {};
  /// Numbers in the host's memory; written in place by kAllReduce and kBroadcast where nobody else
  /// shares them, else copied.
  Tensor data = {};
  /// The data and the result are in the communicator's device_memory instead, on all ranks: the
  /// data have been written, and nothing queued on the device uses them any more; nobody shares
  /// what is written in place.
  bool on_device = false;
  Reduction reduction = Reduction::kSum;
  int root = 0;
  /// How many rows of data go to each rank, in kAllToAll.
  std::vector<int64_t> rows_to = {};
  /// Memory for the result of kAllGather and kAllToAll, whose shapes the ranks find out.
  std::function<StatusOr<Tensor>(const Shape& shape)> allocate = {};

  /// "AllReduce 'loss' of float[2,3]", for messages.
  std::string ToString() const;
};

struct CollectiveResult {
  Tensor data;
  /// How many rows came from each rank, in kAllToAll.
  std::vector<int64_t> rows_from;
};

/// A group of processes, its ranks, as one of them sees it. Thread-safe.
class Communicator {
 public:
  using Done = std::function<void(StatusOr<CollectiveResult>)>;

  virtual ~Communicator() = default;

  /// This process's number, and how many there are; the same on this process's machine.
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual int local_rank() const = 0;
  virtual int local_size() const = 0;
  /// The memory of the device by which the ranks have joined; null where they have by none.
  virtual const Allocator* device_memory() const { return nullptr; }

  /// Begins a collective, after all that were started before. `done` is called once, perhaps from
  /// another thread, when this rank has its result. After a failure, of which the error names the
  /// rank and the collective as far as known, every other one fails.
  virtual void Start(Collective what, Done done) = 0;
  /// The same, and waits for the result.
  virtual StatusOr<CollectiveResult> Run(Collective what);
  /// Fails what is under way and what is to come: here with `why`, and on the other ranks, which
  /// are told the first reason.
  virtual void Abort(const Status& why) = 0;
  /// Ends what the ranks have done together until now, such as steps whose data have come to their
  /// end on this rank: what the others wait for fails with OutOfRange and the words of `why`, which
  /// is OutOfRange too. Each rank then calls this with its error, waits here for the others, and
  /// has working collectives again. Where they had failed for another reason that error stays, and
  /// is returned; DeadlineExceeded names a rank that has not come. From one thread at a time, with
  /// no collective under way that another thread waits for.
  virtual Status BeginAnew(const Status& why) = 0;
};

}  // namespace tenon
