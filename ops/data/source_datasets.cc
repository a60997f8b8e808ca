// SPDX-License-Identifier: Apache-2.0
//
// Datasets that begin with tensors and files.
#include "core/memory/counted_memory.h"
#include "core/op/function_kernel.h"
#include "data/files/byte_stream.h"
#include "data/files/file.h"
#include "ops/data/line_dataset.h"
#include "ops/elements.h"
#include "ops/io/record_source.h"

namespace tenon {
namespace {

std::vector<PartialShape> ShapesOf(const std::vector<Tensor>& tensors, bool of_rows) {
  std::vector<PartialShape> shapes;
  for (const Tensor& t : tensors) {
    const auto dims = t.shape().dims();
    shapes.emplace_back(PartialShape(Shape(dims.subspan(of_rows ? 1 : 0))));
  }
  return shapes;
}

using RangeTypes = TypeList<int32_t, int64_t, uint32_t, uint64_t, float, double>;

/// The integers of an arithmetic sequence, as one dtype.
struct RangeDataset final : Dataset {
  RangeDataset(const ElementSpec& spec, int64_t first, int64_t step_by, int64_t size)
      : Dataset(spec.types, spec.shapes), start(first), step(step_by), count(size) {}

  class Walk final : public ElementIterator {
   public:
    explicit Walk(std::shared_ptr<const RangeDataset> of) : of_(std::move(of)) {}
    StatusOr<bool> Next(DatasetElement* out) override {
      if (at_ == of_->count) return false;
      const int64_t value = of_->start + at_++ * of_->step;
      Tensor t(of_->types()[0], Shape());
      Dispatch(t.dtype(), RangeTypes(),
               [&]<typename T>(T) { *t.data<T>() = static_cast<T>(value); });
      *out = {std::move(t)};
      return true;
    }
    bool IsReady() const override { return true; }

   private:
    const std::shared_ptr<const RangeDataset> of_;
    int64_t at_ = 0;
  };
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr&) const override {
    return std::make_unique<Walk>(Self<RangeDataset>());
  }
  int64_t CountElements() const override { return count; }

  const int64_t start, step, count;
};

Status RangeKernel(KernelContext& ctx, Integer start, Integer stop, Integer step,
                   const ElementSpec& spec) {
  if (step == 0) return InvalidArgument("step must be a non-zero integer.");
  const DType type = spec.types[0];
  if (spec.types.size() != 1 || !Dispatch(type, RangeTypes(), [](auto) {})) {
    return InvalidArgument("a range has one component, an integer of 32 or 64 bits, a float or a ",
                           "double; found ", spec.types.size(), " of ", ToString(type));
  }
  // In 128 bits no difference overflows.
  const __int128 gap = step > 0 ? __int128{stop} - start : __int128{start} - stop;
  const __int128 by = step > 0 ? __int128{step} : -__int128{step};
  const __int128 count = gap <= 0 ? 0 : (gap + by - 1) / by;
  constexpr __int128 kMost = std::numeric_limits<int64_t>::max();
  return ReturnDataset(ctx, std::make_shared<RangeDataset>(
                                spec, start, step, static_cast<int64_t>(std::min(count, kMost))));
}

/// One element; or the rows of tensors, one after the other.
struct TensorDataset final : Dataset {
  unsigned traits() const override { return kHoldsTensors; }

  TensorDataset(std::vector<Tensor> elements, bool of_rows)
      : Dataset(TypesOf(elements), ShapesOf(elements, of_rows)),
        tensors(std::move(elements)),
        rows(of_rows) {}

  class Walk final : public ElementIterator {
   public:
    explicit Walk(std::shared_ptr<const TensorDataset> of) : of_(std::move(of)) {}
    StatusOr<bool> Next(DatasetElement* out) override {
      if (at_ == of_->Cardinality()) return false;
      out->clear();
      for (size_t i = 0; i < of_->tensors.size(); ++i) {
        const Tensor& t = of_->tensors[i];
        if (!of_->rows) {
          out->push_back(t);
          continue;
        }
        TENON_ASSIGN_OR_RETURN(Tensor row,
                               t.Slice(at_, at_ + 1).Reshaped(of_->shapes()[i].ToShape()));
        out->push_back(std::move(row));
      }
      ++at_;
      return true;
    }
    bool IsReady() const override { return true; }

   private:
    const std::shared_ptr<const TensorDataset> of_;
    int64_t at_ = 0;
  };
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr&) const override {
    return std::make_unique<Walk>(Self<TensorDataset>());
  }
  int64_t CountElements() const override { return rows ? tensors[0].dim(0) : 1; }

  const std::vector<Tensor> tensors;
  const bool rows;
};

std::vector<Tensor> InputTensors(const KernelContext& ctx) {
  std::vector<Tensor> inputs;
  for (int i = 0; i < ctx.num_inputs(); ++i) inputs.push_back(ctx.input(i));
  return inputs;
}

Status TensorKernel(KernelContext& ctx) {
  return ReturnDataset(ctx, std::make_shared<TensorDataset>(InputTensors(ctx), false));
}

Status TensorSliceKernel(KernelContext& ctx) {
  std::vector<Tensor> tensors = InputTensors(ctx);
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].rank() == 0) {
      return InvalidArgument("All components must be at least 1-dimensional, component ", i,
                             " is a scalar");
    }
    if (tensors[i].dim(0) != tensors[0].dim(0)) {
      return InvalidArgument("All components must have the same size in the 0th dimension, found ",
                             tensors[0].dim(0), " and ", tensors[i].dim(0));
    }
  }
  return ReturnDataset(ctx, std::make_shared<TensorDataset>(std::move(tensors), true));
}

/// The records of files, each a string, one file after the other; numbered lines are followed by
/// the number of their file.
struct FileDataset final : Dataset {
  enum class Format { kLines, kNumberedLines, kTFRecords, kFixedLength };

  FileDataset(Format records, std::vector<std::string> names, Compression packed,
              FileAccess file_access)
      : Dataset(records == Format::kNumberedLines ? DTypeVector{DType::kString, DType::kInt64}
                                                  : DTypeVector{DType::kString},
                std::vector<PartialShape>(records == Format::kNumberedLines ? 2 : 1,
                                          PartialShape(Shape()))),
        format(records),
        files(std::move(names)),
        compression(packed),
        access(std::move(file_access)) {}

  class Walk final : public ElementIterator {
   public:
    Walk(std::shared_ptr<const FileDataset> of, ContextPtr context)
        : of_(std::move(of)), context_(std::move(context)) {}
    StatusOr<bool> Next(DatasetElement* out) override {
      while (true) {
        if (source_ == nullptr) {
          if (next_ == of_->files.size()) return false;
          TENON_ASSIGN_OR_RETURN(source_, of_->Open(next_++, *context_));
        }
        const StatusOr<bool> found = source_->Next(&key_, &record_);
        // What follows in a damaged file cannot be told.
        if (!found.ok() || !*found) source_ = nullptr;
        TENON_RETURN_IF_ERROR(found.status());
        if (*found) break;
      }
      *out = {Tensor::Scalar(record_)};
      if (of_->format == Format::kNumberedLines) {
        out->push_back(Tensor::Scalar(static_cast<int64_t>(next_) - 1));
      }
      return true;
    }

   private:
    const std::shared_ptr<const FileDataset> of_;
    const ContextPtr context_;
    size_t next_ = 0;  // file to open
    std::unique_ptr<RecordSource> source_;
    std::string key_, record_;
  };
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    return std::make_unique<Walk>(Self<FileDataset>(), context);
  }

  StatusOr<std::unique_ptr<RecordSource>> Open(size_t index, IteratorContext& context) const {
    const std::string& file = files[index];
    TENON_ASSIGN_OR_RETURN(const FileContext reached,
                           FileContext::Of(access, &context.cancellation()));
    TENON_ASSIGN_OR_RETURN(std::unique_ptr<InputFile> input, OpenInput(file, reached));
    std::unique_ptr<ByteSource> bytes = MakeSource(std::move(input), compression);
    if (!offsets.empty()) TENON_RETURN_IF_ERROR(Skip(*bytes, offsets[index]));
    if (format == Format::kLines || format == Format::kNumberedLines) {
      return MakeLineSource(file, std::move(bytes), skip_lines);
    }
    if (format == Format::kTFRecords) return MakeTFRecordSource(file, std::move(bytes));
    TENON_ASSIGN_OR_RETURN(std::string content, ReadToEnd(*bytes));
    const int64_t size = static_cast<int64_t>(content.size());
    const int64_t body = size - lengths.header - lengths.footer;
    if (body < 0 || body % lengths.record != 0) {
      return InvalidArgument("Excluding the header (", lengths.header, " bytes) and footer (",
                             lengths.footer, " bytes), input file \"", file, "\" has body length ",
                             body, " bytes, which is not an exact multiple of the record length (",
                             lengths.record, " bytes).");
    }
    return MakeFixedLengthSource(file, std::move(content), lengths);
  }

  static Status Skip(ByteSource& bytes, int64_t count) {
    CountedVector<char> skipped(1 << 16);
    while (count > 0) {
      const size_t wanted = std::min<int64_t>(count, skipped.size());
      TENON_ASSIGN_OR_RETURN(const size_t n, bytes.Read(wanted, skipped.data()));
      if (n == 0) break;
      count -= static_cast<int64_t>(n);
    }
    return OkStatus();
  }

  const Format format;
  const std::vector<std::string> files;
  const Compression compression;
  const FileAccess access;
  FixedLengths lengths;
  int64_t skip_lines = 0;        // of each file
  std::vector<int64_t> offsets;  // where each file's first record begins; none: at its beginning
};

StatusOr<std::vector<std::string>> ReadFilenames(const Tensor& t) {
  if (t.rank() > 1) return InvalidArgument("`filenames` must be a scalar or a vector.");
  std::vector<std::string> names;
  for (const TString& name : t.flat<TString>()) names.emplace_back(name);
  return names;
}

StatusOr<Compression> ReadCompression(const Tensor& t) {
  if (t.rank() != 0) return InvalidArgument("`compression_type` must be a scalar");
  return ParseCompression(std::string_view(t.scalar<TString>()));
}

StatusOr<std::shared_ptr<FileDataset>> ReadFiles(const KernelContext& ctx,
                                                 FileDataset::Format format) {
  TENON_ASSIGN_OR_RETURN(std::vector<std::string> files, ReadFilenames(ctx.input(0)));
  TENON_ASSIGN_OR_RETURN(const Compression compression, ReadCompression(ctx.input(1)));
  TENON_ASSIGN_OR_RETURN(const int64_t buffer, ReadInteger(ctx.input(2), "buffer_size"));
  if (buffer < 0) return InvalidArgument("`buffer_size` must be >= 0 (0 == default)");
  return std::make_shared<FileDataset>(format, std::move(files), compression, ctx.device().files());
}

Status LinesKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(DatasetPtr dataset, ReadLineDataset(ctx, 0, false));
  return ReturnDataset(ctx, std::move(dataset));
}

/// Version 2 has byte_offsets.
Status TFRecordsKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(auto dataset, ReadFiles(ctx, FileDataset::Format::kTFRecords));
  if (ctx.num_inputs() > 3) {
    TENON_ASSIGN_OR_RETURN(const DimVector offsets, ReadIntegers(ctx.input(3), "byte_offsets"));
    if (!offsets.empty() && offsets.size() != dataset->files.size()) {
      return InvalidArgument("`byte_offsets` must be of same size as `filenames`, found ",
                             offsets.size(), " and ", dataset->files.size());
    }
    for (const int64_t offset : offsets) {
      if (offset < 0) return InvalidArgument("`byte_offsets` must be >= 0, found ", offset);
    }
    dataset->offsets.assign(offsets.begin(), offsets.end());
  }
  return ReturnDataset(ctx, std::move(dataset));
}

Status FixedLengthKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(std::vector<std::string> files, ReadFilenames(ctx.input(0)));
  FixedLengths lengths;
  TENON_ASSIGN_OR_RETURN(lengths.header, ReadInteger(ctx.input(1), "header_bytes"));
  TENON_ASSIGN_OR_RETURN(lengths.record, ReadInteger(ctx.input(2), "record_bytes"));
  TENON_ASSIGN_OR_RETURN(lengths.footer, ReadInteger(ctx.input(3), "footer_bytes"));
  constexpr int64_t kMost = int64_t{1} << 60;
  if (lengths.header < 0 || lengths.header > kMost) {
    return InvalidArgument("`header_bytes` must be >= 0");
  }
  if (lengths.record <= 0) return InvalidArgument("`record_bytes` must be > 0");
  if (lengths.footer < 0 || lengths.footer > kMost) {
    return InvalidArgument("`footer_bytes` must be >= 0");
  }
  Compression compression = Compression::kNone;
  if (ctx.num_inputs() > 5) {
    TENON_ASSIGN_OR_RETURN(compression, ReadCompression(ctx.input(5)));
  }
  auto dataset = std::make_shared<FileDataset>(FileDataset::Format::kFixedLength, std::move(files),
                                               compression, ctx.device().files());
  dataset->lengths = lengths;
  return ReturnDataset(ctx, std::move(dataset));
}

}  // namespace

StatusOr<DatasetPtr> ReadLineDataset(const KernelContext& ctx, int64_t skip, bool numbers) {
  using Format = FileDataset::Format;
  TENON_ASSIGN_OR_RETURN(auto dataset,
                         ReadFiles(ctx, numbers ? Format::kNumberedLines : Format::kLines));
  dataset->skip_lines = skip;
  return dataset;
}

void RegisterSourceDatasets(OpRegistry& ops) {
  constexpr std::string_view kCovered = "needs an iterator; datasets_test covers it";
  ops.Add("RangeDataset", ScalarShape, RangeKernel).NoExample(kCovered);
  ops.Add("TensorDataset", ScalarShape, TensorKernel).NoExample(kCovered);
  ops.Add("TensorSliceDataset", ScalarShape, TensorSliceKernel).NoExample(kCovered);
  ops.Add("TextLineDataset", ScalarShape, LinesKernel).NoExample(kCovered);
  for (const char* name : {"TFRecordDataset", "TFRecordDatasetV2"}) {
    ops.Add(name, ScalarShape, TFRecordsKernel).NoExample(kCovered);
  }
  for (const char* name : {"FixedLengthRecordDataset", "FixedLengthRecordDatasetV2"}) {
    ops.Add(name, ScalarShape, FixedLengthKernel).NoExample(kCovered);
  }
}

}  // namespace tenon
