// SPDX-License-Identifier: Apache-2.0
#include "tools/run/file_lists.h"

#include <absl/strings/str_split.h>
#include <glob.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "data/batch/batch.h"
#include "data/files/file.h"
#include "data/files/match_files.h"
#include "tools/run/file_rows.h"
#include "tools/run/row_maker.h"
#include "tools/run/values.h"

namespace tenon::tools {
namespace {

bool EndsWithAny(std::string_view text, std::initializer_list<std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(),
                     [&](std::string_view ending) { return text.ends_with(ending); });
}

/// "@PATH", "PATH.npz:KEY" or "PATH" taken apart.
struct FileText {
  std::string before, path, after;
};

/// Nothing for what is no file.
std::optional<FileText> SplitFile(std::string_view value) {
  if (value.starts_with('@')) return FileText{"@", std::string(value.substr(1)), ""};
  constexpr std::string_view kOfArchive = ".npz:";
  if (const size_t npz = value.find(kOfArchive); npz != std::string_view::npos) {
    const size_t end = npz + kOfArchive.size() - 1;
    return FileText{"", std::string(value.substr(0, end)), std::string(value.substr(end))};
  }
  if (const auto column = SplitCsvColumn(value)) {
    return FileText{"", column->first, StrCat(":", column->second)};
  }
  if (!EndsWithAny(value, {".npy", ".npz"}) && !IsTextFile(value) && !IsImageFile(value) &&
      !IsRecordFile(value)) {
    return std::nullopt;
  }
  return FileText{"", std::string(value), ""};
}

bool IsPattern(const std::string& path) {
  return path.find_first_of("*?[") != std::string::npos && !FileExists(path);
}

Status NothingMatches(const std::string& pattern) {
  const bool is_list = pattern.find(',') != std::string::npos;
  return NotFound("no file matches '", pattern, "'",
                  is_list ? "; of several files after commas each has its @ or its ending" : "");
}

StatusOr<std::vector<std::string>> Matches(const std::string& pattern) {
  if (!SchemeOf(pattern).empty()) {
    TENON_ASSIGN_OR_RETURN(std::vector<std::string> matches, MatchFiles(pattern));
    if (matches.empty()) return NothingMatches(pattern);
    return matches;
  }
  glob_t found = {};
  // In a folder that is not there nothing matches; one that cannot be read might have something.
  const auto is_grave = [](const char*, int error) { return int{error != ENOENT}; };
  const int code = glob(pattern.c_str(), 0, is_grave, &found);
  std::vector<std::string> paths(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  if (code == 0) return paths;
  if (code == GLOB_NOMATCH) return NothingMatches(pattern);
  if (code == GLOB_NOSPACE) return ResourceExhausted("too many files match '", pattern, "'");
  return Unavailable("cannot read a folder of '", pattern, "'");
}

}  // namespace

bool IsTextFile(std::string_view value) {
  return EndsWithAny(value, {".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz"});
}

StatusOr<std::optional<std::vector<std::string>>> ListFiles(const std::string& value) {
  const std::optional<FileText> whole = SplitFile(value);
  if (!whole) return std::nullopt;
  // A comma in the name of an existing file separates nothing; one behind a key or column may.
  const bool may_be_list = whole->after.find(',') != std::string::npos;
  if (FileExists(whole->path) && !may_be_list) return std::nullopt;
  std::vector<FileText> parts;
  for (const auto& part : absl::StrSplit(ToAbsl(value), ',')) {
    const std::optional<FileText> file = SplitFile(std::string(part));
    if (!file) break;
    parts.push_back(*file);
  }
  const auto commas = static_cast<size_t>(std::count(value.begin(), value.end(), ','));
  if (parts.size() != commas + 1) parts = {*whole};  // the comma is one of a name
  if (parts.size() == 1 && !IsPattern(parts[0].path)) return std::nullopt;
  std::vector<std::string> files;
  for (const FileText& part : parts) {
    std::vector<std::string> paths = {part.path};
    if (IsPattern(part.path)) {
      TENON_ASSIGN_OR_RETURN(paths, Matches(part.path));
    }
    for (const std::string& path : paths) files.push_back(StrCat(part.before, path, part.after));
  }
  return files;
}

StatusOr<std::vector<std::string>> PathsOf(const std::string& value) {
  TENON_ASSIGN_OR_RETURN(const auto files, ListFiles(value));
  std::vector<std::string> paths;
  for (const std::string& file : files ? *files : std::vector<std::string>{value}) {
    const std::optional<FileText> text = SplitFile(file);
    paths.push_back(text ? text->path : file);
  }
  return paths;
}

Status CheckRowShape(const std::string& file, const Shape& found, const std::string& first,
                     const Shape& wanted) {
  if (found == wanted) return OkStatus();
  return InvalidArgument("'", file, "' has rows of ", found, ", wanted ", wanted, " as '", first,
                         "' has; with --batch 1 each row has a step of its own");
}

StatusOr<Tensor> FileListRows::Next(int64_t most) {
  std::vector<Tensor> pieces;
  last_.clear();
  if (most == 1) first_.clear();  // one row goes with no other
  while (most > 0 && at_ < files_.size()) {
    const std::string& file = files_[at_];
    if (rows_ == nullptr) {
      TENON_ASSIGN_OR_RETURN(rows_, open_(file));
    }
    TENON_ASSIGN_OR_RETURN(const Tensor found, rows_->Next(most));
    auto piece = ConvertNumbers(found, dtype_);
    if (!piece.ok()) return Annotate(piece.status(), StrCat("'", file, "'"));
    if (piece->dim(0) < most) {
      rows_ = nullptr;
      ++at_;
    }
    // What has no rows may not know their shape.
    none_ = piece->Slice(0, 0);
    if (piece->dim(0) == 0) continue;
    const Shape row(piece->shape().dims().subspan(1));
    if (first_.empty()) {
      first_ = file;
      row_ = row;
    }
    TENON_RETURN_IF_ERROR(CheckRowShape(file, row, first_, row_));
    most -= piece->dim(0);
    const std::optional<FileText> text = SplitFile(file);
    last_.emplace_back(text ? text->path : file, piece->dim(0));
    pieces.push_back(*std::move(piece));
  }
  return pieces.empty() ? none_ : ConcatenateRows(pieces, "a batch");
}

}  // namespace tenon::tools
