// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/mutex.h"
#include "core/build/operand.h"
#include "core/op/run.h"
#include "core/tensor/tensor.h"
#include "runtime/execute/trace.h"

namespace tenon {

/// How one step runs.
struct StepOptions {
  /// The step fails with DeadlineExceeded when it takes longer; zero: no limit.
  std::chrono::milliseconds timeout{0};
  /// When not null, gets a record of every node that ran.
  std::vector<NodeTrace>* trace = nullptr;

  /// The part of these that goes with the run to every task and kernel.
  RunSettings settings() const { return {.trace = trace != nullptr}; }
};

class FeedValue;

/// A signature of steps, looked up and compiled once: the fastest way to run the same step often.
/// Must not outlive its session. Thread-safe.
class PreparedStep {
 public:
  virtual ~PreparedStep() = default;
  /// Runs a step with the feeds in the order of Prepare; `fetched` gets the fetches in theirs.
  virtual Status Run(const std::vector<Tensor>& feeds, std::vector<Tensor>* fetched,
                     const StepOptions& options = {}) = 0;
  /// The same with the tensors in braces.
  Status Run(std::initializer_list<Tensor> feeds, std::vector<Tensor>* fetched,
             const StepOptions& options = {}) {
    return Run(std::vector<Tensor>(feeds), fetched, options);
  }
  /// The same with literals, which take the dtypes of what they feed, as far as Prepare was given
  /// more than names: `step->Run({0.5f, {1, 2}}, &fetched)`. A template, so that braces with
  /// tensors alone, and empty ones, are the one above.
  template <int = 0>
  Status Run(std::initializer_list<FeedValue> feeds, std::vector<Tensor>* fetched,
             const StepOptions& options = {});

  /// Gets how a step has ended and, when well, its fetches in the order of Prepare. It is called
  /// once a step.
  using Done = std::function<void(const Status& status, std::vector<Tensor> fetched)>;
  /// Starts a step, which calls `done`: perhaps before the return, perhaps on another thread,
  /// which it must not hold up; it may start other steps. The session's destructor waits for it,
  /// and must not be called by it. The trace of `options` lives until then. On a cluster many steps
  /// that are on their way travel together; a session of this process runs the step on this thread.
  virtual void RunAsync(const std::vector<Tensor>& feeds, Done done,
                        const StepOptions& options = {});

 private:
  friend class Session;
  DTypeVector feed_types_;
};

/// A tensor of a step, or a node that it runs: as the program has it, or by name ("node" or
/// "node:output").
class StepTensor {
 public:
  StepTensor(const char* name) : name_(name) {}             // NOLINT
  StepTensor(std::string name) : name_(std::move(name)) {}  // NOLINT
  StepTensor(const Output& value)                           // NOLINT
      : StepTensor(value.node) {
    name_ = value.name();
    dtype_ = value.dtype();
  }
  StepTensor(const Node* node) {  // NOLINT
    if (node == nullptr || node == FailedNode()) return;
    name_ = node->name();
    place_ = {node->graph_id(), node->id()};
  }
  template <StandsForOutput T>
  StepTensor(const T& value) : StepTensor(static_cast<Output>(value)) {}  // NOLINT

  /// Where a node is: Graph::id, and its own id there. {0, 0} when there is only a name.
  struct Place {
    uint64_t graph = 0;
    int node = 0;
  };

  /// Empty for what could not be built.
  const std::string& name() const { return name_; }
  /// kInvalid when there is only a name.
  DType dtype() const { return dtype_; }
  const Place& place() const { return place_; }

 private:
  std::string name_;
  DType dtype_ = DType::kInvalid;
  Place place_;
};

/// Several of them: braces, or a vector of names or Outputs.
class StepTensors {
 public:
  StepTensors(std::initializer_list<StepTensor> values) {  // NOLINT
    for (const StepTensor& v : values) Add(v);
  }
  StepTensors(std::vector<std::string> names) : names_(std::move(names)) {}  // NOLINT
  StepTensors(const std::vector<Output>& values) {                           // NOLINT
    for (const Output& v : values) Add(v);
  }

  const std::vector<std::string>& names() const { return names_; }
  /// Their dtypes as far as they are known; none of mere names.
  const DTypeVector& dtypes() const { return dtypes_; }
  /// One for each of dtypes().
  const std::vector<StepTensor::Place>& places() const { return places_; }

 private:
  void Add(const StepTensor& tensor) {
    names_.push_back(tensor.name());
    dtypes_.push_back(tensor.dtype());
    places_.push_back(tensor.place());
  }

  std::vector<std::string> names_;
  DTypeVector dtypes_;
  std::vector<StepTensor::Place> places_;
};

/// What a tensor is fed with: a Tensor, a vector, or a literal (a number, a text, braces), which
/// takes the dtype of what it feeds; fed by name, its own (see Literal).
class FeedValue {
 public:
  FeedValue(Tensor value) : value_(std::move(value)) {}  // NOLINT
  template <typename T>
  requires std::is_arithmetic_v<T> FeedValue(T value) : value_(Literal(value)) {}  // NOLINT
  FeedValue(const char* text) : value_(Literal(text)) {}                           // NOLINT
  FeedValue(std::string text) : value_(Literal(std::move(text))) {}                // NOLINT
  FeedValue(std::initializer_list<Literal> values) : value_(Literal(values)) {}    // NOLINT
  template <typename T>
  FeedValue(const std::vector<T>& values) : value_(Tensor::Vector<T>(values)) {}  // NOLINT

  /// The value for a tensor of that dtype, or of any when it is kInvalid.
  StatusOr<Tensor> For(DType dtype) const {
    const auto* literal = std::get_if<Literal>(&value_);
    if (literal == nullptr) {
      const Tensor& tensor = std::get<Tensor>(value_);
      return tensor.valid() ? StatusOr<Tensor>(tensor) : tensor.mistake();
    }
    return literal->ToTensor(dtype == DType::kInvalid ? literal->NaturalType() : dtype);
  }

 private:
  std::variant<Tensor, Literal> value_;
};

template <int>
Status PreparedStep::Run(std::initializer_list<FeedValue> feeds, std::vector<Tensor>* fetched,
                         const StepOptions& options) {
  std::vector<Tensor> tensors;
  for (const FeedValue& value : feeds) {
    const size_t i = tensors.size();
    const DType dtype = i < feed_types_.size() ? feed_types_[i] : DType::kInvalid;
    TENON_ASSIGN_OR_RETURN(Tensor tensor, value.For(dtype));
    tensors.push_back(std::move(tensor));
  }
  return Run(tensors, fetched, options);
}

/// What a step is fed with.
class StepFeeds {
 public:
  using Pairs = std::vector<std::pair<std::string, Tensor>>;
  StepFeeds(std::initializer_list<std::pair<StepTensor, FeedValue>> feeds) {  // NOLINT
    for (const auto& [tensor, value] : feeds) {
      StatusOr<Tensor> fed = value.For(tensor.dtype());
      status_.Update(Annotate(fed.status(), StrCat("feed '", tensor.name(), "'")));
      pairs_.emplace_back(tensor.name(), fed.ok() ? *std::move(fed) : Tensor());
      places_.push_back(tensor.place());
    }
  }
  StepFeeds(Pairs pairs) : pairs_(std::move(pairs)) {}  // NOLINT

  const Pairs& pairs() const { return pairs_; }
  /// One for each of pairs(), or none where there are names only.
  const std::vector<StepTensor::Place>& places() const { return places_; }
  /// Whether every literal is of its tensor's dtype.
  const Status& status() const { return status_; }

 private:
  Pairs pairs_;
  std::vector<StepTensor::Place> places_;
  Status status_;
};

/// `value`, of the fetch of that name, as T: the tensor itself, the number of a scalar, the text of
/// a scalar (std::string), or the elements (std::vector). The dtypes must be equal: InvalidArgument
/// names both.
template <typename T>
StatusOr<T> ValueAs(const Tensor& value, std::string_view fetch);

/// A prepared step with one fetch, called like a function with one value a feed.
template <typename T>
class Callable {
 public:
  Callable(std::unique_ptr<PreparedStep> step, DTypeVector feeds, std::string fetch)
      : step_(std::move(step)), feeds_(std::move(feeds)), fetch_(std::move(fetch)) {}

  template <typename... Values>
  StatusOr<T> operator()(const Values&... values) const {
    const std::vector<FeedValue> given = {FeedValue(values)...};
    std::vector<Tensor> fed, fetched;
    for (const FeedValue& value : given) {
      const size_t i = fed.size();
      TENON_ASSIGN_OR_RETURN(Tensor tensor,
                             value.For(i < feeds_.size() ? feeds_[i] : DType::kInvalid));
      fed.push_back(std::move(tensor));
    }
    TENON_RETURN_IF_ERROR(step_->Run(fed, &fetched));
    return ValueAs<T>(fetched[0], fetch_);
  }

 private:
  std::unique_ptr<PreparedStep> step_;
  DTypeVector feeds_;
  std::string fetch_;
};

/// Runs steps of a graph: in this process (MakeLocalSession) or on a cluster
/// (MakeRemoteSession). Variables keep their values between steps. Thread-safe: steps may run at
/// once, without isolation from each other.
///
///   TENON_ASSIGN_OR_RETURN(auto session, MakeLocalSession(graph));
///   TENON_RETURN_IF_ERROR(session->Run({}, {}, {init}).status());
///   TENON_ASSIGN_OR_RETURN(float cost, session->Run<float>({{x, batch}}, loss, {train}));
class Session {
 public:
  using Feeds = StepFeeds::Pairs;

  virtual ~Session() = default;

  /// Adds to the session the nodes of `graph` that it does not have, which must be an extension of
  /// what it was made from.
  Status Extend(const Graph& graph);

  /// Runs a step: one tensor per fetch; targets are nodes that run without giving a value. See
  /// Check for what is wrong with the arguments.
  StatusOr<std::vector<Tensor>> Run(const StepFeeds& feeds, const StepTensors& fetches,
                                    const StepTensors& targets = {},
                                    const StepOptions& options = {});
  /// The same for one fetch, as a number, a std::vector of its elements, or a Tensor.
  template <typename T>
  StatusOr<T> Run(const StepFeeds& feeds, const StepTensor& fetch, const StepTensors& targets = {},
                  const StepOptions& options = {}) {
    TENON_ASSIGN_OR_RETURN(const std::vector<Tensor> values,
                           Run(feeds, StepTensors{fetch}, targets, options));
    return ValueAs<T>(values[0], fetch.name());
  }

  /// A step that runs often.
  StatusOr<std::unique_ptr<PreparedStep>> Prepare(const StepTensors& feeds,
                                                  const StepTensors& fetches,
                                                  const StepTensors& targets = {});
  /// The same for one fetch, to be called like a function.
  template <typename T>
  StatusOr<Callable<T>> Prepare(const StepTensors& feeds, const StepTensor& fetch,
                                const StepTensors& targets = {}) {
    TENON_ASSIGN_OR_RETURN(std::unique_ptr<PreparedStep> step,
                           Prepare(feeds, StepTensors{fetch}, targets));
    return Callable<T>(std::move(step), feeds.dtypes(), fetch.name());
  }

  /// Whether a step can name these: InvalidArgument for what could not be built, a literal of
  /// another dtype than what it feeds, and an Output of a graph that is not the session's, which
  /// might have another tensor of that name; FailedPrecondition for a node that was built after
  /// the session was opened, or extended.
  Status Check(const StepFeeds& feeds, const StepTensors& fetches,
               const StepTensors& targets) const;

  /// Cancels the steps that run and waits for their end; later calls fail. The destructor does it
  /// too.
  virtual Status Close() = 0;

  /// Outputs of `graph`, of which the session's is a copy, are taken for the tensors of their
  /// names: of the nodes that it has now. A session does so with what it was made from and extended
  /// by.
  void AcceptOutputsOf(const Graph& graph);

 protected:
  virtual Status ExtendBy(const Graph& graph) = 0;
  virtual StatusOr<std::vector<Tensor>> RunStep(const Feeds& feeds,
                                                const std::vector<std::string>& fetches,
                                                const std::vector<std::string>& targets,
                                                const StepOptions& options) = 0;
  virtual StatusOr<std::unique_ptr<PreparedStep>> PrepareStep(
      const std::vector<std::string>& feeds, const std::vector<std::string>& fetches,
      const std::vector<std::string>& targets) = 0;

 private:
  Status CheckOne(std::string_view name, const StepTensor::Place& place,
                  std::string_view what) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(graphs_mu_);
  Status CheckAll(const StepTensors& tensors, std::string_view what) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(graphs_mu_);

  mutable Mutex graphs_mu_;
  /// The graphs that the session was made from and extended by, with the first node id of each that
  /// it does not have.
  std::vector<StepTensor::Place> graphs_ ABSL_GUARDED_BY(graphs_mu_);
};

namespace session_internal {
template <typename T>
inline constexpr bool kIsVector = false;
template <typename T>
inline constexpr bool kIsVector<std::vector<T>> = true;
}  // namespace session_internal

template <typename T>
StatusOr<T> ValueAs(const Tensor& value, std::string_view fetch) {
  if constexpr (std::is_same_v<T, Tensor>) {
    return value;
  } else if constexpr (session_internal::kIsVector<T>) {
    using E = Tensor::ElementOf<typename T::value_type>;
    if (value.dtype() != kDTypeOf<E>) {
      return InvalidArgument("fetch '", fetch, "' is ", ToString(value.dtype()), ", wanted ",
                             ToString(kDTypeOf<E>));
    }
    return T(value.flat<E>().begin(), value.flat<E>().end());
  } else {
    using E = Tensor::ElementOf<T>;
    if (value.dtype() != kDTypeOf<E> || value.num_elements() != 1) {
      return InvalidArgument("fetch '", fetch, "' is ", ToString(value.dtype()),
                             value.shape().ToString(), ", wanted one ", ToString(kDTypeOf<E>));
    }
    return T(*value.data<E>());
  }
}

}  // namespace tenon
