// SPDX-License-Identifier: Apache-2.0
#include "train/input/input_pipeline.h"

#include <tuple>
#include <utility>

#include "core/base/mutex.h"
#include "data/arrays/idx.h"
#include "data/arrays/npy.h"
#include "data/batch/batch_stages.h"
#include "data/csv/libsvm_rows.h"
#include "data/files/file.h"
#include "data/records/lines.h"
#include "data/records/record_rows.h"
#include "train/input/element_rows.h"
#include "train/input/image_files.h"

namespace tenon {
namespace {

/// A walk of which each element is looked at, changed or left out.
class ChosenSource final : public InputSource {
 public:
  /// Gives whether the element stays.
  using Choose = std::function<StatusOr<bool>(InputElement* element)>;
  ChosenSource(std::unique_ptr<InputSource> from, Choose choose)
      : from_(std::move(from)), choose_(std::move(choose)) {}

  StatusOr<bool> Next(InputElement* element) override {
    while (true) {
      TENON_ASSIGN_OR_RETURN(const bool found, from_->Next(element));
      if (!found) return false;
      TENON_ASSIGN_OR_RETURN(const bool stays, choose_(element));
      if (stays) return true;
    }
  }

 private:
  const std::unique_ptr<InputSource> from_;
  const Choose choose_;
};

/// The tensors of files, which are read again only when a file has changed: a pipeline is walked
/// and repeated many times. Thread-safe.
class KeptTensors {
 public:
  using Read = std::function<StatusOr<std::vector<Tensor>>()>;
  KeptTensors(std::vector<std::string> paths, Read read)
      : paths_(std::move(paths)), read_(std::move(read)) {}

  StatusOr<std::vector<Tensor>> Get() {
    MutexLock lock(mu_);
    std::vector<Stamp> stamps;
    for (const std::string& path : paths_) {
      TENON_ASSIGN_OR_RETURN(const FileInfo info, StatFile(path));
      stamps.emplace_back(info.identity, info.size, info.modified_at);
    }
    if (stamps != stamps_ || tensors_.empty()) {
      TENON_ASSIGN_OR_RETURN(tensors_, read_());
      stamps_ = std::move(stamps);
    }
    return tensors_;
  }

 private:
  using Stamp = std::tuple<std::string, int64_t, decltype(FileInfo::modified_at)>;

  const std::vector<std::string> paths_;
  const Read read_;
  Mutex mu_;
  std::vector<Stamp> stamps_ ABSL_GUARDED_BY(mu_);
  std::vector<Tensor> tensors_ ABSL_GUARDED_BY(mu_);
};

StatusOr<RowWalk> WalkOf(StatusOr<BatchSourcePtr> columns) {
  TENON_RETURN_IF_ERROR(columns.status());
  RowWalk walk;
  walk.rows = *std::move(columns);
  return walk;
}

/// The next repetition of a walk, whose rows mean what those of the first one do.
StatusOr<BatchSourcePtr> AsBefore(StatusOr<RowWalk> next, const std::vector<Tensor>& tensors) {
  TENON_RETURN_IF_ERROR(next.status());
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (next->tensors[i].raw_data() == tensors[i].raw_data()) continue;
    return FailedPrecondition("a file of an input pipeline changed while it was repeated");
  }
  return std::move(next->rows);
}

Status AtLeast(std::string_view what, int64_t found, int64_t least) {
  return found >= least ? OkStatus()
                        : InvalidArgument(what, " of an input pipeline must be at least ", least,
                                          ", found ", found);
}

}  // namespace

InputPipeline InputPipeline::FromTensors(const std::vector<Tensor>& columns) {
  return InputPipeline([columns](uint64_t) { return RowsOfTensors(columns); });
}

InputPipeline InputPipeline::FromIdx(const std::vector<std::string>& paths) {
  const auto read = [paths]() -> StatusOr<std::vector<Tensor>> {
    std::vector<Tensor> columns;
    for (const std::string& path : paths) {
      TENON_ASSIGN_OR_RETURN(Tensor column, ReadIdx(path));
      columns.push_back(std::move(column));
    }
    return columns;
  };
  return FromKept(paths, read);
}

InputPipeline InputPipeline::FromNpz(const std::string& path,
                                     const std::vector<std::string>& names) {
  const auto read = [path, names]() -> StatusOr<std::vector<Tensor>> {
    TENON_ASSIGN_OR_RETURN(const NpzReader reader, NpzReader::Open(path));
    std::vector<Tensor> columns;
    for (const std::string& name : names) {
      TENON_ASSIGN_OR_RETURN(Tensor column, reader.Read(name));
      columns.push_back(std::move(column));
    }
    return columns;
  };
  return FromKept({path}, read);
}

InputPipeline InputPipeline::FromKept(std::vector<std::string> paths,
                                      std::function<StatusOr<std::vector<Tensor>>()> read) {
  const auto kept = std::make_shared<KeptTensors>(std::move(paths), std::move(read));
  return InputPipeline([kept](uint64_t) -> StatusOr<RowWalk> {
    TENON_ASSIGN_OR_RETURN(std::vector<Tensor> tensors, kept->Get());
    return RowsOfTensors(std::move(tensors));
  });
}

InputPipeline InputPipeline::FromRecords(const std::vector<std::string>& paths) {
  return InputPipeline([paths](uint64_t) { return WalkOf(ReadRecords(paths)); });
}

InputPipeline InputPipeline::FromText(const std::vector<std::string>& paths) {
  return InputPipeline([paths](uint64_t) { return WalkOf(ReadLines(paths)); });
}

InputPipeline InputPipeline::FromCsv(const std::vector<std::string>& paths,
                                     const std::vector<CsvColumn>& columns,
                                     const CsvOptions& options) {
  return InputPipeline(
      [paths, columns, options](uint64_t) { return WalkOf(ReadCsv(paths, columns, options)); });
}

InputPipeline InputPipeline::FromLibsvm(const std::vector<std::string>& paths,
                                        int64_t num_features) {
  return InputPipeline(
      [paths, num_features](uint64_t) { return WalkOf(ReadLibsvm(paths, num_features)); });
}

InputPipeline InputPipeline::FromImages(const std::vector<std::string>& folders,
                                        const ImageOptions& options) {
  return InputPipeline([folders, channels = options.channels](uint64_t) {
    return ImagesOfFolders(folders, channels);
  });
}

InputPipeline InputPipeline::From(std::function<StatusOr<std::unique_ptr<InputSource>>()> open) {
  return InputPipeline([open = std::move(open)](uint64_t) -> StatusOr<RowWalk> {
    TENON_ASSIGN_OR_RETURN(auto source, open());
    return RowsOfElements(std::move(source));
  });
}

InputPipeline InputPipeline::Chosen(
    std::function<StatusOr<bool>(InputElement* element)> choose) const {
  return InputPipeline([open = open_,
                        choose = std::move(choose)](uint64_t repetition) -> StatusOr<RowWalk> {
    TENON_ASSIGN_OR_RETURN(RowWalk from, open(repetition));
    return RowsOfElements(std::make_unique<ChosenSource>(ElementsOfRows(std::move(from)), choose));
  });
}

InputPipeline InputPipeline::Map(std::function<Status(InputElement* element)> change) const {
  return Chosen([change = std::move(change)](InputElement* element) -> StatusOr<bool> {
    TENON_RETURN_IF_ERROR(change(element));
    return true;
  });
}

InputPipeline InputPipeline::Filter(std::function<bool(const InputElement& element)> wanted) const {
  return Chosen([wanted = std::move(wanted)](InputElement* element) -> StatusOr<bool> {
    return wanted(*element);
  });
}

InputPipeline InputPipeline::Staged(
    Status description,
    std::function<BatchSourcePtr(BatchSourcePtr from, uint64_t repetition)> stage) const {
  return InputPipeline([open = open_, description = std::move(description),
                        stage = std::move(stage)](uint64_t repetition) -> StatusOr<RowWalk> {
    TENON_RETURN_IF_ERROR(description);
    TENON_ASSIGN_OR_RETURN(RowWalk walk, open(repetition));
    walk.rows = stage(std::move(walk.rows), repetition);
    return walk;
  });
}

InputPipeline InputPipeline::Shard(int64_t count, int64_t index) const {
  Status good = AtLeast("the number of shards", count, 1);
  if (good.ok() && (index < 0 || index >= count)) {
    good = InvalidArgument("there is no shard ", index, " of ", count);
  }
  return Staged(good, [count, index](BatchSourcePtr from, uint64_t) {
    return ShardRows(std::move(from), count, index);
  });
}

InputPipeline InputPipeline::Shuffle(int64_t buffer_size, uint64_t seed) const {
  return Staged(AtLeast("the buffer of a Shuffle", buffer_size, 1),
                [buffer_size, seed](BatchSourcePtr from, uint64_t repetition) {
                  return ShuffleRows(std::move(from), buffer_size, seed, repetition);
                });
}

InputPipeline InputPipeline::Batch(int64_t size, const BatchOptions& options) const {
  return InputPipeline([open = open_, size, options](uint64_t repetition) -> StatusOr<RowWalk> {
    TENON_RETURN_IF_ERROR(AtLeast("a Batch", size, 1));
    TENON_ASSIGN_OR_RETURN(RowWalk from, open(repetition));
    return RowsOfElements(BatchesOfRows(std::move(from), size, options.drop_remainder));
  });
}

InputPipeline InputPipeline::Repeat(int64_t count) const {
  return InputPipeline([open = open_, count](uint64_t repetition) -> StatusOr<RowWalk> {
    TENON_RETURN_IF_ERROR(AtLeast("a Repeat, where -1 means for ever,", count, -1));
    // Repetitions of repetitions have numbers of their own.
    const uint64_t first = repetition * (count > 0 ? static_cast<uint64_t>(count) : 1);
    TENON_ASSIGN_OR_RETURN(RowWalk walk, open(first));
    walk.rows = RepeatRows(
        std::move(walk.rows),
        [open, first, tensors = walk.tensors](int64_t next) {
          return AsBefore(open(first + static_cast<uint64_t>(next)), tensors);
        },
        count);
    return walk;
  });
}

InputPipeline InputPipeline::Take(int64_t count) const {
  return Staged(AtLeast("a Take", count, 0), [count](BatchSourcePtr from, uint64_t) {
    return TakeRows(std::move(from), count);
  });
}

InputPipeline InputPipeline::Skip(int64_t count) const {
  return Staged(AtLeast("a Skip", count, 0), [count](BatchSourcePtr from, uint64_t) {
    return SkipRows(std::move(from), count);
  });
}

InputPipeline InputPipeline::Prefetch(int64_t count) const {
  return InputPipeline([open = open_, count](uint64_t repetition) -> StatusOr<RowWalk> {
    TENON_RETURN_IF_ERROR(AtLeast("a Prefetch", count, 1));
    TENON_ASSIGN_OR_RETURN(RowWalk walk, open(repetition));
    // The content of files is wanted ahead, not their names.
    if (walk.form == RowWalk::Form::kFiles) walk = RowsOfElements(ElementsOfRows(std::move(walk)));
    walk.rows = PrefetchRows(std::move(walk.rows), count);
    return walk;
  });
}

StatusOr<std::unique_ptr<InputSource>> InputPipeline::Open() const {
  TENON_ASSIGN_OR_RETURN(RowWalk walk, open_(0));
  return ElementsOfRows(std::move(walk));
}

InputPipeline::Iterator InputPipeline::begin() {
  Iterator at;
  at.status_ = &status_;
  StatusOr<std::unique_ptr<InputSource>> source = Open();
  status_ = source.status();
  if (!source.ok()) return at;
  at.source_ = *std::move(source);
  at.Advance();
  return at;
}

void InputPipeline::Iterator::Advance() {
  // The loop may keep the tensors of the element before.
  element_ = {};
  const StatusOr<bool> found = source_->Next(&element_);
  if (found.ok() && *found) return;
  *status_ = found.status();
  source_ = nullptr;
}

}  // namespace tenon
