// SPDX-License-Identifier: Apache-2.0
#include "runtime/gloo/gloo_backend.h"

#include <gloo/allgatherv.h>
#include <gloo/allreduce.h>
#include <gloo/alltoallv.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/rendezvous/context.h>
#include <gloo/transport/tcp/device.h>
#include <sched.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "core/base/strings.h"
#include "runtime/collectives/reductions.h"
#include "runtime/gloo/own_connections.h"

namespace tenon {
namespace {

/// The exception of a store whose call has failed, which Gloo hands on.
struct StoreError : std::exception {
  explicit StoreError(Status of) : status(std::move(of)) {}
  const char* what() const noexcept override { return "the ranks' store has failed"; }

  Status status;
};

/// The addresses of the ranks, in the job's store.
class AddressStore final : public gloo::rendezvous::Store {
 public:
  explicit AddressStore(const RankOptions& options) : options_(options) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    own_.assign(data.begin(), data.end());
    const Status put = options_.store->Put(Key(key), own_, options_.start_limit);
    if (!put.ok()) throw StoreError(put);
  }
  std::vector<char> get(const std::string& key) override {
    const StatusOr<std::string> value = options_.store->Get(Key(key), options_.start_limit);
    if (!value.ok()) throw StoreError(Annotate(value.status(), StrCat("rank ", key)));
    others_.push_back(ForThisRank(*value, std::atoi(key.c_str())));
    return std::vector<char>(value->begin(), value->end());
  }
  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) get(key);
  }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds&) override {
    wait(keys);
  }

  /// Whether a connection between these ends is one of this rank's: it was accepted at an address
  /// of this rank, or leads to one of another rank.
  bool Has(const std::string& own, const std::string& peer) const {
    return own_.find(own) != std::string::npos ||
           std::any_of(others_.begin(), others_.end(), [&](const std::string& addresses) {
             return addresses.find(peer) != std::string::npos;
           });
  }

 private:
  std::string Key(const std::string& rank) const {
    return StrCat("gloo/", options_.generation, "/", rank);
  }

  /// A rank listens for each other one at an address of its own, and has them one after the other.
  std::string ForThisRank(const std::string& addresses, int of) const {
    const auto others = static_cast<size_t>(options_.size - 1);
    const auto place = static_cast<size_t>(options_.rank < of ? options_.rank : options_.rank - 1);
    const size_t size = addresses.size() / others;
    return addresses.substr(place * size, size);
  }

  const RankOptions& options_;
  std::string own_;
  std::vector<std::string> others_;
};

/// A call of Gloo's, whose exceptions become errors. After each of them its connections are of no
/// use.
template <typename Call>
Status Try(const Call& call) {
  try {
    call();
  } catch (const StoreError& error) {
    return error.status;
  } catch (const gloo::IoException& error) {
    const std::string_view text = error.what();
    if (text.find("Timed out") != std::string_view::npos) return DeadlineExceeded(text);
    return Unavailable(text);
  } catch (const std::exception& error) {
    return Unavailable("Gloo: ", error.what());
  }
  return OkStatus();
}

class GlooBackend final : public CollectiveBackend {
 public:
  GlooBackend(std::shared_ptr<gloo::rendezvous::Context> context, OwnConnections connections)
      : context_(std::move(context)), connections_(std::move(connections)) {}
  ~GlooBackend() override { connections_.End(); }

  Status AllReduce(void* data, int64_t count, DType dtype, Reduction reduction,
                   const CollectiveCall& call) override {
    const ReductionFunction function = ReductionOf(dtype, reduction);
    if (function == nullptr) return Unimplemented("no sums of ", ToString(dtype));
    if (count == 0) return OkStatus();
    gloo::AllreduceOptions options(context_);
    // The options know of elements by the size of their type alone.
    switch (SizeOf(dtype)) {
      case 1:
        options.setOutput(static_cast<uint8_t*>(data), static_cast<size_t>(count));
        break;
      case 2:
        options.setOutput(static_cast<uint16_t*>(data), static_cast<size_t>(count));
        break;
      case 4:
        options.setOutput(static_cast<uint32_t*>(data), static_cast<size_t>(count));
        break;
      default:
        options.setOutput(static_cast<uint64_t*>(data), static_cast<size_t>(count));
        break;
    }
    options.setReduceFunction(function);
    Limit(call, &options);
    TENON_RETURN_IF_ERROR(Try([&] { gloo::allreduce(options); }));
    FinishReduction(reduction, dtype, data, static_cast<size_t>(count), context_->size);
    return OkStatus();
  }

  Status Broadcast(void* data, int64_t bytes, int root, const CollectiveCall& call) override {
    if (bytes == 0) return OkStatus();
    gloo::BroadcastOptions options(context_);
    options.setOutput(static_cast<char*>(data), static_cast<size_t>(bytes));
    options.setRoot(root);
    Limit(call, &options);
    return Try([&] { gloo::broadcast(options); });
  }

  Status AllGather(const void* in, void* out, absl::Span<const int64_t> sizes,
                   const CollectiveCall& call) override {
    const std::vector<size_t> counts(sizes.begin(), sizes.end());
    gloo::AllgathervOptions options(context_);
    // Gloo reads the memory of an input, and does not write it.
    options.setInput(static_cast<char*>(const_cast<void*>(in)),
                     counts[static_cast<size_t>(context_->rank)]);
    options.setOutput(static_cast<char*>(out), counts);
    Limit(call, &options);
    return Try([&] { gloo::allgatherv(options); });
  }

  Status AllToAll(const void* in, absl::Span<const int64_t> sent, void* out,
                  absl::Span<const int64_t> received, const CollectiveCall& call) override {
    gloo::AlltoallvOptions options(context_);
    options.setInput(static_cast<char*>(const_cast<void*>(in)),
                     std::vector<int64_t>(sent.begin(), sent.end()));
    options.setOutput(static_cast<char*>(out),
                      std::vector<int64_t>(received.begin(), received.end()));
    Limit(call, &options);
    return Try([&] { gloo::alltoallv(options); });
  }

  Status Barrier(const CollectiveCall& call) override {
    gloo::BarrierOptions options(context_);
    Limit(call, &options);
    return Try([&] { gloo::barrier(options); });
  }

  /// Gloo itself can only close its connections, which wakes nobody who waits on this side.
  void Abort(bool) override { connections_.End(); }

 private:
  template <typename Options>
  static void Limit(const CollectiveCall& call, Options* options) {
    options->setTag(call.tag);
    options->setTimeout(call.limit);
  }

  const std::shared_ptr<gloo::rendezvous::Context> context_;
  OwnConnections connections_;
};

/// The device's thread takes what comes from other ranks. It tries locks again and again that
/// callers hold, for milliseconds where both share a core and it has put them aside: so it is one
/// of those that put nobody aside (SCHED_BATCH), which a thread inherits from who starts it.
std::shared_ptr<gloo::transport::Device> MakeDevice(const std::string& host) {
  const int before = sched_getscheduler(0);
  sched_param priority = {};
  const bool is_usual = before == SCHED_OTHER;
  if (is_usual) sched_setscheduler(0, SCHED_BATCH, &priority);
  const absl::Cleanup restore = [&] {
    if (is_usual) sched_setscheduler(0, SCHED_OTHER, &priority);
  };
  return gloo::transport::tcp::CreateDevice(host.c_str());
}

constexpr uint32_t kJoinedTag = 1;

/// Gloo writes to a rank that has gone as to any other, and the signal would end this process.
void IgnoreBrokenPipes() {
  struct sigaction before = {};
  if (sigaction(SIGPIPE, nullptr, &before) == 0 && before.sa_handler == SIG_DFL) {
    signal(SIGPIPE, SIG_IGN);
  }
}

}  // namespace

StatusOr<std::unique_ptr<CollectiveBackend>> JoinByGloo(const RankOptions& options) {
  IgnoreBrokenPipes();
  std::unique_ptr<CollectiveBackend> backend;
  const Status status = Try([&] {
    std::shared_ptr<gloo::transport::Device> device = MakeDevice(options.host);
    auto context = std::make_shared<gloo::rendezvous::Context>(options.rank, options.size);
    context->setTimeout(options.start_limit);
    AddressStore store(options);
    context->connectFullMesh(store, device);
    // A rank that leaves at once would break off the connections that others still make.
    gloo::BarrierOptions joined(context);
    joined.setTag(kJoinedTag);
    joined.setTimeout(options.start_limit);
    gloo::barrier(joined);
    OwnConnections connections(
        [&store](const std::string& own, const std::string& peer) { return store.Has(own, peer); });
    backend = std::make_unique<GlooBackend>(std::move(context), std::move(connections));
  });
  if (!status.ok()) {
    return Annotate(status, StrCat("rank ", options.rank, " of ", options.size,
                                   " cannot join the others from ", options.host));
  }
  return backend;
}

}  // namespace tenon
