// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/base/cancellation.h"
#include "core/base/hash_map.h"
#include "core/base/mutex.h"
#include "core/op/function_kernel.h"
#include "core/op/function_runtime.h"
#include "core/op/kernel.h"
#include "core/op/op_registry.h"
#include "core/op/shape_inference.h"
#include "core/tensor/variant.h"
#include "ops/arguments.h"

// Datasets and what walks through them (tf.data). A node of a dataset makes an immutable Dataset,
// which its consumers hold; MakeIterator makes of the last one an iterator, which makes those of
// its inputs. Threads belong to iterators, and end with them.

namespace tenon {

/// One tensor per component.
using DatasetElement = std::vector<Tensor>;
DTypeVector TypesOf(const DatasetElement& element);

/// A function that a dataset calls for its elements, with the tensors it has captured.
struct DatasetFunction {
  /// The runtime that calls the function `name`.
  std::shared_ptr<FunctionRuntime> runtime;
  FunctionName name;
  std::vector<Tensor> captured;
  /// Whether a text among them may be the target of a RemoteCall: the function is then made for
  /// these captured texts and no others.
  bool captures_targets = false;
};

/// What the iterators of one walk have in common. Thread-safe; outlives them.
class IteratorContext {
 public:
  /// Ends the walk: iterators that wait give up, and their calls of functions end.
  Cancellation& cancellation() { return cancellation_; }

  /// The function ready to run. In one walk a function is made once, so that what is stateful in it
  /// goes on when its dataset is repeated.
  StatusOr<std::shared_ptr<const RunnableFunction>> Instantiate(const DatasetFunction& function);

 private:
  Cancellation cancellation_;
  Mutex mu_;
  struct Instance {
    std::shared_ptr<FunctionRuntime> runtime;  // whose address stands in the key
    std::shared_ptr<const RunnableFunction> function;
  };
  StringMap<Instance> functions_ ABSL_GUARDED_BY(mu_);
};

/// A walk through a dataset. Used by one thread at a time.
class ElementIterator {
 public:
  virtual ~ElementIterator() = default;
  /// Makes the next element. False at the end, also of every later call. After an error the next
  /// call goes on behind the element that had it.
  virtual StatusOr<bool> Next(DatasetElement* out) = 0;
  /// Whether Next will give an element without reading files, calling functions or waiting.
  virtual bool IsReady() const { return false; }
};

using IteratorPtr = std::unique_ptr<ElementIterator>;

/// The elements of a sequence, and how to make them. Immutable.
class Dataset : public VariantValue, public std::enable_shared_from_this<Dataset> {
 public:
  static constexpr int64_t kInfinite = -1, kUnknown = -2;

  explicit Dataset(DTypeVector types, std::vector<PartialShape> shapes)
      : types_(std::move(types)), shapes_(std::move(shapes)) {}
  /// The components of `like`.
  explicit Dataset(const Dataset& like, std::vector<PartialShape> shapes = {})
      : Dataset(like.types_, shapes.empty() ? like.shapes_ : std::move(shapes)) {}

  std::string_view type_name() const final { return "tensorflow::DatasetVariantWrapper"; }
  /// The types of an element's components, and their shapes.
  const DTypeVector& types() const { return types_; }
  const std::vector<PartialShape>& shapes() const { return shapes_; }

  /// At its beginning. The iterator holds what it needs of the dataset.
  virtual StatusOr<IteratorPtr> MakeIterator(
      const std::shared_ptr<IteratorContext>& context) const = 0;
  /// How many elements there are, kInfinite or kUnknown, without looking at them.
  int64_t Cardinality() const {
    std::call_once(counted_, [this] { cardinality_ = CountElements(); });
    return cardinality_;
  }

  /// Facts about a dataset that those ask for who take datasets apart without looking at elements
  /// (AutoShardDataset, ComputeBatchSize).
  enum Trait : unsigned {
    kKeepsRows = 1,        // an element has the rows of one element of an input
    kKeepsFiles = 2,       // shares of the files that its inputs read make a share of it
    kMakesDatasets = 4,    // its elements are those of the datasets that its function makes
    kShuffles = 8,         // the input's elements in random order
    kBuffers = 16,         // the input's elements, made ahead
    kCountsElements = 32,  // the input's elements, of which there has to be a number
    kHoldsTensors = 64,    // the elements are tensors that it was given
  };
  static constexpr unsigned kTraits = 0;
  virtual unsigned traits() const { return kTraits; }
  /// The datasets that it is made of, and the same made of as many others. Only those have inputs
  /// here that have one of the traits.
  virtual std::vector<std::shared_ptr<const Dataset>> Inputs() const { return {}; }
  virtual std::shared_ptr<const Dataset> WithInputs(
      const std::vector<std::shared_ptr<const Dataset>>& /*others*/) const {
    return shared_from_this();
  }
  /// How many elements of its input become one, but for a last one; 0: it makes no batches.
  virtual int64_t batch_size() const { return 0; }
  /// The function that the dataset calls to make elements; null: none.
  virtual const DatasetFunction* function_called() const { return nullptr; }

 protected:
  template <typename T>
  std::shared_ptr<const T> Self() const {
    return std::static_pointer_cast<const T>(shared_from_this());
  }
  /// The value of Cardinality. It is asked for once, as a dataset may be an input of others many
  /// times over.
  virtual int64_t CountElements() const { return kUnknown; }

 private:
  const DTypeVector types_;
  const std::vector<PartialShape> shapes_;
  mutable std::once_flag counted_;
  mutable int64_t cardinality_ = kUnknown;
};

using DatasetPtr = std::shared_ptr<const Dataset>;
using ContextPtr = std::shared_ptr<IteratorContext>;

/// The dataset in a tensor; InvalidArgument when it is none.
StatusOr<DatasetPtr> DatasetIn(const Tensor& t);
inline StatusOr<DatasetPtr> DatasetInput(const KernelContext& ctx, int i = 0) {
  return DatasetIn(ctx.input(i));
}
template <>
struct InputReader<DatasetPtr> : ReadsInputs<DatasetInput> {};
/// A scalar that holds `dataset`.
Tensor TensorOf(DatasetPtr dataset);
/// Output 0: `dataset`, which the kernel made of its inputs, or which is one of them.
/// InvalidArgument when values would lie too deep in each other.
Status ReturnDataset(KernelContext& ctx, DatasetPtr dataset);

/// What a node says of the elements: its attributes output_types (or Toutput_types) and
/// output_shapes.
struct ElementSpec : KernelState {
  explicit ElementSpec(KernelConstruction& c);
  ElementSpec(DTypeVector of, std::vector<PartialShape> with)
      : types(std::move(of)), shapes(std::move(with)) {}
  DTypeVector types;
  std::vector<PartialShape> shapes;
};
/// InvalidArgument unless an element of `found` and `found_shapes` is one of `wanted`. Where shapes
/// are missing, any will do.
Status CheckSpec(const ElementSpec& wanted, const DTypeVector& found,
                 const std::vector<PartialShape>& found_shapes);
/// The same of one element.
Status CheckElement(const ElementSpec& wanted, const DatasetElement& found);

/// A shape function: the outputs are an element of output_shapes.
Status ShapesOfElement(ShapeContext& c);

/// What a node says of the function in its attribute `attr` of type func.
struct FunctionSpec {
  FunctionSpec(KernelConstruction& c, std::string_view attr);
  /// With the inputs [first, first + count) captured.
  DatasetFunction Capture(const KernelContext& ctx, int first, int count) const;

  std::shared_ptr<FunctionRuntime> runtime;
  FunctionName name;
};
/// The one of "f", beside `Targuments`, whose tensors follow `first` inputs.
struct ElementFunction : KernelState {
  explicit ElementFunction(KernelConstruction& c);
  DatasetFunction Capture(const KernelContext& ctx) const {
    return function.Capture(ctx, 1, captured);
  }
  /// The first input behind the captured ones.
  int next_input() const { return 1 + captured; }

  FunctionSpec function;
  int captured = 0;
};

/// A function that is called in a walk.
class FunctionCaller {
 public:
  static StatusOr<FunctionCaller> Make(const ContextPtr& context, const DatasetFunction& function);

  /// Its results for `element` and what it has captured.
  Status Call(DatasetElement element, DatasetElement* results) const;
  /// The same of a call that goes on when the walk ends; only the end of the session cancels it.
  Status CallToItsEnd(DatasetElement element, DatasetElement* results) const;
  /// Starts a call; see RunnableFunction::RunAsync.
  void CallAsync(DatasetElement element, RunnableFunction::Done done) const;
  const DTypeVector& result_types() const { return function_->result_types(); }

 private:
  std::vector<Tensor> Arguments(DatasetElement element) const;

  ContextPtr context_;
  std::vector<Tensor> captured_;
  std::shared_ptr<const RunnableFunction> function_;
};

/// Calls `work` on a thread of its own, since it may wait for what steps compute: on one of theirs
/// it could wait for itself. Then `done`.
void RunOnOwnThread(std::function<Status()> work, Kernel::Done done);

/// Calls `work` with a walk through `dataset` on a thread of its own; then `done`, until which
/// `ctx` must live. The walk ends with the step.
void WalkOnOwnThread(KernelContext& ctx, DatasetPtr dataset, Kernel::Done done,
                     std::function<Status(const ContextPtr& context, ElementIterator& walk)> work);

/// What `status`, of the call of a function for an element, means to the walk: true when there is a
/// result, false when OutOfRange ends the walk, which is an error where `keeps_cardinality`.
StatusOr<bool> IsMapped(const Status& status, bool keeps_cardinality);

/// `dataset`'s iterator where a function gives `results`, one dataset; InvalidArgument otherwise.
StatusOr<IteratorPtr> IteratorOfResult(const ContextPtr& context, const DatasetElement& results);

/// `input` so many times over; forever when that is negative.
DatasetPtr MakeRepeatDataset(DatasetPtr input, int64_t count);

/// A walk that makes its elements ahead, on a thread of its own: at most `limit` at a time.
IteratorPtr PrefetchedIterator(const ContextPtr& context, IteratorPtr input, int64_t limit);
/// A walk that calls `caller` for up to `limit` elements at a time, and gives the results in order.
/// Of OutOfRange see IsMapped.
IteratorPtr ParallelMapIterator(IteratorPtr input, FunctionCaller caller, int64_t limit,
                                bool keeps_cardinality);

/// How many calls run at a time where the user leaves that open (-1); otherwise `wanted`, which
/// must be above 0.
StatusOr<int64_t> ReadParallelism(const Tensor& wanted, std::string_view name);

/// A walk through a D over the walk through its input.
template <typename D>
class WalkOver : public ElementIterator {
 public:
  WalkOver(std::shared_ptr<const D> of, IteratorPtr input, ContextPtr context)
      : of_(std::move(of)), context_(std::move(context)), input_(std::move(input)) {}

 protected:
  const std::shared_ptr<const D> of_;
  const ContextPtr context_;
  IteratorPtr input_;
};

/// Base of a dataset D of one input. D::kTraits are its traits.
template <typename D>
struct DatasetOfOne : Dataset {
  /// A dataset whose elements have the input's types and shapes.
  explicit DatasetOfOne(DatasetPtr from) : Dataset(*from), input(std::move(from)) {}
  DatasetOfOne(DatasetPtr from, const ElementSpec& spec)
      : Dataset(spec.types, spec.shapes), input(std::move(from)) {}

  unsigned traits() const override { return D::kTraits; }
  std::vector<DatasetPtr> Inputs() const override { return {input}; }
  DatasetPtr WithInputs(const std::vector<DatasetPtr>& others) const override {
    const auto copy = std::make_shared<D>(static_cast<const D&>(*this));
    copy->input = others[0];
    return copy;
  }

  DatasetPtr input;
};

/// Base of one whose iterators are D::Walks.
template <typename D>
struct DatasetOver : DatasetOfOne<D> {
  using DatasetOfOne<D>::DatasetOfOne;
  using DatasetOfOne<D>::input;

  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    TENON_ASSIGN_OR_RETURN(IteratorPtr walk, input->MakeIterator(context));
    return std::make_unique<typename D::Walk>(this->template Self<D>(), std::move(walk), context);
  }
};

}  // namespace tenon
