// SPDX-License-Identifier: Apache-2.0
#include "train/input/input_pipeline.h"

#include <algorithm>

#include "data/idx.h"
#include "data/npy.h"
#include "data/record_file.h"
#include "train/input/batch_source.h"
#include "train/input/prefetch_source.h"
#include "train/input/shuffle_source.h"

namespace tenon {
namespace {

class RowSource final : public InputSource {
 public:
  explicit RowSource(std::vector<Tensor> columns) : columns_(std::move(columns)) {}

  StatusOr<bool> Next(InputElement* element) override {
    if (next_ == columns_[0].dim(0)) return false;
    element->clear();
    for (const Tensor& column : columns_) {
      TENON_ASSIGN_OR_RETURN(Tensor row,
                             column.Slice(next_, next_ + 1).Reshaped(column.shape().WithoutDim(0)));
      element->push_back(std::move(row));
    }
    ++next_;
    return true;
  }

 private:
  const std::vector<Tensor> columns_;
  int64_t next_ = 0;
};

StatusOr<std::unique_ptr<InputSource>> OpenRows(std::vector<Tensor> columns) {
  if (columns.empty()) return InvalidArgument("an input pipeline needs a tensor to take rows of");
  for (const Tensor& t : columns) {
    if (!t.valid() || t.rank() < 1) {
      return InvalidArgument("an input pipeline takes rows of tensors, found ",
                             t.valid() ? t.shape().ToString() : "no value");
    }
    if (t.dim(0) != columns[0].dim(0)) {
      return InvalidArgument("tensors of ", columns[0].dim(0), " and ", t.dim(0),
                             " rows do not belong together");
    }
  }
  return std::make_unique<RowSource>(std::move(columns));
}

class RecordSourceOfFiles final : public InputSource {
 public:
  explicit RecordSourceOfFiles(std::vector<std::string> paths) : paths_(std::move(paths)) {}

  StatusOr<bool> Next(InputElement* element) override {
    std::string record;
    while (true) {
      if (reader_ == nullptr) {
        if (next_ == paths_.size()) return false;
        TENON_ASSIGN_OR_RETURN(reader_, RecordReader::Open(paths_[next_++]));
      }
      TENON_ASSIGN_OR_RETURN(const bool found, reader_->Read(&record));
      if (found) break;
      reader_ = nullptr;
    }
    element->assign(1, Tensor::Scalar(TString(std::move(record))));
    return true;
  }

 private:
  const std::vector<std::string> paths_;
  size_t next_ = 0;
  std::unique_ptr<RecordReader> reader_;
};

/// A walk of which each element is looked at, changed or left out.
class ChosenSource final : public InputSource {
 public:
  /// Gives whether the element stays.
  using Choose = std::function<StatusOr<bool>(int64_t number, InputElement* element)>;
  ChosenSource(std::unique_ptr<InputSource> from, Choose choose)
      : from_(std::move(from)), choose_(std::move(choose)) {}

  StatusOr<bool> Next(InputElement* element) override {
    while (true) {
      TENON_ASSIGN_OR_RETURN(const bool found, from_->Next(element));
      if (!found) return false;
      TENON_ASSIGN_OR_RETURN(const bool stays, choose_(number_++, element));
      if (stays) return true;
    }
  }

 private:
  const std::unique_ptr<InputSource> from_;
  const Choose choose_;
  int64_t number_ = 0;
};

class FirstSource final : public InputSource {
 public:
  FirstSource(std::unique_ptr<InputSource> from, int64_t count)
      : from_(std::move(from)), left_(count) {}

  StatusOr<bool> Next(InputElement* element) override {
    if (left_ <= 0) return false;
    --left_;
    return from_->Next(element);
  }

 private:
  const std::unique_ptr<InputSource> from_;
  int64_t left_;
};

class RepeatedSource final : public InputSource {
 public:
  using OpenOne = std::function<StatusOr<std::unique_ptr<InputSource>>(uint64_t repetition)>;
  RepeatedSource(OpenOne open, int64_t count, uint64_t first)
      : open_(std::move(open)), count_(count), first_(first) {}

  StatusOr<bool> Next(InputElement* element) override {
    while (true) {
      if (source_ == nullptr) {
        if (count_ >= 0 && repetition_ == count_) return false;
        TENON_ASSIGN_OR_RETURN(source_, open_(first_ + static_cast<uint64_t>(repetition_++)));
        any_ = false;
      }
      TENON_ASSIGN_OR_RETURN(const bool found, source_->Next(element));
      if (found) {
        any_ = true;
        return true;
      }
      source_ = nullptr;
      if (!any_) return false;  // nothing, however often
    }
  }

 private:
  const OpenOne open_;
  const int64_t count_;
  const uint64_t first_;
  std::unique_ptr<InputSource> source_;
  int64_t repetition_ = 0;
  bool any_ = false;
};

Status AtLeast(std::string_view what, int64_t found, int64_t least) {
  return found >= least ? OkStatus()
                        : InvalidArgument(what, " of an input pipeline must be at least ", least,
                                          ", found ", found);
}

}  // namespace

InputPipeline InputPipeline::FromTensors(const std::vector<Tensor>& columns) {
  return InputPipeline([columns](uint64_t) { return OpenRows(columns); });
}

InputPipeline InputPipeline::FromIdx(const std::vector<std::string>& paths) {
  return InputPipeline([paths](uint64_t) -> StatusOr<std::unique_ptr<InputSource>> {
    std::vector<Tensor> columns;
    for (const std::string& path : paths) {
      TENON_ASSIGN_OR_RETURN(Tensor column, ReadIdx(path));
      columns.push_back(std::move(column));
    }
    return OpenRows(std::move(columns));
  });
}

InputPipeline InputPipeline::FromNpz(const std::string& path,
                                     const std::vector<std::string>& names) {
  return InputPipeline([path, names](uint64_t) -> StatusOr<std::unique_ptr<InputSource>> {
    TENON_ASSIGN_OR_RETURN(const NpzReader reader, NpzReader::Open(path));
    std::vector<Tensor> columns;
    for (const std::string& name : names) {
      TENON_ASSIGN_OR_RETURN(Tensor column, reader.Read(name));
      columns.push_back(std::move(column));
    }
    return OpenRows(std::move(columns));
  });
}

InputPipeline InputPipeline::FromRecords(const std::vector<std::string>& paths) {
  return InputPipeline([paths](uint64_t) -> StatusOr<std::unique_ptr<InputSource>> {
    return std::make_unique<RecordSourceOfFiles>(paths);
  });
}

InputPipeline InputPipeline::From(std::function<StatusOr<std::unique_ptr<InputSource>>()> open) {
  return InputPipeline([open = std::move(open)](uint64_t) { return open(); });
}

InputPipeline InputPipeline::Map(std::function<Status(InputElement* element)> change) const {
  return InputPipeline(
      [open = open_, change](uint64_t repetition) -> StatusOr<std::unique_ptr<InputSource>> {
        TENON_ASSIGN_OR_RETURN(auto from, open(repetition));
        return std::make_unique<ChosenSource>(
            std::move(from), [change](int64_t, InputElement* element) -> StatusOr<bool> {
              TENON_RETURN_IF_ERROR(change(element));
              return true;
            });
      });
}

InputPipeline InputPipeline::Filter(std::function<bool(const InputElement& element)> wanted) const {
  return InputPipeline([open = open_,
                        wanted](uint64_t repetition) -> StatusOr<std::unique_ptr<InputSource>> {
    TENON_ASSIGN_OR_RETURN(auto from, open(repetition));
    return std::make_unique<ChosenSource>(
        std::move(from),
        [wanted](int64_t, InputElement* element) -> StatusOr<bool> { return wanted(*element); });
  });
}

InputPipeline InputPipeline::Shard(int64_t count, int64_t index) const {
  return InputPipeline(
      [open = open_, count, index](uint64_t repetition) -> StatusOr<std::unique_ptr<InputSource>> {
        TENON_RETURN_IF_ERROR(AtLeast("the number of shards", count, 1));
        if (index < 0 || index >= count) {
          return InvalidArgument("there is no shard ", index, " of ", count);
        }
        TENON_ASSIGN_OR_RETURN(auto from, open(repetition));
        return std::make_unique<ChosenSource>(
            std::move(from), [count, index](int64_t number, InputElement*) -> StatusOr<bool> {
              return number % count == index;
            });
      });
}

InputPipeline InputPipeline::Shuffle(int64_t buffer_size, uint64_t seed) const {
  return InputPipeline([open = open_, buffer_size,
                        seed](uint64_t repetition) -> StatusOr<std::unique_ptr<InputSource>> {
    TENON_RETURN_IF_ERROR(AtLeast("the buffer of a Shuffle", buffer_size, 1));
    TENON_ASSIGN_OR_RETURN(auto from, open(repetition));
    return std::make_unique<ShuffleSource>(std::move(from), buffer_size, seed, repetition);
  });
}

InputPipeline InputPipeline::Batch(int64_t size, const BatchOptions& options) const {
  return InputPipeline(
      [open = open_, size, options](uint64_t repetition) -> StatusOr<std::unique_ptr<InputSource>> {
        TENON_RETURN_IF_ERROR(AtLeast("a Batch", size, 1));
        TENON_ASSIGN_OR_RETURN(auto from, open(repetition));
        return std::make_unique<BatchSource>(std::move(from), size, options.drop_remainder);
      });
}

InputPipeline InputPipeline::Repeat(int64_t count) const {
  return InputPipeline(
      [open = open_, count](uint64_t repetition) -> StatusOr<std::unique_ptr<InputSource>> {
        TENON_RETURN_IF_ERROR(AtLeast("a Repeat, where -1 means for ever,", count, -1));
        // Repetitions of repetitions have numbers of their own.
        const uint64_t first = repetition * (count > 0 ? static_cast<uint64_t>(count) : 1);
        return std::make_unique<RepeatedSource>(open, count, first);
      });
}

InputPipeline InputPipeline::Take(int64_t count) const {
  return InputPipeline(
      [open = open_, count](uint64_t repetition) -> StatusOr<std::unique_ptr<InputSource>> {
        TENON_RETURN_IF_ERROR(AtLeast("a Take", count, 0));
        TENON_ASSIGN_OR_RETURN(auto from, open(repetition));
        return std::make_unique<FirstSource>(std::move(from), count);
      });
}

InputPipeline InputPipeline::Skip(int64_t count) const {
  return InputPipeline(
      [open = open_, count](uint64_t repetition) -> StatusOr<std::unique_ptr<InputSource>> {
        TENON_RETURN_IF_ERROR(AtLeast("a Skip", count, 0));
        TENON_ASSIGN_OR_RETURN(auto from, open(repetition));
        return std::make_unique<ChosenSource>(
            std::move(from),
            [count](int64_t number, InputElement*) -> StatusOr<bool> { return number >= count; });
      });
}

InputPipeline InputPipeline::Prefetch(int64_t count) const {
  return InputPipeline(
      [open = open_, count](uint64_t repetition) -> StatusOr<std::unique_ptr<InputSource>> {
        TENON_RETURN_IF_ERROR(AtLeast("a Prefetch", count, 1));
        TENON_ASSIGN_OR_RETURN(auto from, open(repetition));
        return std::make_unique<PrefetchSource>(std::move(from), count);
      });
}

StatusOr<std::unique_ptr<InputSource>> InputPipeline::Open() const { return open_(0); }

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
