// SPDX-License-Identifier: Apache-2.0
#include "core/base/closest_name.h"

#include <algorithm>
#include <cctype>

#include "core/base/strings.h"

namespace tenon {
namespace {

/// Longer words are not compared: it takes the product of both lengths.
constexpr size_t kMaxLength = 100;
constexpr size_t kShownNames = 10;

std::string Simplified(std::string_view word) {
  std::string simple;
  for (const char c : word.substr(0, kMaxLength)) {
    simple += c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return simple;
}

/// How many letters must be changed, added, left out or exchanged with the next one.
size_t Distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::string ClosestName(std::string_view word, const std::vector<std::string>& names) {
  const std::string wanted = Simplified(word);
  std::string closest;
  size_t best = wanted.size() / 3 + 2;  // from here on it is another word
  for (const std::string& name : names) {
    const std::string known = Simplified(name);
    // Words differ by the difference of their lengths at least.
    if (std::max(known.size(), wanted.size()) - std::min(known.size(), wanted.size()) > best)
      continue;
    const size_t distance = Distance(wanted, known);
    // A name that the word is the beginning of comes before others that are as near.
    const bool is_nearer =
        distance < best || (distance == best && !closest.empty() && known.starts_with(wanted) &&
                            !Simplified(closest).starts_with(wanted));
    if (is_nearer && distance < name.size()) {
      best = distance;
      closest = name;
    }
  }
  return closest;
}

std::string DidYouMean(std::string_view word, const std::vector<std::string>& names) {
  const std::string closest = ClosestName(word, names);
  return closest.empty() ? "" : StrCat("; did you mean ", closest, "?");
}

std::string DidYouMeanOrNames(std::string_view word, const std::vector<std::string>& names) {
  const std::string closest = ClosestName(word, names);
  if (!closest.empty()) return StrCat("; did you mean '", closest, "'?");
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(names.size(), kShownNames); ++i) {
    shown.push_back(names[i].substr(0, kMaxLength));
  }
  if (names.size() > kShownNames) shown.push_back(StrCat(names.size() - kShownNames, " more"));
  if (shown.size() == 1) return StrCat("; the only one is '", shown[0], "'");
  return StrCat("; there are ", Join(shown, ", "));
}

}  // namespace tenon
