// SPDX-License-Identifier: Apache-2.0
#include "ops/queues/waiting_resource.h"

#include "core/base/exceptions.h"
#include "core/base/interruption.h"

namespace tenon {

using Progress = WaitingOperation::Progress;

void RefuseTimeout(KernelConstruction& c) {
  if (c.attrs().Find("timeout_ms") == nullptr || c.Attr<int64_t>("timeout_ms") == -1) return;
  c.Fail(InvalidArgument("Timeout not supported yet."));
}

void WaitingResource::Start(int line, std::unique_ptr<WaitingOperation> operation,
                            const KernelContext& ctx, Kernel::Done done) {
  Waitings own, ended;
  own.emplace_back(std::move(operation), std::move(done), ctx.run().cancellation);
  Waiting& waiting = own.front();
  {
    MutexLock lock(mu_);
    Waitings& others = lines_[line];
    if ((others.empty() || !IsInOrder(line)) && Attempt(waiting) == Progress::kDone) {
      ended.splice(ended.end(), own);
    } else if (waiting.cancellation == nullptr) {
      others.splice(others.end(), own);
    } else {
      // Under the lock: a cancellation that comes now finds the operation in its line.
      const auto self = shared_from_this();
      waiting.token = waiting.cancellation->Register(
          [self, line, &waiting](const Status& why) { self->Cancel(line, &waiting, why); });
      const bool late = waiting.token == Cancellation::kAlreadyCancelled;
      if (late) GiveUp(waiting, waiting.cancellation->status());
      Waitings& to = late ? ended : others;
      to.splice(to.end(), own);
    }
    Advance(&ended);
  }
  End(std::move(ended));
}

Progress WaitingResource::Attempt(Waiting& waiting) {
  // The thread may be another step's, which is cancelled or has used up its memory.
  const InterruptibleBy nothing(nullptr);
  const ChargedTo owner(waiting.memory);
  const StatusOr<Progress> progress = CatchExceptions([&] { return waiting.operation->Attempt(); });
  if (progress.ok()) return *progress;
  waiting.status = progress.status();
  return Progress::kDone;
}

void WaitingResource::Advance(Waitings* ended) {
  ended->splice(ended->end(), cancelled_);
  for (bool changed = true; changed;) {
    changed = false;
    for (int i = 0; i < kLines; ++i) {
      Waitings& line = lines_[i];
      for (auto it = line.begin(); it != line.end();) {
        const Progress progress = Attempt(*it);
        changed |= progress != Progress::kNone;
        const auto next = std::next(it);
        if (progress == Progress::kDone) {
          ended->splice(ended->end(), line, it);
        } else if (IsInOrder(i)) {
          break;
        }
        it = next;
      }
    }
  }
}

void WaitingResource::CancelLine(int line, const Status& why) {
  for (Waiting& waiting : lines_[line]) GiveUp(waiting, why);
  cancelled_.splice(cancelled_.end(), lines_[line]);
}

void WaitingResource::Cancel(int line, const Waiting* waiting, const Status& why) {
  Waitings ended;
  {
    MutexLock lock(mu_);
    Waitings& waitings = lines_[line];
    for (auto it = waitings.begin(); it != waitings.end(); ++it) {
      if (&*it != waiting) continue;
      GiveUp(*it, why);
      ended.splice(ended.end(), waitings, it);
      Advance(&ended);
      break;
    }
  }
  End(std::move(ended));
}

void WaitingResource::End(Waitings ended) {
  for (Waiting& waiting : ended) {
    // After this no cancellation knows the operation any more.
    if (waiting.token != Cancellation::kAlreadyCancelled) {
      waiting.cancellation->Deregister(waiting.token);
    }
    if (waiting.status.ok()) {
      const InterruptibleBy nothing(nullptr);
      const ChargedTo owner(waiting.memory);
      waiting.status = CatchExceptions([&] { return waiting.operation->Finish(); });
    }
    waiting.operation.reset();
    waiting.done(std::move(waiting.status));
  }
}

void WaitingResource::GiveUp(Waiting& waiting, const Status& why) {
  const InterruptibleBy nothing(nullptr);
  const Status taken_back = CatchExceptions([&] {
    waiting.operation->TakeBack();
    return OkStatus();
  });
  waiting.status = Annotate(why, StrCat(waiting.operation->name(), " operation was cancelled"));
  if (taken_back.ok()) return;
  waiting.status = AppendToMessage(waiting.status, "; what it had taken is lost: out of memory");
}

}  // namespace tenon
