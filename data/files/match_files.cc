// SPDX-License-Identifier: Apache-2.0
#include "data/files/match_files.h"

#include <fnmatch.h>

#include <algorithm>

namespace tenon {
namespace {

constexpr std::string_view kWildcards = "*?[\\";

/// Whether a name of the folder may lead to nothing, as symbolic links do.
bool MayDangle(const std::string& folder) {
  const std::string_view scheme = SchemeOf(folder);
  return scheme.empty() || scheme == "file";
}

/// Adds the files that match `folder` + `rest`, where only `rest` may have wildcards.
Status AddMatches(const std::string& folder, std::string_view rest, const FileContext& context,
                  std::vector<std::string>* found) {
  TENON_RETURN_IF_ERROR(context.CheckCancelled());
  const size_t wild = rest.find_first_of(kWildcards);
  if (wild == std::string_view::npos) {
    const std::string path = folder + std::string(rest);
    if (FileExists(path, context)) found->push_back(path);
    return OkStatus();
  }
  const size_t slash = rest.substr(0, wild).rfind('/');
  const size_t begin = slash == std::string_view::npos ? 0 : slash + 1;
  const size_t end = std::min(rest.find('/', wild), rest.size());
  const std::string base = folder + std::string(rest.substr(0, begin));
  const std::string pattern(rest.substr(begin, end - begin));
  const auto names = ListFolder(base.empty() ? "." : base, context);
  if (!names.ok()) {
    // A path that is no folder has nothing in it.
    const StatusCode code = names.status().code();
    const bool none = code == StatusCode::kNotFound || code == StatusCode::kFailedPrecondition ||
                      code == StatusCode::kInvalidArgument;
    return none ? OkStatus() : names.status();
  }
  for (const std::string& name : *names) {
    if (fnmatch(pattern.c_str(), name.c_str(), 0) != 0) continue;
    if (end == rest.size() && !MayDangle(base)) {
      // One request for each of ten thousand names would take minutes.
      found->push_back(base + name);
      continue;
    }
    TENON_RETURN_IF_ERROR(AddMatches(base + name, rest.substr(end), context, found));
  }
  return OkStatus();
}

}  // namespace

StatusOr<std::vector<std::string>> MatchFiles(std::string_view pattern,
                                              const FileContext& context) {
  std::vector<std::string> found;
  TENON_RETURN_IF_ERROR(AddMatches("", pattern, context, &found));
  std::sort(found.begin(), found.end());
  return found;
}

bool IsFilePattern(std::string_view text) {
  return text.find_first_of(kWildcards) != std::string_view::npos;
}

}  // namespace tenon
