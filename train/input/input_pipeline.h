// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/tensor.h"
#include "data/batch/batch_stages.h"
#include "data/csv/csv_rows.h"
#include "train/input/input_source.h"

namespace tenon {

struct BatchOptions {
  /// Leave out a last batch that is not full.
  bool drop_remainder = false;
};

struct ImageOptions {
  /// 1 for grey and 3 for colours, to which all images are converted; 0 for those of each file.
  int64_t channels = 3;
};

struct RowWalk;

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
  /// The rows of IDX files, as MNIST has them (see ReadIdx), one a column. The files stay in
  /// memory, and are read again when they have changed.
  static InputPipeline FromIdx(const std::vector<std::string>& paths);
  /// The rows of these arrays of an .npz file, one a column, which stay in memory as those of
  /// FromIdx do.
  static InputPipeline FromNpz(const std::string& path, const std::vector<std::string>& names);
  /// The records of TFRecord files, each a string scalar, one file after the other.
  static InputPipeline FromRecords(const std::vector<std::string>& paths);
  /// The lines of text files, plain or gzipped, each a string scalar, one file after the other.
  static InputPipeline FromText(const std::vector<std::string>& paths);
  /// The rows of CSV files (see ReadCsv), one file after the other: a scalar for each column that
  /// is wanted, in the order of `columns`.
  static InputPipeline FromCsv(const std::vector<std::string>& paths,
                               const std::vector<CsvColumn>& columns,
                               const CsvOptions& options = {});
  /// The rows of LIBSVM files (see ReadLibsvm), one file after the other: the features, a float
  /// vector of `num_features`, and the label, a float scalar.
  static InputPipeline FromLibsvm(const std::vector<std::string>& paths, int64_t num_features);
  /// The .png, .jpg and .jpeg files of folders, in the order of their names: the pixels, uint8 of
  /// shape [height, width, channels], and the number of the folder, an int64, which serves as a
  /// label. They are decoded on several threads, behind a Shuffle, Shard or Repeat that follows
  /// here. Images of a batch must be of one size.
  static InputPipeline FromImages(const std::vector<std::string>& folders,
                                  const ImageOptions& options = {});
  /// What `open` gives: for sources of the program's own.
  static InputPipeline From(std::function<StatusOr<std::unique_ptr<InputSource>>()> open);

  /// Each element as `change` leaves it.
  InputPipeline Map(std::function<Status(InputElement* element)> change) const;
  /// The elements that `wanted` is true of.
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
  using Opener = std::function<StatusOr<RowWalk>(uint64_t repetition)>;
  explicit InputPipeline(Opener open) : open_(std::move(open)) {}
  static InputPipeline FromKept(std::vector<std::string> paths,
                                std::function<StatusOr<std::vector<Tensor>>()> read);
  InputPipeline Chosen(std::function<StatusOr<bool>(InputElement* element)> choose) const;
  /// The rows as a stage leaves them; `description` says what is wrong with it.
  InputPipeline Staged(
      Status description,
      std::function<BatchSourcePtr(BatchSourcePtr from, uint64_t repetition)> stage) const;

  Opener open_;
  Status status_;
};

}  // namespace tenon
