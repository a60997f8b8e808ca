// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace tenon {

/// One element of a pipeline: the tensors that belong together, such as an image and its label.
using InputElement = std::vector<Tensor>;

/// Walks a pipeline once, from its beginning. Used by one thread at a time.
class InputSource {
 public:
  virtual ~InputSource() = default;
  /// The next element; false at the end. After an error there is nothing more.
  virtual StatusOr<bool> Next(InputElement* element) = 0;
};

struct BatchOptions {
  /// Leave out a last batch that is not full.
  bool drop_remainder = false;
};

/// Input of a training loop, in C++ (the form of tf.data.Dataset): where elements come from, and
/// what is done with them on the way. A description, copied freely; each loop over it walks it
/// anew.
///
///   InputPipeline input = InputPipeline::FromTensors({mnist.train.images, mnist.train.labels})
///       .Shard(workers, task).Shuffle(60000, 1).Repeat(10).Batch(100).Prefetch(2);
///   for (const InputElement& batch : input) {
///     TENON_RETURN_IF_ERROR(step->Run(batch, &fetched));
///   }
///   TENON_RETURN_IF_ERROR(input.status());       // why the loop ended
///
/// The order is that of the seeds alone. Loops over one object are by one thread at a time.
class InputPipeline {
 public:
  /// The rows of tensors in host memory with the same first dimension, which belong together; they
  /// are not copied.
  static InputPipeline FromTensors(const std::vector<Tensor>& columns);
  /// The rows of IDX files, as MNIST has them (see ReadIdx), one a column.
  static InputPipeline FromIdx(const std::vector<std::string>& paths);
  /// The rows of these arrays of an .npz file, one a column.
  static InputPipeline FromNpz(const std::string& path, const std::vector<std::string>& names);
  /// The records of TFRecord files, each a string scalar, one file after the other.
  static InputPipeline FromRecords(const std::vector<std::string>& paths);
  /// What `open` gives: for sources of the program's own.
  static InputPipeline From(std::function<StatusOr<std::unique_ptr<InputSource>>()> open);

  /// Each element as `change` leaves it.
  InputPipeline Map(std::function<Status(InputElement* element)> change) const;
  /// Those that `wanted` is true of.
  InputPipeline Filter(std::function<bool(const InputElement& element)> wanted) const;
  /// Every `count`-th element, from number `index` on: the part of one worker of `count`.
  InputPipeline Shard(int64_t count, int64_t index) const;
  /// Random order: the next element is one of `buffer_size` that are held, with equal chances. With
  /// as many as there are elements, all orders are equally likely. Each repetition has another
  /// order, which follows from the seed and its number.
  InputPipeline Shuffle(int64_t buffer_size, uint64_t seed) const;
  /// Tensors with one dimension more, of `size` elements, whose tensors must have equal shapes; the
  /// last one may have fewer.
  InputPipeline Batch(int64_t size, const BatchOptions& options = {}) const;
  /// All of it so many times; for ever when `count` is -1.
  InputPipeline Repeat(int64_t count = -1) const;
  /// The first `count` elements, and what comes after them.
  InputPipeline Take(int64_t count) const;
  InputPipeline Skip(int64_t count) const;
  /// Makes up to `count` elements ahead, on a thread that ends with the loop.
  InputPipeline Prefetch(int64_t count) const;

  /// A walk by hand. InvalidArgument for what the pipeline was described with; the errors of files.
  StatusOr<std::unique_ptr<InputSource>> Open() const;

  /// What `for` needs: reads an element ahead.
  class Iterator {
   public:
    const InputElement& operator*() const { return element_; }
    Iterator& operator++() {
      Advance();
      return *this;
    }
    bool operator!=(const Iterator& end) const { return source_ != end.source_; }

   private:
    friend class InputPipeline;
    void Advance();

    std::shared_ptr<InputSource> source_;  // null: at the end
    InputElement element_;
    Status* status_ = nullptr;
  };
  /// Begins a new walk.
  Iterator begin();
  Iterator end() const { return {}; }
  /// How the last loop that came to its end, did.
  const Status& status() const { return status_; }

 private:
  /// Opens the `repetition`-th walk.
  using Opener = std::function<StatusOr<std::unique_ptr<InputSource>>(uint64_t repetition)>;
  explicit InputPipeline(Opener open) : open_(std::move(open)) {}

  Opener open_;
  Status status_;
};

}  // namespace tenon
