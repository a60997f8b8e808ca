// SPDX-License-Identifier: Apache-2.0
#include "tools/run/outputs.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "core/base/plural.h"
#include "data/arrays/npy.h"
#include "data/batch/batch.h"
#include "data/files/file.h"
#include "data/files/path.h"
#include "tools/commands.h"
#include "tools/run/element_text.h"
#include "tools/writable.h"

namespace tenon::tools {
namespace {

/// Makes rows of what is added, and counts them.
class RowWriter : public OutputWriter {
 public:
  explicit RowWriter(const OutputOptions& options)
      : options_(options),
        maker_(options.steps, options.labels, options.is_whole),
        written_(options.labels.size()) {}

  Status Add(const std::vector<Tensor>& values, int64_t batch) final {
    TENON_ASSIGN_OR_RETURN(const std::vector<Tensor> rows, maker_.RowsOf(values, batch));
    return AddCounted(rows);
  }

  Status AddNothing(const std::vector<std::pair<DType, PartialShape>>& types) final {
    std::vector<Tensor> none;
    for (size_t i = 0; i < types.size(); ++i) {
      const auto& [dtype, shape] = types[i];
      // A value that is no row of the batch would be a row for each batch.
      const bool follows = shape.rank_known() && shape.rank() > 0 && shape.dim(0) < 0;
      DimVector dims = {0};
      for (int d = follows ? 1 : 0; shape.rank_known() && d < shape.rank(); ++d) {
        dims.push_back(std::max<int64_t>(shape.dim(d), 0));
      }
      TENON_ASSIGN_OR_RETURN(Tensor rows, Tensor::Allocate(CpuAllocator(), dtype, Shape(dims)));
      none.push_back(std::move(rows));
    }
    return AddCounted(none);
  }

  std::string Summary() const final {
    if (steps_ == 0) return "nothing";
    std::vector<std::string> texts;
    for (size_t i = 0; i < written_.size(); ++i) {
      texts.push_back(StrCat(labels()[i], " ", ToString(written_[i].dtype), written_[i].shape));
    }
    return Join(texts, ", ");
  }

 protected:
  virtual Status AddRows(const std::vector<Tensor>& rows) = 0;

  const std::string& path() const { return options_.path; }
  const std::vector<std::string>& labels() const { return options_.labels; }
  bool has_steps() const { return options_.steps != RowsAre::kOne; }
  bool has_repeats() const { return options_.steps == RowsAre::kRepeats; }
  /// The number of steps that were added before.
  int64_t steps() const { return steps_; }

 private:
  struct Written {
    DType dtype = DType::kInvalid;
    Shape shape;
  };

  Status AddCounted(const std::vector<Tensor>& rows) {
    TENON_RETURN_IF_ERROR(AddRows(rows));
    for (size_t i = 0; i < rows.size(); ++i) {
      Written& written = written_[i];
      DimVector dims(rows[i].shape().dims().begin(), rows[i].shape().dims().end());
      if (steps_ > 0 && !dims.empty()) dims[0] += written.shape.dim(0);
      written = {rows[i].dtype(), Shape(dims)};
    }
    ++steps_;
    return OkStatus();
  }

  const OutputOptions options_;
  RowMaker maker_;
  std::vector<Written> written_;
  int64_t steps_ = 0;
};

/// Keeps everything until its end.
class KeptRows : public RowWriter {
 public:
  using RowWriter::RowWriter;

 protected:
  Status AddRows(const std::vector<Tensor>& rows) override {
    pieces_.resize(rows.size());
    for (size_t i = 0; i < rows.size(); ++i) pieces_[i].push_back(rows[i]);
    return OkStatus();
  }
  /// All rows of fetch `i`; REQUIRES: some were added.
  StatusOr<Tensor> All(size_t i) const { return ConcatenateRows(pieces_[i], labels()[i]); }
  /// The pieces of each fetch: what each step added.
  const std::vector<std::vector<Tensor>>& pieces() const { return pieces_; }

 private:
  std::vector<std::vector<Tensor>> pieces_;
};

/// `written`; where it is an error, half a file goes.
Status WholeOrNone(const Status& written, const std::string& path) {
  if (!written.ok() && IsRegularFile(path)) RemoveFile(path).IgnoreError();
  return written;
}

class NpzOutput final : public KeptRows {
 public:
  using KeptRows::KeptRows;
  Status Finish() override {
    std::vector<std::pair<std::string, Tensor>> arrays;
    const size_t repeats = pieces().empty() ? 0 : pieces()[0].size();
    for (size_t step = 0; has_repeats() && step < repeats; ++step) {
      for (size_t i = 0; i < pieces().size(); ++i) {
        const Tensor& row = pieces()[i][step];
        TENON_ASSIGN_OR_RETURN(Tensor value, row.Reshaped(Shape(row.shape().dims().subspan(1))));
        arrays.emplace_back(StrCat(labels()[i], "/", step), std::move(value));
      }
    }
    for (size_t i = 0; !has_repeats() && i < pieces().size(); ++i) {
      TENON_ASSIGN_OR_RETURN(Tensor value, All(i));
      arrays.emplace_back(labels()[i], std::move(value));
    }
    return WholeOrNone(WriteNpz(path(), arrays), path());
  }
};

class JsonOutput final : public KeptRows {
 public:
  using KeptRows::KeptRows;
  Status Finish() override {
    std::string text = "{";
    for (size_t i = 0; i < pieces().size(); ++i) {
      TENON_ASSIGN_OR_RETURN(const Tensor value, All(i));
      StrAppend(&text, i == 0 ? "" : ",\n ");
      TENON_RETURN_IF_ERROR(AppendJson(Tensor::Scalar(labels()[i]), &text));
      text += ": ";
      TENON_RETURN_IF_ERROR(AppendJson(value, &text));
    }
    return WholeOrNone(WriteTextFile(path(), text + "}\n"), path());
  }
};

class NpyOutput final : public KeptRows {
 public:
  using KeptRows::KeptRows;
  Status Finish() override {
    if (writer_ != nullptr) return writer_->Close();
    if (pieces().empty()) return OkStatus();
    TENON_ASSIGN_OR_RETURN(const Tensor value, All(0));
    return WholeOrNone(WriteNpy(path(), value), path());
  }

 protected:
  Status AddRows(const std::vector<Tensor>& rows) override {
    // A file must know its longest string before the first one.
    if (!has_steps() || rows[0].dtype() == DType::kString) return KeptRows::AddRows(rows);
    // Its first bytes say how many rows it has, and a file elsewhere is written once.
    if (!SchemeOf(path()).empty()) return KeptRows::AddRows(rows);
    if (writer_ == nullptr) {
      TENON_ASSIGN_OR_RETURN(writer_, NpyWriter::Create(path()));
    }
    return writer_->Append(rows[0]);
  }

 private:
  std::unique_ptr<NpyWriter> writer_;
};

/// Lines of fields.
class TableOutput final : public RowWriter {
 public:
  TableOutput(const OutputOptions& options, char delimiter)
      : RowWriter(options), delimiter_(delimiter) {}
  ~TableOutput() override {
    remote_ = nullptr;  // half a file elsewhere is none
    Close().IgnoreError();
  }

  Status Finish() override { return Close(); }

 protected:
  Status AddRows(const std::vector<Tensor>& rows) override {
    const int64_t lines = LinesOf(rows[0]);
    for (size_t i = 0; i < rows.size(); ++i) {
      if (LinesOf(rows[i]) == lines) continue;
      return InvalidArgument("'", labels()[0], "' has ", lines, " rows and '", labels()[i], "' ",
                             LinesOf(rows[i]),
                             ", of which a table wants as many; .npz and .json hold both");
    }
    if (steps() == 0) TENON_RETURN_IF_ERROR(Open(rows));
    std::string text;
    for (int64_t line = 0; line < lines; ++line) {
      if (has_repeats()) StrAppend(&text, steps(), std::string(1, delimiter_));
      for (size_t i = 0; i < rows.size(); ++i) {
        if (i > 0) text += delimiter_;
        TENON_RETURN_IF_ERROR(AppendRow(rows[i], line, delimiter_, &text));
      }
      text += '\n';
    }
    return Write(text);
  }

 private:
  static int64_t LinesOf(const Tensor& rows) { return rows.rank() == 0 ? 1 : rows.dim(0); }

  Status Open(const std::vector<Tensor>& rows) {
    if (!SchemeOf(path()).empty()) {
      TENON_ASSIGN_OR_RETURN(remote_, tenon::OpenOutput(path()));
      return Write(HeaderOf(rows));
    }
    file_ = path() == "-" ? stdout : std::fopen(path().c_str(), "wb");
    if (file_ == nullptr) return StatusOfErrno(errno, "write", path());
    // Each write is of whole lines, of which none is to be left in a buffer when one fails.
    if (file_ != stdout) std::setvbuf(file_, nullptr, _IONBF, 0);
    return Write(HeaderOf(rows));
  }

  std::string HeaderOf(const std::vector<Tensor>& rows) const {
    std::vector<std::string> names;
    if (has_repeats()) names.emplace_back("step");
    for (size_t i = 0; i < rows.size(); ++i) {
      const absl::Span<const int64_t> dims = rows[i].shape().dims();
      AddNames(labels()[i], dims.empty() ? dims : dims.subspan(1), &names);
    }
    return Join(names, std::string(1, delimiter_)) + "\n";
  }

  /// "y", or "y[0]", "y[1]", ... of the elements of a row.
  static void AddNames(const std::string& label, absl::Span<const int64_t> dims,
                       std::vector<std::string>* names) {
    if (dims.empty() || dims[0] == 0) {
      names->push_back(label);
      return;
    }
    for (int64_t i = 0; i < dims[0]; ++i) {
      AddNames(StrCat(label, "[", i, "]"), dims.subspan(1), names);
    }
  }

  Status Write(const std::string& text) {
    if (remote_ != nullptr) return remote_->Append(text);
    if (std::fwrite(text.data(), 1, text.size(), file_) == text.size()) {
      whole_ += static_cast<off_t>(text.size());
      return OkStatus();
    }
    const Status status = StatusOfErrno(errno, "write", path());
    const bool is_whole = file_ == stdout || ftruncate(fileno(file_), whole_) == 0;
    return is_whole ? status : AppendToMessage(status, "; its last line is cut short");
  }

  Status Close() {
    if (remote_ != nullptr) return std::exchange(remote_, nullptr)->Close();
    std::FILE* const file = std::exchange(file_, nullptr);
    // What could not be written to the standard output is told at the end of the command.
    if (file == nullptr || file == stdout || std::fclose(file) == 0) return OkStatus();
    return StatusOfErrno(errno, "write", path());
  }

  const char delimiter_;
  std::FILE* file_ = nullptr;
  std::unique_ptr<OutputFile> remote_;  // a file of a scheme, in the place of file_
  off_t whole_ = 0;                     // bytes of the lines that are there
};

}  // namespace

StatusOr<std::unique_ptr<OutputWriter>> OpenOutput(const OutputOptions& options) {
  const std::string& path = options.path;
  if (path == "-") return std::make_unique<TableOutput>(options, ',');
  std::unique_ptr<OutputWriter> writer;
  if (path.ends_with(".npz")) {
    writer = std::make_unique<NpzOutput>(options);
  } else if (path.ends_with(".npy")) {
    if (options.labels.size() != 1) {
      return WrongUsage(
          StrCat("--output ", path, ": an .npy file holds one array, found ",
                 Plural(static_cast<int64_t>(options.labels.size()), "fetch", "fetches"), ", ",
                 Join(options.labels, ", "), "; .npz holds several"));
    }
    writer = std::make_unique<NpyOutput>(options);
  } else if (path.ends_with(".csv") || path.ends_with(".tsv")) {
    writer = std::make_unique<TableOutput>(options, path.ends_with(".csv") ? ',' : '\t');
  } else if (path.ends_with(".json")) {
    writer = std::make_unique<JsonOutput>(options);
  } else {
    return WrongUsage(StrCat("--output ", path,
                             ": wanted a name that ends in .npz, .npy, .csv, .tsv or .json, or -"));
  }
  TENON_RETURN_IF_ERROR(CheckWritable(path, "--output"));
  return writer;
}

}  // namespace tenon::tools
