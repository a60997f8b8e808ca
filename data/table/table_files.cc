// SPDX-License-Identifier: Apache-2.0
#include "data/table/table_files.h"

#include <algorithm>

#include "core/base/hash_map.h"
#include "core/base/strings.h"
#include "data/files/match_files.h"
#include "data/files/standard_input.h"

namespace tenon {
namespace {

constexpr std::string_view kStandardInput = "-";

/// How a text is compressed whose file is open.
StatusOr<Compression> CompressionOf(const InputFile& file) {
  char head[4];
  TENON_ASSIGN_OR_RETURN(const size_t size, file.ReadAt(0, sizeof(head), head));
  return DetectTextCompression({head, size});
}

StatusOr<TableFile> LookAt(const std::string& path, const FileInfo& info,
                           const FileContext& context) {
  TENON_ASSIGN_OR_RETURN(const std::unique_ptr<InputFile> file, OpenInput(path, context));
  TENON_ASSIGN_OR_RETURN(const Compression compression, CompressionOf(*file));
  return TableFile{path, info.size, info.modified_at, compression != Compression::kNone};
}

StatusOr<TableFile> TakeStandardInput(const FileContext& context) {
  TENON_RETURN_IF_ERROR(KeepStandardInput(context));
  TENON_ASSIGN_OR_RETURN(const std::unique_ptr<InputFile> file, OpenStandardInput());
  TENON_ASSIGN_OR_RETURN(const Compression compression, CompressionOf(*file));
  return TableFile{
      std::string(kStandardInput), file->size(), {}, compression != Compression::kNone};
}

/// Opens a file that is as it was.
StatusOr<std::unique_ptr<InputFile>> OpenUnchanged(const TableFile& file,
                                                   const FileContext& context) {
  std::unique_ptr<InputFile> opened;
  int64_t size;
  Clock::WallTime modified_at;
  if (file.path == kStandardInput && context.files == &AllFiles()) {
    TENON_ASSIGN_OR_RETURN(opened, OpenStandardInput());
    size = opened->size();
  } else {
    TENON_ASSIGN_OR_RETURN(const FileInfo info, StatFile(file.path, context));
    size = info.size;
    modified_at = info.modified_at;
    TENON_ASSIGN_OR_RETURN(opened, OpenInput(file.path, context));
  }
  if (size == file.size && modified_at == file.modified_at) return opened;
  return FailedPrecondition(
      "the file ", ShownFile(file), " was changed while the table was read: ", "found ", size,
      " bytes, wanted ", file.size, size == file.size ? ", and the same time" : "");
}

}  // namespace

StatusOr<std::vector<TableFile>> FindTableFiles(const std::vector<std::string>& patterns,
                                                const FileContext& context) {
  std::vector<TableFile> files;
  if (context.files == &AllFiles() &&
      std::find(patterns.begin(), patterns.end(), kStandardInput) != patterns.end()) {
    if (patterns.size() > 1) {
      return InvalidArgument("found '-', the standard input, among ", patterns.size(),
                             " files, wanted it alone: it is a table of its own");
    }
    TENON_ASSIGN_OR_RETURN(TableFile file, TakeStandardInput(context));
    files.push_back(std::move(file));
    return files;
  }
  StringMap<std::string> seen;  // the paths, by what tells files apart
  for (const std::string& pattern : patterns) {
    // A file may have a name that looks like a pattern.
    std::vector<std::string> paths = {pattern};
    const Status is_there = StatFile(pattern, context).status();
    if (!is_there.ok()) {
      TENON_ASSIGN_OR_RETURN(paths, MatchFiles(pattern, context));
    }
    if (paths.empty()) {
      const bool is_elsewhere = !SchemeOf(pattern).empty() && !IsFilePattern(pattern);
      if (is_elsewhere) return is_there;  // the server says more than that
      return NotFound(IsFilePattern(pattern) ? "no file matches '" : "there is no file '", pattern,
                      "'");
    }
    for (const std::string& path : paths) {
      TENON_ASSIGN_OR_RETURN(const FileInfo info, StatFile(path, context));
      const auto [other, is_new] =
          seen.try_emplace(info.identity.empty() ? path : info.identity, path);
      if (!is_new) {
        return InvalidArgument(
            "the file '", path, "' comes twice",
            other->second == path ? "" : StrCat(", also as '", other->second, "'"));
      }
      TENON_ASSIGN_OR_RETURN(TableFile file, LookAt(path, info, context));
      files.push_back(std::move(file));
    }
  }
  return files;
}

std::string ShownFile(const TableFile& file) {
  return file.path == kStandardInput ? "'standard input'" : StrCat("'", file.path, "'");
}

std::vector<TableUnit> CutIntoUnits(const std::vector<TableFile>& files, int64_t bytes) {
  std::vector<TableUnit> units;
  for (size_t f = 0; f < files.size(); ++f) {
    const auto file = static_cast<int64_t>(f);
    const int64_t size = files[f].size;
    // A last unit of a few bytes is not worth its own work.
    const int64_t count = files[f].compressed ? 1 : std::max<int64_t>(size / bytes, 1);
    for (int64_t u = 0; u < count && size > 0; ++u) {
      units.push_back({file, u * bytes, u + 1 == count ? size : (u + 1) * bytes});
    }
  }
  return units;
}

StatusOr<std::unique_ptr<TextPieces>> OpenUnit(const TableFile& file, const TableUnit& unit,
                                               std::optional<TextState> state,
                                               const TableFormat& format,
                                               const FileContext& context) {
  TENON_ASSIGN_OR_RETURN(std::unique_ptr<InputFile> bytes, OpenUnchanged(file, context));
  std::optional<char> before;
  if (unit.begin > 0) {
    char c;
    TENON_ASSIGN_OR_RETURN(const size_t size, bytes->ReadAt(unit.begin - 1, 1, &c));
    if (size == 1) before = c;
  }
  Compression compression = Compression::kNone;
  if (file.compressed) {
    TENON_ASSIGN_OR_RETURN(compression, CompressionOf(*bytes));
  }
  auto source = MakeSource(std::move(bytes), compression, unit.begin);
  return std::make_unique<TextPieces>(std::move(source), before, state, format);
}

}  // namespace tenon
