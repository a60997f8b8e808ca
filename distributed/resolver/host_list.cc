// SPDX-License-Identifier: Apache-2.0
#include "distributed/resolver/host_list.h"

#include <charconv>

#include "core/base/strings.h"

namespace tenon {
namespace {

constexpr size_t kMostHosts = 65536;

Status CannotRead(std::string_view part, std::string_view list) {
  return InvalidArgument("cannot read '", part, "' of the list '", list, "'");
}

bool ParseNumber(std::string_view text, int* out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return error == std::errc() && end == text.data() + text.size() && *out >= 0;
}

/// The parts between commas that stand in no brackets.
std::vector<std::string_view> PartsOf(std::string_view list) {
  std::vector<std::string_view> parts;
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i <= list.size(); ++i) {
    if (i < list.size() && list[i] == '[') ++depth;
    if (i < list.size() && list[i] == ']') --depth;
    if (i < list.size() && (list[i] != ',' || depth != 0)) continue;
    parts.push_back(list.substr(begin, i - begin));
    begin = i + 1;
  }
  return parts;
}

/// Appends the texts of what stands between brackets: "01-03,7".
bool ExpandRanges(std::string_view ranges, std::vector<std::string>* texts) {
  for (const std::string_view range : PartsOf(ranges)) {
    const size_t dash = range.find('-');
    const std::string_view first = range.substr(0, dash);
    const std::string_view last = dash == std::string_view::npos ? first : range.substr(dash + 1);
    int begin = 0, end = 0;
    if (!ParseNumber(first, &begin) || !ParseNumber(last, &end) || end < begin) return false;
    if (static_cast<size_t>(end - begin) >= kMostHosts - texts->size()) return false;
    for (int n = begin; n <= end; ++n) {
      std::string digits = StrCat(n);
      if (digits.size() < first.size()) digits.insert(0, first.size() - digits.size(), '0');
      texts->push_back(std::move(digits));
    }
  }
  return true;
}

}  // namespace

StatusOr<std::vector<std::string>> ExpandHostList(std::string_view list) {
  std::vector<std::string> hosts;
  for (const std::string_view part : PartsOf(list)) {
    std::vector<std::string> own = {""};
    std::string_view rest = part;
    while (!rest.empty()) {
      const size_t open = rest.find('[');
      for (std::string& host : own) host += rest.substr(0, open);
      if (open == std::string_view::npos) break;
      const size_t close = rest.find(']', open);
      std::vector<std::string> texts;
      if (close == std::string_view::npos ||
          !ExpandRanges(rest.substr(open + 1, close - open - 1), &texts) ||
          own.size() * texts.size() > kMostHosts) {
        return CannotRead(part, list);
      }
      std::vector<std::string> longer;
      for (const std::string& host : own) {
        for (const std::string& text : texts) longer.push_back(host + text);
      }
      own = std::move(longer);
      rest.remove_prefix(close + 1);
    }
    const bool is_wrong = part.empty() || part.find_first_of(" \t;/") != std::string_view::npos ||
                          own[0].find(']') != std::string::npos;
    if (is_wrong || hosts.size() + own.size() > kMostHosts) return CannotRead(part, list);
    hosts.insert(hosts.end(), own.begin(), own.end());
  }
  return hosts;
}

StatusOr<std::vector<int>> ExpandCounts(std::string_view list) {
  std::vector<int> counts;
  for (const std::string_view part : PartsOf(list)) {
    const size_t open = part.find("(x");
    int count = 0, times = 1;
    bool is_read = ParseNumber(part.substr(0, open), &count);
    if (open != std::string_view::npos) {
      const std::string_view rest = part.substr(open + 2);
      is_read =
          is_read && rest.ends_with(')') && ParseNumber(rest.substr(0, rest.size() - 1), &times);
    }
    if (!is_read || counts.size() + static_cast<size_t>(times) > kMostHosts) {
      return CannotRead(part, list);
    }
    counts.insert(counts.end(), times, count);
  }
  return counts;
}

}  // namespace tenon
