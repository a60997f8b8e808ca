// SPDX-License-Identifier: Apache-2.0
#include "distributed/worker/group_exchange.h"

#include <algorithm>

#include "core/base/strings.h"
#include "core/device/rendezvous.h"

namespace tenon {
namespace {

/// Data of so many bytes go whole from each task to each other one, which is one way to wait for
/// instead of two.
constexpr size_t kWholeBytes = 64 << 10;

Tensor Flat(const Tensor& t) { return *t.Reshaped(Shape{t.num_elements()}); }

/// The tensors that have come from other tasks for one exchange.
struct Arrivals {
  Mutex mu;
  size_t left ABSL_GUARDED_BY(mu);
  std::vector<Tensor> tensors ABSL_GUARDED_BY(mu);
};

/// The name of the note by which tasks find out that they do different things. Data have the
/// signature in their names, so that nobody takes those of another thing.
constexpr char kNoteName[] = "note";

// The elements of a note.
enum Note { kSignature, kDescription, kSource, kNotes };

}  // namespace

GroupExchange::GroupExchange(std::shared_ptr<const GroupTasks> tasks, int64_t use,
                             WaitingParts parts, Failed failed)
    : tasks_(std::move(tasks)),
      name_(StrCat("group_", parts[0].part.group, "_", parts[0].part.instance, "_", use, "_")),
      data_name_(StrCat(name_, SignatureOf(parts[0].part), "_")),
      first_(parts[0].part),
      failed_(std::move(failed)),
      parts_(std::move(parts)),
      awaited_(tasks_->tasks.size(), 0) {}

Status HasLeft(const std::string& task, int32_t group, const Status& why) {
  // The first reason is enough: it has gone from task to task.
  for (const char* known : {" has left group ", " has joined group "}) {
    if (Message(why).find(known) != std::string_view::npos) return why;
  }
  return Status(why.code(), StrCat(task, " has left group ", group, ": ", Message(why)));
}

std::string GroupKey(const GroupTasks& tasks, int from, int to, std::string name) {
  RendezvousKey key;
  key.src_device = tasks.tasks[from].device;
  key.src_incarnation = tasks.tasks[from].incarnation;
  key.dst_device = tasks.tasks[to].device;
  key.tensor_name = std::move(name);
  return key.ToString();
}

void GroupExchange::Begin() {
  bool is_source = false;
  {
    MutexLock lock(mu_);
    if (over_) return;
    for (const WaitingPart& p : parts_) is_source |= p.part.is_source;
    timer_ = tasks_->clock->CallAfter(first().limit, [exchange = weak_from_this()] {
      if (const auto alive = exchange.lock()) alive->HandleLimit();
    });
  }
  const Tensor note = Tensor::Vector<TString>(
      {SignatureOf(first()), first().what.ToString(), is_source ? "source" : ""});
  const auto kind = first().what.kind;
  const auto agree = [this, kind](const Tensors& notes) {
    if (const Status s = CheckNotes(notes); !s.ok()) return Fail(s);
    std::function<void(WaitingParts)> finish;
    {
      MutexLock lock(mu_);
      agreed_ = true;
      finish = std::move(finish_);
      finish_ = nullptr;
    }
    if (finish) FinishWith(std::move(finish));
    if (kind == Collective::Kind::kBroadcast) Broadcast(notes);
  };
  if (kind == Collective::Kind::kBroadcast) {
    return Exchange(kNoteName, ForOthers(note), Others(), agree);
  }
  // Where each does what the one before it does, all do the same.
  Tensors to_next(tasks_->tasks.size());
  to_next[(tasks_->own + 1) % size()] = note;
  Exchange(kNoteName, to_next, {(tasks_->own + size() - 1) % size()}, agree);
  if (kind == Collective::Kind::kAllReduce) return AllReduce();
  if (kind == Collective::Kind::kAllGather) return AllGather();
  if (kind == Collective::Kind::kAllToAll) return AllToAll();
  FinishWith([](const WaitingParts& parts) { FinishWithSame(parts, Tensor()); });
}

Status GroupExchange::CheckNotes(const Tensors& notes) const {
  const std::string own = SignatureOf(first());
  for (int task = 0; task < size(); ++task) {
    const Tensor& note = notes[task];
    if (!note.valid()) continue;
    if (note.dtype() != DType::kString || note.num_elements() != kNotes) {
      return Internal(tasks_->tasks[task].name, " has left no note about ", InstanceName(first()));
    }
    const TString* const texts = note.data<TString>();
    if (std::string_view(texts[kSignature]) != own) {
      return InvalidArgument("the members do not do the same in ", InstanceName(first()), ": ",
                             tasks_->tasks[task].name, " is in ",
                             std::string_view(texts[kDescription]), ", ",
                             tasks_->tasks[tasks_->own].name, " in ", first().what.ToString());
    }
  }
  return OkStatus();
}

void GroupExchange::AllReduce() {
  StatusOr<Tensor> sum = [&]() -> StatusOr<Tensor> {
    MutexLock lock(mu_);
    if (over_) return Cancelled("it is over");
    return ReduceParts(parts_);
  }();
  if (!sum.ok()) return Fail(sum.status());
  const Tensor own = Flat(*sum);
  /// The sum of these in the order of the tasks.
  const auto total = [this](Tensors all, const Tensor& mine) -> StatusOr<Tensor> {
    all[tasks_->own] = mine;
    TENON_ASSIGN_OR_RETURN(Tensor sum, all[0].Copy());
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i].dtype() != mine.dtype() || all[i].shape() != mine.shape()) {
        return InvalidArgument("the members do not do the same in ", InstanceName(first()), ": ",
                               tasks_->tasks[i].name, " has ", ToString(all[i].dtype()),
                               all[i].shape(), ", ", tasks_->tasks[tasks_->own].name, " ",
                               ToString(mine.dtype()), mine.shape());
      }
      if (i > 0) TENON_RETURN_IF_ERROR(ReduceInto(all[i], first().what.reduction, &sum));
    }
    return sum;
  };
  const auto finish = [this](const Tensor& result) {
    FinishWith([this, result = *result.Reshaped(first().what.data.shape())](WaitingParts parts) {
      FinishReduce(std::move(parts), tasks_->layout.MembersOf(tasks_->own), result);
    });
  };
  if (own.num_bytes() <= kWholeBytes) {
    return Exchange("sum", ForOthers(own), Others(), [=, this](const Tensors& all) {
      StatusOr<Tensor> result = total(all, own);
      if (!result.ok()) return Fail(result.status());
      finish(*result);
    });
  }
  Tensors shares(tasks_->tasks.size());
  for (const int task : Others()) {
    const auto [begin, end] = ShareOf(task);
    shares[task] = own.Slice(begin, end);
  }
  Exchange("share", shares, Others(), [=, this](const Tensors& all) {
    const auto [begin, end] = ShareOf(tasks_->own);
    const StatusOr<Tensor> share = total(all, own.Slice(begin, end));
    if (!share.ok()) return Fail(share.status());
    Exchange("total", ForOthers(*share), Others(), [=, this](Tensors totals) {
      totals[tasks_->own] = *share;
      StatusOr<Tensor> result = Assemble(totals);
      if (!result.ok()) return Fail(result.status());
      finish(*result);
    });
  });
}

void GroupExchange::AllGather() {
  StatusOr<Tensor> rows = [&]() -> StatusOr<Tensor> {
    MutexLock lock(mu_);
    if (over_) return Cancelled("it is over");
    return JoinParts(parts_);
  }();
  if (!rows.ok()) return Fail(rows.status());
  Exchange("rows", ForOthers(*rows), Others(), [this, own = *rows](Tensors all) {
    all[tasks_->own] = own;
    const Shape& shape = first().what.data.shape();
    StatusOr<Tensor> result = [&]() -> StatusOr<Tensor> {
      TENON_ASSIGN_OR_RETURN(const int64_t rows, MultiplySizes(shape.dim(0), first().size));
      TENON_ASSIGN_OR_RETURN(const Shape whole, ShapeOfRows(first(), rows));
      return Tensor::Allocate(CpuAllocator(), own.dtype(), whole);
    }();
    if (!result.ok()) return Fail(result.status());
    auto* to = static_cast<char*>(result->raw_data());
    for (int task = 0; task < size(); ++task) {
      const auto members = static_cast<int64_t>(tasks_->layout.MembersOf(task).size());
      const Shape wanted = shape.WithDim(0, shape.dim(0) * members);
      if (all[task].dtype() != own.dtype() || all[task].shape() != wanted) {
        return Fail(InvalidArgument(tasks_->tasks[task].name, " has ", all[task].shape(), " for ",
                                    InstanceName(first()), ", wanted ", wanted));
      }
      to = std::copy_n(static_cast<const char*>(all[task].raw_data()), all[task].num_bytes(), to);
    }
    FinishWith([result = *std::move(result)](const WaitingParts& parts) {
      FinishWithSame(parts, result);
    });
  });
}

void GroupExchange::AllToAll() {
  Tensors shares(tasks_->tasks.size());
  {
    MutexLock lock(mu_);
    if (over_) return;
    for (int task = 0; task < size(); ++task) {
      const StatusOr<Tensor> share = SharesFor(tasks_->layout.MembersOf(task), parts_);
      if (!share.ok()) {
        tasks_->pool->Submit(
            [self = shared_from_this(), why = share.status()] { self->Fail(why); });
        return;
      }
      shares[task] = *share;
    }
  }
  const Tensor own = std::exchange(shares[tasks_->own], Tensor());
  Exchange("rows", shares, Others(), [this, own](Tensors all) {
    all[tasks_->own] = own;
    const auto mine = static_cast<int64_t>(tasks_->layout.MembersOf(tasks_->own).size());
    for (int task = 0; task < size(); ++task) {
      const auto members = static_cast<int64_t>(tasks_->layout.MembersOf(task).size());
      const Shape& shape = first().what.data.shape();
      const Shape wanted = shape.WithDim(0, shape.dim(0) / first().size * mine * members);
      if (all[task].dtype() == own.dtype() && all[task].shape() == wanted) continue;
      return Fail(InvalidArgument(tasks_->tasks[task].name, " has ", all[task].shape(), " for ",
                                  InstanceName(first()), ", wanted ", wanted));
    }
    FinishWith([this, all = std::move(all)](WaitingParts parts) {
      FinishAllToAll(std::move(parts), tasks_->layout, all);
    });
  });
}

void GroupExchange::Broadcast(const Tensors& notes) {
  Tensor data;
  bool is_source = false;
  {
    MutexLock lock(mu_);
    if (over_) return;
    for (const WaitingPart& p : parts_) {
      if (!p.part.is_source) continue;
      data = p.part.what.data;
      is_source = true;
    }
  }
  Tasks sources;
  for (int task = 0; task < size(); ++task) {
    const bool sends = notes[task].valid() && !notes[task].data<TString>()[kSource].empty();
    if (sends || (task == tasks_->own && is_source)) sources.push_back(task);
  }
  if (sources.empty()) return Fail(NoSource(first()));
  if (sources.size() > 1) {
    return Fail(InvalidArgument(InstanceName(first()), " has two sources, in ",
                                tasks_->tasks[sources[0]].name, " and ",
                                tasks_->tasks[sources[1]].name));
  }
  const auto finish = [this](const Tensor& result) {
    FinishWith([result](const WaitingParts& parts) { FinishWithSame(parts, result); });
  };
  const int source = sources[0];
  const bool whole = first().what.data.num_bytes() <= kWholeBytes || size() == 2;
  if (is_source) {
    if (whole) {
      Exchange("data", ForOthers(data), {}, [](const Tensors&) {});
    } else {
      const Tensor flat = Flat(data);
      Tensors shares(tasks_->tasks.size());
      for (const int task : Others()) {
        const auto [begin, end] = ShareOf(task);
        shares[task] = flat.Slice(begin, end);
      }
      Exchange("share", shares, {}, [](const Tensors&) {});
      const auto [begin, end] = ShareOf(tasks_->own);
      Exchange("total", ForOthers(flat.Slice(begin, end)), {}, [](const Tensors&) {});
    }
    return finish(data);
  }
  if (whole) {
    return Exchange("data", Tensors(tasks_->tasks.size()), {source}, [=, this](const Tensors& all) {
      const Tensor& wanted = first().what.data;
      if (all[source].dtype() != wanted.dtype() || all[source].shape() != wanted.shape()) {
        return Fail(Internal(tasks_->tasks[source].name, " has sent ", all[source].shape(),
                             ", wanted ", wanted.shape()));
      }
      finish(all[source]);
    });
  }
  Exchange("share", Tensors(tasks_->tasks.size()), {source}, [=, this](const Tensors& all) {
    const Tensor share = all[source];
    Tensors sent = ForOthers(share);
    sent[source] = Tensor();
    Exchange("total", sent, Others(), [=, this](Tensors totals) {
      totals[tasks_->own] = share;
      const StatusOr<Tensor> result = Assemble(totals);
      if (!result.ok()) return Fail(result.status());
      finish(*result);
    });
  });
}

void GroupExchange::Exchange(const std::string& what, const Tensors& sent, const Tasks& from,
                             Next next) {
  for (int task = 0; task < size(); ++task) {
    if (!sent[task].valid()) continue;
    const Status left =
        tasks_->step->Send(GroupKey(*tasks_, tasks_->own, task, NameOf(what)), sent[task], false);
    if (!left.ok()) return Fail(left);
  }
  auto arrivals = std::make_shared<Arrivals>();
  {
    MutexLock lock(arrivals->mu);
    arrivals->left = from.size();
    arrivals->tensors.resize(tasks_->tasks.size());
  }
  if (from.empty()) return;
  {
    MutexLock lock(mu_);
    for (const int task : from) ++awaited_[task];
  }
  for (const int task : from) {
    tasks_->step->RecvAsync(
        GroupKey(*tasks_, task, tasks_->own, NameOf(what)),
        [self = shared_from_this(), arrivals, task, next](const Status& status, Tensor value,
                                                          bool) mutable {
          if (!status.ok()) {
            return self->Fail(HasLeft(self->tasks_->tasks[task].name, self->first().group, status));
          }
          {
            MutexLock lock(self->mu_);
            --self->awaited_[task];
          }
          Tensors all;
          {
            MutexLock lock(arrivals->mu);
            arrivals->tensors[task] = std::move(value);
            if (--arrivals->left > 0) return;
            all = std::move(arrivals->tensors);
          }
          // Sums take time, and this may be the thread that all connections wait for.
          self->tasks_->pool->Submit([self, all = std::move(all),
                                      next = std::move(next)]() mutable { next(std::move(all)); });
        });
  }
}

std::string GroupExchange::NameOf(const std::string& what) const {
  return what == kNoteName ? StrCat(name_, what) : StrCat(data_name_, what);
}

void GroupExchange::FinishWith(std::function<void(WaitingParts parts)> finish) {
  WaitingParts parts;
  Clock::Timer timer = 0;
  {
    MutexLock lock(mu_);
    if (over_) return;
    if (!agreed_) {
      finish_ = std::move(finish);
      return;
    }
    over_ = true;
    parts.swap(parts_);
    timer = timer_;
  }
  tasks_->clock->CancelTimer(timer);
  finish(std::move(parts));
}

void GroupExchange::Fail(const Status& why) {
  WaitingParts parts;
  Clock::Timer timer = 0;
  {
    MutexLock lock(mu_);
    if (std::exchange(over_, true)) return;
    parts.swap(parts_);
    timer = timer_;
  }
  tasks_->clock->CancelTimer(timer);
  FinishWithSame(parts, why);
  failed_(why);
}

void GroupExchange::HandleLimit() {
  std::vector<std::string> late;
  {
    MutexLock lock(mu_);
    for (size_t task = 0; task < awaited_.size(); ++task) {
      if (awaited_[task] > 0) late.push_back(tasks_->tasks[task].name);
    }
  }
  Fail(DeadlineExceeded(InstanceName(first()), " waits for ",
                        late.empty() ? "a thread" : Join(late, ", "), " since ",
                        first().limit.count(), " ms"));
}

GroupExchange::Tasks GroupExchange::Others() const {
  Tasks others;
  for (int task = 0; task < size(); ++task) {
    if (task != tasks_->own) others.push_back(task);
  }
  return others;
}

GroupExchange::Tensors GroupExchange::ForOthers(const Tensor& tensor) const {
  Tensors sent(tasks_->tasks.size(), tensor);
  sent[tasks_->own] = Tensor();
  return sent;
}

std::pair<int64_t, int64_t> GroupExchange::ShareOf(int task) const {
  const int64_t elements = first().what.data.num_elements();
  const int64_t each = elements / size(), more = elements % size();
  const auto begin = [&](int64_t t) { return each * t + std::min(t, more); };
  return {begin(task), begin(task + 1)};
}

StatusOr<Tensor> GroupExchange::Assemble(const Tensors& shares) const {
  const Tensor& like = first().what.data;
  TENON_ASSIGN_OR_RETURN(Tensor out, Tensor::Allocate(CpuAllocator(), like.dtype(), like.shape()));
  auto* to = static_cast<char*>(out.raw_data());
  for (int task = 0; task < size(); ++task) {
    const auto [begin, end] = ShareOf(task);
    if (shares[task].dtype() != like.dtype() || shares[task].num_elements() != end - begin) {
      return Internal(tasks_->tasks[task].name, " has sent ", shares[task].shape(), ", wanted ",
                      end - begin, " elements");
    }
    to = std::copy_n(static_cast<const char*>(shares[task].raw_data()), shares[task].num_bytes(),
                     to);
  }
  return out;
}

}  // namespace tenon
