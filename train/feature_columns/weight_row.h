// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace tenon {

/// The meaning of a row of a weight matrix.
enum class WeightRowKind {
  kNumber,           // the weight of a number, or of an element of several
  kCategory,         // a word of a vocabulary, or the category of that number
  kOutOfVocabulary,  // one of the buckets of all other words
  kInterval,         // between two boundaries
  kHashBucket,       // all that has the same hash
  kUnnamed,          // the graph does not say
};

/// "number", "category", "out of vocabulary", "interval", "hash bucket", "unnamed".
std::string_view ToString(WeightRowKind kind);

struct WeightRow {
  std::string level;  // "UA", "[6, 9)", "bucket 17 of 1,000", "row 3"; empty for a single number
  WeightRowKind kind = WeightRowKind::kUnnamed;
};

struct WeightRows {
  std::vector<WeightRow> rows;
  std::string why_unnamed;  // empty where the rows have names
  std::string file;         // the vocabulary's, where a file has it
};

/// A vocabulary's text and where it was found.
struct VocabularyFile {
  std::string path;
  std::string text;
};
/// Finds the vocabulary file that a graph names so.
using FindVocabulary = std::function<StatusOr<VocabularyFile>(const std::string& name)>;

/// Rows by number, with the reason.
WeightRows UnnamedRows(int64_t count, std::string why);

}  // namespace tenon
