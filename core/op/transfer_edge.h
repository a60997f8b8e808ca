// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "core/device/rendezvous.h"
#include "core/op/function_kernel.h"
#include "core/op/kernel.h"

namespace tenon {

/// An edge of a graph that was cut, as the kernels at its two ends know it: by the rendezvous key
/// of their node's attributes.
class TransferEdge : public KernelState {
 public:
  explicit TransferEdge(KernelConstruction& c) {
    key_.src_device = c.Attr<std::string>("send_device");
    key_.src_incarnation = static_cast<uint64_t>(c.Attr<int64_t>("send_device_incarnation"));
    key_.dst_device = c.Attr<std::string>("recv_device");
    key_.tensor_name = c.Attr<std::string>("tensor_name");
    outside_loops_ = key_.ToString();
  }

  const std::string& receiver() const { return key_.dst_device; }

  /// Leaves the value at the step's rendezvous; of a dead input, that it is dead.
  Status Send(const KernelContext& ctx, Tensor value) const {
    if (ctx.run().rendezvous == nullptr) return NoRendezvous();
    std::string storage;
    return ctx.run().rendezvous->Send(Key(ctx, &storage), std::move(value), ctx.is_input_dead);
  }

  /// Makes the value that comes output 0 of the kernel, or dead, and calls `done`. Whoever sends
  /// may be wrong: Internal for another dtype than the output's, and for a value that is not in
  /// host memory, or not in the device's where it is to come `from_peer`.
  void Receive(KernelContext& ctx, bool from_peer, Kernel::Done done) const {
    if (ctx.run().rendezvous == nullptr) return done(NoRendezvous());
    std::string storage;
    ctx.run().rendezvous->RecvAsync(
        Key(ctx, &storage),
        [&ctx, from_peer, done = std::move(done)](const Status& status, Tensor value, bool dead) {
          if (!status.ok()) return done(status);
          if (!dead) {
            if (value.dtype() != ctx.output_type(0)) {
              return done(Internal("received a tensor of ", value.dtype(), ", wanted ",
                                   ctx.output_type(0)));
            }
            const bool in_place =
                from_peer ? &value.allocator() == &ctx.device().allocator() : value.IsHostMemory();
            if (!in_place) {
              return done(Internal("received a tensor in ",
                                   value.IsHostMemory() ? "host memory" : "a device's memory",
                                   ", wanted it elsewhere"));
            }
            // The value counts as one in the device's memory, though it may stay on the host: no
            // later update of a variable there shows in it.
            if (!ctx.device().allocator().IsHostMemory()) value.Settle();
            ctx.set_output(0, std::move(value));
          }
          ctx.is_output_dead = dead;
          done(OkStatus());
        });
  }

 private:
  static Status NoRendezvous() { return Internal("the step has no rendezvous"); }

  /// The text of the key for this run, in `*storage` when it is another than most runs have.
  std::string_view Key(const KernelContext& ctx, std::string* storage) const {
    if (ctx.frame == 0 && ctx.iteration == 0) return outside_loops_;
    RendezvousKey key = key_;
    key.frame = ctx.frame;
    key.iteration = ctx.iteration;
    *storage = key.ToString();
    return *storage;
  }

  RendezvousKey key_;
  std::string outside_loops_;
};

}  // namespace tenon
