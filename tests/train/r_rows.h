// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "tests/data/sample_files.h"

// Values that R wrote: lines of fields between tabs.

namespace tenon {

/// The lines of tests/data/glm/`name` but the comments, cut at tabs.
inline std::vector<std::vector<std::string>> ReadRRows(const std::string& name) {
  std::vector<std::vector<std::string>> rows;
  const std::string content = ContentOf(SamplePath("glm/" + name));
  for (const absl::string_view line : absl::StrSplit(content, '\n', absl::SkipEmpty())) {
    if (line[0] != '#') rows.push_back(absl::StrSplit(line, '\t'));
  }
  return rows;
}

/// NaN for NA.
inline double RNumber(const std::string& text) {
  double value = std::numeric_limits<double>::quiet_NaN();
  if (text != "NA") EXPECT_TRUE(absl::SimpleAtod(text, &value)) << text;
  return value;
}

/// Whether `a` is `b` within a part of it; two NaN are alike.
inline bool IsWithin(double a, double b, double part) {
  return (std::isnan(a) && std::isnan(b)) || a == b || std::abs(a - b) <= part * std::abs(b);
}

}  // namespace tenon
