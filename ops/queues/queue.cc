// SPDX-License-Identifier: Apache-2.0
#include "ops/queues/queue.h"

#include <algorithm>

#include "ops/arguments.h"
#include "ops/array/strided_copy.h"
#include "ops/elements.h"

namespace tenon {
namespace {

using Progress = WaitingOperation::Progress;

/// "FIFOQueueV2" and "FIFOQueue" make the same.
std::string WithoutVersion(std::string op) {
  if (op.ends_with("V2")) op.resize(op.size() - 2);
  return op;
}

/// The least priority comes first out of a heap.
bool HasMorePriority(const Queue::Element& a, const Queue::Element& b) {
  return a[0].scalar<int64_t>() > b[0].scalar<int64_t>();
}

}  // namespace

Queue::Options::Options(KernelConstruction& c)
    : op(WithoutVersion(c.op())),
      order(op == "RandomShuffleQueue" ? Order::kRandom
            : op == "PriorityQueue"    ? Order::kLeastPriority
                                       : Order::kFirst),
      pads(op == "PaddingFIFOQueue"),
      types(c.Attr<DTypeVector>("component_types")),
      shapes(c.Attr<std::vector<PartialShape>>("shapes")),
      capacity(c.Attr<int64_t>("capacity")) {
  if (order == Order::kRandom) {
    min_after_dequeue = c.Attr<int64_t>("min_after_dequeue");
    seed = c.Attr<int64_t>("seed");
    seed2 = c.Attr<int64_t>("seed2");
    if (min_after_dequeue < 0 || (capacity >= 0 && min_after_dequeue >= capacity)) {
      c.Fail(InvalidArgument("min_after_dequeue must be at least 0 and below the capacity, found ",
                             min_after_dequeue, " and ", capacity));
    }
  }
  if (!(shapes.empty() && order != Order::kLeastPriority) && shapes.size() != types.size()) {
    c.Fail(InvalidArgument("Different number of component types.  Types: ", Join(types, ", "),
                           ", Shapes: ", Join(shapes, ", ")));
  }
  for (const PartialShape& shape : shapes) {
    if (pads ? shape.rank_known() : shape.IsFullyKnown()) continue;
    c.Fail(InvalidArgument("the shapes of a ", op, " must ",
                           pads ? "have a known rank" : "be fully defined", ", found ", shape));
  }
  if (order == Order::kLeastPriority) {
    types.insert(types.begin(), DType::kInt64);
    shapes.insert(shapes.begin(), Shape());
  }
}

Queue::Queue(const Options& options, std::string name)
    : options_(options),
      name_(std::move(name)),
      random_(Philox::FromSeeds(options.seed, options.seed2)) {}

int64_t Queue::num_bytes() const {
  MutexLock lock(mu_);
  int64_t bytes = 0;
  for (const Element& element : elements_) {
    for (const Tensor& t : element) bytes += static_cast<int64_t>(t.num_bytes());
  }
  return bytes;
}

int64_t Queue::size() const {
  MutexLock lock(mu_);
  return static_cast<int64_t>(elements_.size());
}

bool Queue::closed() const {
  MutexLock lock(mu_);
  return closed_;
}

Status Queue::CheckShared(const Options& wanted) const {
  const auto differs = [this](std::string_view what, const auto& has, const auto& requested) {
    return InvalidArgument("Shared queue '", name_, "' has ", what, " ", has, " but requested ",
                           what, " was ", requested);
  };
  const Options& has = options_;
  if (has.op != wanted.op) return differs("type", has.op, wanted.op);
  if (has.capacity != wanted.capacity) return differs("capacity", has.capacity, wanted.capacity);
  if (has.types != wanted.types) {
    return differs("component types", Join(has.types, ", "), Join(wanted.types, ", "));
  }
  if (has.shapes != wanted.shapes) {
    return differs("component shapes", Join(has.shapes, ", "), Join(wanted.shapes, ", "));
  }
  if (has.min_after_dequeue != wanted.min_after_dequeue) {
    return differs("min_after_dequeue", has.min_after_dequeue, wanted.min_after_dequeue);
  }
  const bool seeded = wanted.seed != 0 || wanted.seed2 != 0;
  if (seeded && (has.seed != wanted.seed || has.seed2 != wanted.seed2)) {
    return differs("random seeds", StrCat("(", has.seed, ", ", has.seed2, ")"),
                   StrCat("(", wanted.seed, ", ", wanted.seed2, ")"));
  }
  return OkStatus();
}

Status Queue::CheckComponents(const Element& components, bool many) const {
  if (components.size() != options_.types.size()) {
    return InvalidArgument("Wrong number of components in tuple. Expected ", options_.types.size(),
                           ", got ", components.size());
  }
  for (size_t i = 0; i < components.size(); ++i) {
    const Tensor& t = components[i];
    if (t.dtype() != options_.types[i]) {
      return InvalidArgument("Type mismatch in tuple component ", i, ". Expected ",
                             options_.types[i], ", got ", t.dtype());
    }
    if (many && (t.rank() == 0 || t.dim(0) != components[0].dim(0))) {
      return InvalidArgument(
          "All input tensors must have the same size in the 0th dimension. "
          "Component ",
          i, " has shape ", t.shape(), ", the first one ", components[0].shape());
    }
    if (options_.shapes.empty()) continue;
    if (options_.shapes[i].IsCompatibleWith(many ? t.shape().WithoutDim(0) : t.shape())) continue;
    const PartialShape rows = many ? PartialShape{t.dim(0)} : PartialShape(Shape());
    return InvalidArgument("Shape mismatch in tuple component ", i, ". Expected ",
                           rows.ConcatWith(options_.shapes[i]), ", got ", t.shape());
  }
  return OkStatus();
}

bool Queue::HasRoom() const {
  return options_.capacity < 0 || static_cast<int64_t>(elements_.size()) < options_.capacity;
}

int64_t Queue::Available() const {
  const int64_t size = static_cast<int64_t>(elements_.size());
  return closed_ ? size : size - options_.min_after_dequeue;
}

void Queue::Add(Element element) {
  elements_.push_back(std::move(element));
  if (options_.order == Order::kLeastPriority) {
    std::push_heap(elements_.begin(), elements_.end(), HasMorePriority);
  }
}

Queue::Element Queue::Take() {
  if (options_.order == Order::kFirst) {
    Element first = std::move(elements_.front());
    elements_.pop_front();
    return first;
  }
  if (options_.order == Order::kRandom) {
    // The choice is TensorFlow's: one word of the stream an element.
    if (words_used_ == words_.size()) {
      words_ = random_.Next();
      words_used_ = 0;
    }
    std::swap(elements_[words_[words_used_++] % elements_.size()], elements_.back());
  } else {
    std::pop_heap(elements_.begin(), elements_.end(), HasMorePriority);
  }
  Element last = std::move(elements_.back());
  elements_.pop_back();
  return last;
}

void Queue::PutBack(std::vector<Element> taken) {
  while (!taken.empty()) {
    if (options_.order == Order::kFirst) {
      elements_.push_front(std::move(taken.back()));
    } else {
      Add(std::move(taken.back()));
    }
    taken.pop_back();
  }
}

Status Queue::TooFew(int64_t wanted, int64_t there) const {
  return OutOfRange(options_.op, " '", name_,
                    "' is closed and has insufficient elements (requested ", wanted,
                    ", current size ", there, ")");
}

// Attempt and TakeBack run under the queue's lock, which the analysis cannot see.

class Queue::EnqueueOperation final : public WaitingOperation {
 public:
  EnqueueOperation(Queue& queue, Element components, bool many)
      : queue_(queue),
        components_(std::move(components)),
        rows_(many ? components_[0].dim(0) : -1) {}
  std::string_view name() const override { return "Enqueue"; }

  StatusOr<Progress> Attempt() override ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (queue_.closed_) {
      return Cancelled(queue_.options_.op, " '", queue_.name_, "' is closed.");
    }
    if (!queue_.HasRoom()) return Progress::kNone;
    if (rows_ < 0) {
      queue_.Add(std::move(components_));
      return Progress::kDone;
    }
    for (; next_ < rows_ && queue_.HasRoom(); ++next_) {
      TENON_ASSIGN_OR_RETURN(Element row, Row(next_));
      queue_.Add(std::move(row));
    }
    return next_ == rows_ ? Progress::kDone : Progress::kSome;
  }

 private:
  /// A copy: an element keeps no more than itself in memory.
  StatusOr<Element> Row(int64_t i) const {
    Element row;
    for (Tensor t : components_) {
      t.Renew();
      TENON_ASSIGN_OR_RETURN(const Tensor copy, t.Slice(i, i + 1).Copy());
      TENON_ASSIGN_OR_RETURN(row.emplace_back(), copy.Reshaped(t.shape().WithoutDim(0)));
    }
    return row;
  }

  Queue& queue_;
  Element components_;
  const int64_t rows_;  // -1: one element
  int64_t next_ = 0;
};

class Queue::DequeueOperation final : public WaitingOperation {
 public:
  /// n is -1 for a single element, which becomes `*element` if that is not null.
  DequeueOperation(Queue& queue, int64_t n, bool up_to, Element* element, KernelContext& ctx)
      : queue_(queue),
        ctx_(ctx),
        element_(element),
        single_(n < 0),
        up_to_(up_to),
        wanted_(single_ ? 1 : n) {}
  std::string_view name() const override { return "Dequeue"; }

  StatusOr<Progress> Attempt() override ABSL_NO_THREAD_SAFETY_ANALYSIS {
    const int64_t there = queue_.Available() + taken();
    if (queue_.closed_ && there < wanted_) {
      if (!up_to_ || there == 0) {
        TakeBack();
        return queue_.TooFew(wanted_, there);
      }
      wanted_ = there;
    }
    const int64_t before = taken();
    // A part taken early would have its order alone, not together with what comes later.
    if (queue_.options_.order == Order::kLeastPriority && there < wanted_) return Progress::kNone;
    while (taken() < wanted_ && queue_.Available() > 0) {
      taken_.push_back(queue_.Take());
      for (Tensor& t : taken_.back()) single_ ? t.Renew() : t.Settle();
    }
    if (taken() == wanted_) return Progress::kDone;
    return taken() == before ? Progress::kNone : Progress::kSome;
  }

  void TakeBack() override ABSL_NO_THREAD_SAFETY_ANALYSIS {
    queue_.PutBack(std::exchange(taken_, {}));
  }

  Status Finish() override {
    if (!single_) return queue_.SetRows(taken_, ctx_);
    if (element_ != nullptr) {
      *element_ = std::move(taken_[0]);
      return OkStatus();
    }
    for (size_t i = 0; i < taken_[0].size(); ++i) ctx_.set_output(i, std::move(taken_[0][i]));
    return OkStatus();
  }

 private:
  int64_t taken() const { return static_cast<int64_t>(taken_.size()); }

  Queue& queue_;
  KernelContext& ctx_;
  Element* const element_;
  const bool single_;
  const bool up_to_;
  int64_t wanted_;
  std::vector<Element> taken_;
};

class Queue::CloseOperation final : public WaitingOperation {
 public:
  explicit CloseOperation(Queue& queue) : queue_(queue) {}
  std::string_view name() const override { return "Close"; }

  StatusOr<Progress> Attempt() override ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (queue_.closed_) {
      return Cancelled(queue_.options_.op, " '", queue_.name_, "' is already closed.");
    }
    queue_.closed_ = true;
    return Progress::kDone;
  }

 private:
  Queue& queue_;
};

void Queue::Enqueue(Element element, const KernelContext& ctx, Kernel::Done done) {
  if (const Status wrong = CheckComponents(element, false); !wrong.ok()) return done(wrong);
  Start(kEnqueues, std::make_unique<EnqueueOperation>(*this, std::move(element), false), ctx,
        std::move(done));
}

void Queue::EnqueueMany(Element rows, const KernelContext& ctx, Kernel::Done done) {
  if (const Status wrong = CheckComponents(rows, true); !wrong.ok()) return done(wrong);
  if (rows[0].dim(0) == 0) return done(OkStatus());
  Start(kEnqueues, std::make_unique<EnqueueOperation>(*this, std::move(rows), true), ctx,
        std::move(done));
}

void Queue::Dequeue(KernelContext& ctx, Kernel::Done done) {
  Dequeue(nullptr, ctx, std::move(done));
}

void Queue::Dequeue(Element* element, KernelContext& ctx, Kernel::Done done) {
  Start(kDequeues, std::make_unique<DequeueOperation>(*this, -1, false, element, ctx), ctx,
        std::move(done));
}

void Queue::DequeueMany(int64_t n, bool up_to, KernelContext& ctx, Kernel::Done done) {
  if (n < 0) return done(InvalidArgument("a dequeue of ", n, " elements, wanted at least 0"));
  if (options_.shapes.empty()) {
    return done(InvalidArgument(options_.op,
                                "'s DequeueMany and DequeueUpTo require the components "
                                "to have specified shapes."));
  }
  if (n == 0) return done(SetRows({}, ctx));
  Start(kDequeues, std::make_unique<DequeueOperation>(*this, n, up_to, nullptr, ctx), ctx,
        std::move(done));
}

void Queue::Close(bool cancel_pending, const KernelContext& ctx, Kernel::Done done) {
  if (!cancel_pending) {
    return Start(kEnqueues, std::make_unique<CloseOperation>(*this), ctx, std::move(done));
  }
  done(Apply([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    closed_ = true;
    CancelLine(kEnqueues, Cancelled("the queue was closed"));
    return OkStatus();
  }));
}

Status Queue::SetRows(const std::vector<Element>& elements, KernelContext& ctx) const {
  const int64_t n = static_cast<int64_t>(elements.size());
  for (size_t i = 0; i < options_.types.size(); ++i) {
    // Unknown sizes become the largest of those there are.
    DimVector dims(options_.shapes[i].dims().begin(), options_.shapes[i].dims().end());
    for (size_t d = 0; d < dims.size(); ++d) {
      if (dims[d] != PartialShape::kUnknownDim) continue;
      dims[d] = 0;
      for (const Element& e : elements) dims[d] = std::max(dims[d], e[i].dim(static_cast<int>(d)));
    }
    TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(static_cast<int>(i), Concat({n}, dims)));
    if (options_.pads) ZeroElements(out);
    const DimVector strides = StridesOf(dims);
    const int64_t row = Product(dims);
    for (int64_t r = 0; r < n; ++r) {
      const Tensor& t = elements[r][i];
      if (t.num_elements() == row) {
        CopyElements(t, 0, out, r * row, row);
      } else {
        StridedCopy(t, {0, StridesOf(t.shape().dims())}, out, {r * row, strides}, t.shape().dims());
      }
    }
  }
  return OkStatus();
}

}  // namespace tenon
