// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/graph/graph.h"
#include "train/feature_columns/weight_row.h"

namespace tenon {

/// The words that a lookup table of a graph numbers from 0 on.
struct Vocabulary {
  std::vector<std::string> words;
  std::string file;          // which has them; empty where the graph has
  int64_t default_row = -1;  // what words of no vocabulary get
};

/// The vocabulary of a lookup; an error where it numbers words in another way, or the file is not
/// there or too short.
StatusOr<Vocabulary> VocabularyOf(const Node& lookup, const FindVocabulary& find);

}  // namespace tenon
