// SPDX-License-Identifier: Apache-2.0
#include "tools/run/feeds.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>

#include "core/base/plural.h"
#include "data/arrays/npy.h"
#include "data/files/file.h"
#include "data/files/path.h"
#include "tools/commands.h"
#include "tools/run/file_lists.h"
#include "tools/run/file_rows.h"
#include "tools/run/names.h"
#include "tools/run/text_rows.h"
#include "tools/run/values.h"

namespace tenon::tools {
namespace {

constexpr char kStandardInput[] = "the standard input";
constexpr std::string_view kNpyStart("\x93NUMPY", 6);

/// The standard input, of which the beginning may have been read before.
class StandardInput final : public ByteSource {
 public:
  /// Reads what comes first, to tell what it is.
  Status Peek() {
    head_.resize(1 << 12);
    TENON_ASSIGN_OR_RETURN(const size_t found, ReadMore(head_.size(), head_.data()));
    head_.resize(found);
    return OkStatus();
  }
  const std::string& head() const { return head_; }

  StatusOr<size_t> Read(size_t size, char* out) override {
    const size_t known = std::min(size, head_.size());
    std::copy_n(head_.begin(), known, out);
    head_.erase(0, known);
    if (known == size) return size;
    TENON_ASSIGN_OR_RETURN(const size_t more, ReadMore(size - known, out + known));
    return known + more;
  }
  int64_t Bound() const override { return INT64_MAX; }

 private:
  static StatusOr<size_t> ReadMore(size_t size, char* out) {
    size_t done = 0;
    while (done < size) {
      const ssize_t n = read(STDIN_FILENO, out + done, size - done);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return StatusOfErrno(errno, "read", kStandardInput);
      if (n == 0) break;
      done += n;
    }
    return done;
  }

  std::string head_;
};

StatusOr<std::string> ReadAll(ByteSource& source) {
  constexpr size_t kPiece = 1 << 16;
  std::string all;
  while (true) {
    const size_t before = all.size();
    all.resize(before + kPiece);
    TENON_ASSIGN_OR_RETURN(const size_t found, source.Read(kPiece, all.data() + before));
    all.resize(before + found);
    if (found < kPiece) return all;
  }
}

class TensorRowSource final : public RowSource {
 public:
  explicit TensorRowSource(Tensor all) : all_(std::move(all)) {}
  int64_t num_rows() const override { return all_.dim(0); }
  StatusOr<Tensor> Next(int64_t most) override {
    const int64_t begin = next_;
    next_ = std::min(next_ + most, all_.dim(0));
    return all_.Slice(begin, next_);
  }

 private:
  const Tensor all_;
  int64_t next_ = 0;
};

class NpyRowSource final : public RowSource {
 public:
  explicit NpyRowSource(NpyRows rows) : rows_(std::move(rows)) {}
  int64_t num_rows() const override { return rows_.shape().dim(0); }
  StatusOr<Tensor> Next(int64_t most) override { return rows_.Next(most); }

 private:
  NpyRows rows_;
};

class TextRowSource final : public RowSource {
 public:
  explicit TextRowSource(std::unique_ptr<TextRows> rows) : rows_(std::move(rows)) {}
  int64_t num_rows() const override { return -1; }
  StatusOr<Tensor> Next(int64_t most) override { return rows_->Next(most); }

 private:
  std::unique_ptr<TextRows> rows_;
};

/// A value that was found: all of it, or rows that are still to be read.
struct FoundValue {
  Tensor value;
  std::unique_ptr<RowSource> rows;
};

FoundValue Whole(Tensor value) { return {std::move(value), nullptr}; }
FoundValue Rows(std::unique_ptr<RowSource> rows) { return {Tensor(), std::move(rows)}; }

/// Reads the value of one feed.
class ValueReader {
 public:
  ValueReader(const FeedText& feed, const Endpoint& tensor, int64_t batch)
      : feed_(feed),
        dtype_(BaseType(tensor.node->output_type(tensor.index))),
        shape_(tensor.node->output_shape(tensor.index)),
        batch_(batch) {}

  StatusOr<FoundValue> Read() {
    const std::string& value = feed_.value;
    if (value == "-") return ReadStandardInput();
    TENON_ASSIGN_OR_RETURN(const auto files, ListFiles(value));
    if (files) return ReadFiles(*files);
    if (value.starts_with('@')) return ReadBytes(value.substr(1));
    if (value.ends_with(".npy")) return ReadNpyFile(value);
    if (const auto [path, key] = SplitKey(value); !path.empty()) {
      TENON_ASSIGN_OR_RETURN(Tensor array, ReadNpz(path, key));
      return Found(std::move(array));
    }
    TENON_ASSIGN_OR_RETURN(std::unique_ptr<RowSource> rows, OpenFileRows(value, dtype_, shape_));
    if (rows != nullptr) return ReadRows(std::move(rows));
    if (IsTextFile(value)) {
      TENON_ASSIGN_OR_RETURN(std::unique_ptr<TextRows> rows, OpenText(value));
      return ReadText(std::move(rows));
    }
    auto literal = ReadLiteral(value, dtype_);
    if (!literal.ok()) return AppendToMessage(literal.status(), HintOf(value));
    return Whole(*std::move(literal));
  }

 private:
  /// A guess at what was meant by a value that is neither a literal nor a file known by its ending.
  static std::string HintOf(const std::string& value) {
    if (IsFolder(value)) {
      return StrCat("; it is a folder, of whose files a pattern is meant, such as '",
                    JoinPath(value, "*.npy"), "'");
    }
    if (FileExists(value)) {
      return StrCat("; there is a file of that name, whose bytes @", value, " are");
    }
    if (value.find_first_of("*?") != std::string::npos) {
      return StrCat("; of files with other endings '@", value, "' is the bytes");
    }
    return "";
  }

  /// Whether an array of so many rows is to be cut: not when the tensor wants all of them.
  bool IsCut(const Shape& shape) const {
    if (batch_ == 0 || shape.rank() == 0) return false;
    const bool wants_all = shape_.rank() > 0 && shape_.dim(0) == shape.dim(0);
    return !wants_all || shape.dim(0) == batch_;
  }

  FoundValue Found(Tensor all) const {
    return IsCut(all.shape()) ? Rows(std::make_unique<TensorRowSource>(std::move(all)))
                              : Whole(std::move(all));
  }

  StatusOr<FoundValue> ReadNpyFile(const std::string& path) const {
    if (batch_ > 0) {
      auto rows = NpyRows::Open(path);
      // A scalar has no rows, and is the same in each step.
      if (rows.ok() && IsCut(rows->shape())) {
        return Rows(std::make_unique<NpyRowSource>(*std::move(rows)));
      }
    }
    TENON_ASSIGN_OR_RETURN(Tensor value, ReadNpy(path));
    return Found(std::move(value));
  }

  /// The path and the key of "FILE.npz:KEY" or "FILE.npz"; no path for what is no archive.
  static std::pair<std::string, std::string> SplitKey(const std::string& value) {
    if (const size_t npz = value.find(".npz:"); npz != std::string::npos) {
      return {value.substr(0, npz + 4), value.substr(npz + 5)};
    }
    return {value.ends_with(".npz") ? value : "", ""};
  }

  StatusOr<Tensor> ReadNpz(const std::string& path, std::string key) const {
    TENON_ASSIGN_OR_RETURN(const NpzReader reader, NpzReader::Open(path));
    const std::vector<std::string> names = reader.names();
    if (key.empty()) {
      key = feed_.label;
      const bool named = std::find(names.begin(), names.end(), key) != names.end();
      if (!named && names.size() != 1) {
        return NotFound("'", path, "' has ", names.size(), " arrays, wanted one, or one called '",
                        key, "'; choose: ", path, ":KEY, of ", Join(names, ", "));
      }
      if (!named) key = names[0];
    }
    return reader.Read(key);
  }

  Status CheckIsString(const std::string& path) const {
    if (dtype_ == DType::kString) return OkStatus();
    return InvalidArgument("'@", path, "' is the bytes of a file, a string; wanted ",
                           ToString(dtype_));
  }

  StatusOr<FoundValue> ReadBytes(const std::string& path) const {
    TENON_RETURN_IF_ERROR(CheckIsString(path));
    TENON_ASSIGN_OR_RETURN(std::string bytes, ReadFileToString(path));
    return Whole(Tensor::Scalar(std::move(bytes)));
  }

  StatusOr<std::unique_ptr<TextRows>> OpenText(const std::string& path) const {
    TENON_ASSIGN_OR_RETURN(std::unique_ptr<ByteSource> source, OpenTextSource(path));
    return MakeText(std::move(source), StrCat("'", path, "'"));
  }
  std::unique_ptr<TextRows> MakeText(std::unique_ptr<ByteSource> source, std::string name) const {
    return std::make_unique<TextRows>(std::move(source), std::move(name), dtype_, shape_);
  }

  StatusOr<FoundValue> ReadText(std::unique_ptr<TextRows> rows) const {
    if (batch_ > 0) return Rows(std::make_unique<TextRowSource>(std::move(rows)));
    TENON_ASSIGN_OR_RETURN(Tensor value, rows->All());
    return Whole(std::move(value));
  }

  StatusOr<FoundValue> ReadRows(std::unique_ptr<RowSource> rows) const {
    if (batch_ > 0) return Rows(std::move(rows));
    TENON_ASSIGN_OR_RETURN(Tensor all, rows->Next(INT64_MAX));
    // One image is all that a tensor without a dimension for rows wants.
    const bool is_one = all.dim(0) == 1 && shape_.rank_known() && shape_.rank() + 1 == all.rank();
    if (!is_one) return Whole(std::move(all));
    TENON_ASSIGN_OR_RETURN(Tensor row, all.Reshaped(all.shape().WithoutDim(0)));
    return Whole(std::move(row));
  }

  /// The rows of one of several files.
  StatusOr<std::unique_ptr<RowSource>> OpenRows(const std::string& file) const {
    if (file.starts_with('@')) {
      TENON_ASSIGN_OR_RETURN(std::string bytes, ReadFileToString(file.substr(1)));
      return std::make_unique<TensorRowSource>(Tensor::Vector({TString(std::move(bytes))}));
    }
    if (file.ends_with(".npy")) {
      TENON_ASSIGN_OR_RETURN(NpyRows rows, NpyRows::Open(file));
      return std::make_unique<NpyRowSource>(std::move(rows));
    }
    if (const auto [path, key] = SplitKey(file); !path.empty()) {
      TENON_ASSIGN_OR_RETURN(Tensor array, ReadNpz(path, key));
      if (array.rank() == 0) return InvalidArgument("'", file, "' is a scalar, which has no rows");
      return std::make_unique<TensorRowSource>(std::move(array));
    }
    TENON_ASSIGN_OR_RETURN(std::unique_ptr<RowSource> file_rows,
                           OpenFileRows(file, dtype_, shape_));
    if (file_rows != nullptr) return file_rows;
    TENON_ASSIGN_OR_RETURN(std::unique_ptr<TextRows> rows, OpenText(file));
    return std::make_unique<TextRowSource>(std::move(rows));
  }

  static std::string PathOf(const std::string& file) {
    if (const auto column = SplitCsvColumn(file)) return column->first;
    return SplitKey(file).first.empty() ? file : SplitKey(file).first;
  }

  /// How many rows the files have, -1 when only reading them tells. The headers of arrays are
  /// compared before anything runs.
  StatusOr<int64_t> CountRows(const std::vector<std::string>& files) const {
    int64_t total = 0;
    std::optional<std::pair<std::string, Shape>> first;
    for (const std::string& file : files) {
      int64_t count = -1;
      if (file.starts_with('@')) {
        TENON_RETURN_IF_ERROR(CheckIsString(file.substr(1)));
        count = 1;
      } else if (file.ends_with(".npy")) {
        TENON_ASSIGN_OR_RETURN(const NpyRows rows, NpyRows::Open(file));
        count = rows.shape().dim(0);
        const Shape row(rows.shape().dims().subspan(1));
        if (!first && count > 0) first.emplace(file, row);
        if (count > 0 && batch_ != 1) {
          TENON_RETURN_IF_ERROR(CheckRowShape(file, row, first->first, first->second));
        }
      } else if (const std::string path = PathOf(file); !FileExists(path)) {
        return NotFound("cannot open '", path, "': No such file or directory");
      } else if (IsImageFile(file)) {
        count = 1;
      }
      total = total < 0 || count < 0 ? -1 : total + count;
    }
    return total;
  }

  StatusOr<FoundValue> ReadFiles(const std::vector<std::string>& files) const {
    TENON_ASSIGN_OR_RETURN(const int64_t count, CountRows(files));
    const bool wants_one = shape_.rank_known() && shape_.rank() == 0;
    if (wants_one && batch_ != 1) {
      return InvalidArgument(files.size(),
                             " files have rows, wanted one value of shape [], a "
                             "scalar; --batch 1 runs a step for each of the rows");
    }
    const auto open = [self = *this](const std::string& file) { return self.OpenRows(file); };
    auto rows = std::make_unique<FileListRows>(files, open, dtype_, count);
    if (batch_ > 0 && (count < 0 || IsCut(Shape({count})))) return Rows(std::move(rows));
    TENON_ASSIGN_OR_RETURN(Tensor value, rows->Next(INT64_MAX));
    if (value.dim(0) == 0)
      return InvalidArgument(Plural(static_cast<int64_t>(files.size()), "file has", "files have"),
                             " no rows");
    return Whole(std::move(value));
  }

  StatusOr<FoundValue> ReadStandardInput() const {
    auto input = std::make_unique<StandardInput>();
    TENON_RETURN_IF_ERROR(input->Peek());
    const std::string_view head = input->head();
    if (head.empty() && batch_ == 0) return InvalidArgument(kStandardInput, " is empty");
    if (head.starts_with("PK\x03\x04")) {
      return InvalidArgument(kStandardInput,
                             " is an archive, such as an .npz file; wanted its name, as the "
                             "list of what it holds is at its end");
    }
    if (head.starts_with(kNpyStart)) {
      if (batch_ > 0) {
        TENON_ASSIGN_OR_RETURN(NpyRows rows, NpyRows::FromStream(std::move(input), kStandardInput));
        return Rows(std::make_unique<NpyRowSource>(std::move(rows)));
      }
      TENON_ASSIGN_OR_RETURN(const std::string all, ReadAll(*input));
      auto value = ParseNpy(all);
      if (!value.ok()) return Annotate(value.status(), kStandardInput);
      return Whole(*std::move(value));
    }
    const size_t first = head.find_first_not_of(" \t\r\n");
    if (first != std::string_view::npos && (head[first] == '[' || head[first] == '"')) {
      TENON_ASSIGN_OR_RETURN(const std::string all, ReadAll(*input));
      auto value = ReadLiteral(all, dtype_);
      if (!value.ok()) return Annotate(value.status(), kStandardInput);
      return Found(*std::move(value));
    }
    return ReadText(MakeText(std::move(input), kStandardInput));
  }

  const FeedText feed_;
  const DType dtype_;
  const PartialShape shape_;
  const int64_t batch_;
};

Status CheckFedOnce(const std::vector<FeedText>& feeds, const Graph& graph) {
  std::map<std::pair<const Node*, int>, const FeedText*> fed;
  for (const FeedText& feed : feeds) {
    TENON_ASSIGN_OR_RETURN(const Endpoint tensor,
                           FindTensor(graph, feed.tensor, "--feed " + feed.label));
    const auto [at, is_new] = fed.try_emplace({tensor.node, tensor.index}, &feed);
    if (is_new) continue;
    const std::string& before = at->second->label;
    return WrongUsage(
        StrCat("--feed ", feed.label, before == feed.label ? " is given twice" : " and --feed ",
               before == feed.label ? "" : before, before == feed.label ? "" : " are one tensor",
               ", wanted once: found ", at->second->value, " and ", feed.value,
               "; the rows of several files are joined by commas, as in --feed ", before,
               "=a.npy,b.npy, or a pattern: --feed '", before, "=*.npy'"));
  }
  return OkStatus();
}

}  // namespace

StatusOr<FeedInputs> FeedInputs::Open(const std::vector<FeedText>& feeds, const Graph& graph,
                                      int64_t batch) {
  FeedInputs inputs;
  inputs.batch_ = batch;
  const auto from_input = std::count_if(feeds.begin(), feeds.end(),
                                        [](const FeedText& feed) { return feed.value == "-"; });
  if (from_input > 1) return WrongUsage("only one --feed can be the standard input");
  TENON_RETURN_IF_ERROR(CheckFedOnce(feeds, graph));
  for (const FeedText& feed : feeds) {
    const std::string flag = "--feed " + feed.label;
    TENON_ASSIGN_OR_RETURN(const Endpoint tensor, FindTensor(graph, feed.tensor, flag));
    auto found = ValueReader(feed, tensor, batch).Read();
    if (!found.ok()) return Annotate(found.status(), flag);
    const DType dtype = BaseType(tensor.node->output_type(tensor.index));
    const PartialShape& shape = tensor.node->output_shape(tensor.index);
    if (found->rows == nullptr) {
      auto value = ConvertNumbers(found->value, dtype);
      if (!value.ok()) return Annotate(value.status(), StrCat(flag, ": '", feed.value, "'"));
      found->value = *std::move(value);
    }
    const bool is_scalar = shape.rank_known() && shape.rank() == 0;
    inputs.feeds_.push_back({feed.label, feed.tensor, dtype, is_scalar, std::move(found->value),
                             std::move(found->rows)});
  }
  if (batch > 0) TENON_RETURN_IF_ERROR(inputs.CheckRows());
  return inputs;
}

Status FeedInputs::CheckRows() {
  const Feed* first = nullptr;
  bool any = false;
  for (const Feed& feed : feeds_) {
    any |= feed.rows != nullptr;
    if (feed.rows == nullptr || feed.rows->num_rows() < 0) continue;
    if (first == nullptr) {
      first = &feed;
    } else if (feed.rows->num_rows() != first->rows->num_rows()) {
      return InvalidArgument("--batch: --feed ", first->label, " has ", first->rows->num_rows(),
                             " rows and --feed ", feed.label, " has ", feed.rows->num_rows(),
                             ", wanted as many");
    }
  }
  if (!any) return WrongUsage("--batch cuts feeds from files into rows, of which there is none");
  if (first != nullptr) num_rows_ = first->rows->num_rows();
  return OkStatus();
}

std::string FeedInputs::LastFiles() const {
  std::vector<std::string> texts;
  for (const Feed& feed : feeds_) {
    if (feed.rows == nullptr || feed.rows->LastFiles().empty()) continue;
    constexpr size_t kMost = 4;
    std::vector<std::string> files;
    for (const auto& [file, rows] : feed.rows->LastFiles()) files.push_back(file);
    if (files.size() > kMost) files = {files[0], files[1], "...", files.back()};
    texts.push_back(StrCat(feed.label, " from ", Join(files, ", ")));
  }
  return Join(texts, "; ");
}

const FeedInputs::Feed* FeedInputs::FilesFeed() const {
  for (const Feed& feed : feeds_) {
    if (feed.rows != nullptr && !feed.rows->LastFiles().empty()) return &feed;
  }
  return nullptr;
}

Tensor FeedInputs::FilesOfRows() const {
  std::vector<std::string> files;
  for (const auto& [file, rows] : FilesFeed()->rows->LastFiles()) {
    files.insert(files.end(), static_cast<size_t>(rows), file);
  }
  return Tensor::Vector(files);
}

std::vector<std::string> FeedInputs::tensors() const {
  std::vector<std::string> names;
  for (const Feed& feed : feeds_) names.push_back(feed.tensor);
  return names;
}

Status FeedInputs::Next(std::vector<Tensor>* values, int64_t* rows) {
  values->clear();
  *rows = 0;
  const Feed* first = nullptr;
  for (Feed& feed : feeds_) {
    if (feed.rows == nullptr) {
      values->push_back(feed.value);
      continue;
    }
    const std::string flag = "--feed " + feed.label;
    auto piece = feed.rows->Next(batch_);
    if (!piece.ok()) return Annotate(piece.status(), flag);
    if (first == nullptr) {
      first = &feed;
      *rows = piece->dim(0);
    } else if (piece->dim(0) != *rows) {
      return InvalidArgument("--batch: after ", done_, " rows --feed ", first->label, " has ",
                             *rows, " more, and ", flag, " ", piece->dim(0));
    }
    auto value = ConvertNumbers(*piece, feed.dtype);
    // A feed that takes one value gets a scalar in each step of a row.
    if (value.ok() && feed.is_scalar && value->num_elements() == 1) {
      value = value->Reshaped(Shape());
    }
    if (!value.ok()) return Annotate(value.status(), flag);
    values->push_back(*std::move(value));
  }
  done_ += *rows;
  return OkStatus();
}

}  // namespace tenon::tools
