// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "ops/queues/waiting_resource.h"
#include "ops/random/philox.h"

namespace tenon {

/// A queue of tuples of tensors: TensorFlow's FIFOQueue, PaddingFIFOQueue, RandomShuffleQueue and
/// PriorityQueue. Operations wait for elements or for room, in the order in which they came, until
/// the queue is closed or their step cancelled; no element is lost with a cancelled one.
class Queue final : public WaitingResource {
 public:
  static constexpr std::string_view kKind = "queue";
  static constexpr std::string_view kTypeName = "N10tensorflow14QueueInterfaceE";
  static constexpr bool kNamedByNode = false;

  enum class Order { kFirst, kRandom, kLeastPriority };
  /// What a node says of its queue.
  struct Options {
    explicit Options(KernelConstruction& c);

    std::string op;  // as messages name it: "FIFOQueue"
    Order order;
    bool pads;
    DTypeVector types;
    std::vector<PartialShape> shapes;  // one a component, or none: any
    int64_t capacity;                  // negative: no limit
    int64_t min_after_dequeue = 0;
    int64_t seed = 0, seed2 = 0;
  };
  using Element = std::vector<Tensor>;

  Queue(const Options& options, std::string name);
  std::string_view kind() const override { return kKind; }
  int64_t num_bytes() const override;
  /// InvalidArgument when a node with `wanted` cannot have this queue.
  Status CheckShared(const Options& wanted) const;

  const DTypeVector& types() const { return options_.types; }
  int64_t size() const;
  bool closed() const;

  // Each runs the rest of a kernel: `done` gets its status. Enqueues are Cancelled when the queue
  // is closed, dequeues OutOfRange when it is and has too little.

  /// Adds one element.
  void Enqueue(Element element, const KernelContext& ctx, Kernel::Done done);
  /// Adds each row of the components.
  void EnqueueMany(Element rows, const KernelContext& ctx, Kernel::Done done);
  /// Takes one element, whose components become the outputs.
  void Dequeue(KernelContext& ctx, Kernel::Done done);
  /// The same for who wants the element itself; it must be there until `done`.
  void Dequeue(Element* element, KernelContext& ctx, Kernel::Done done);
  /// Takes `n` elements, which become the rows of the outputs; `up_to`: those that are left of a
  /// closed queue.
  void DequeueMany(int64_t n, bool up_to, KernelContext& ctx, Kernel::Done done);
  /// Closes the queue after the enqueues that wait, or with `cancel_pending` instead of them.
  void Close(bool cancel_pending, const KernelContext& ctx, Kernel::Done done);

 private:
  class EnqueueOperation;
  class DequeueOperation;
  class CloseOperation;
  static constexpr int kEnqueues = 0, kDequeues = 1;

  /// InvalidArgument unless these are the components of one element, or of `many` as rows.
  Status CheckComponents(const Element& components, bool many) const;
  /// The elements as rows; the outputs of `ctx`.
  Status SetRows(const std::vector<Element>& elements, KernelContext& ctx) const;

  bool HasRoom() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  /// How many elements may be taken.
  int64_t Available() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Add(Element element) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Element Take() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  /// Undoes the last takes.
  void PutBack(std::vector<Element> taken) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status TooFew(int64_t wanted, int64_t there) const;

  const Options options_;
  const std::string name_;
  std::deque<Element> elements_ ABSL_GUARDED_BY(mu_);  // a heap where they have priorities
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  Philox random_ ABSL_GUARDED_BY(mu_);
  Philox::Block words_ ABSL_GUARDED_BY(mu_) = {};
  size_t words_used_ ABSL_GUARDED_BY(mu_) = words_.size();
};

}  // namespace tenon
