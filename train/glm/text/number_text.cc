// SPDX-License-Identifier: Apache-2.0
#include "train/glm/text/number_text.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "absl/strings/str_format.h"
#include "core/base/strings.h"

namespace tenon {
namespace {

/// R's format.pval has this limit, 2^-52.
constexpr double kLeastShownP = 2.220446049250313e-16;
/// Numbers with more decimals, or more digits before the point, have a power of ten instead.
constexpr int kMostDecimals = 8, kMostDigits = 12;

std::string WithCommas(std::string digits) {
  size_t begin = digits.starts_with('-') ? 1 : 0;
  size_t end = std::min(digits.find('.'), digits.size());
  while (end > begin + 3) digits.insert(end -= 3, ",");
  return digits;
}

/// A number without a value: "NA", "Inf" or "-Inf", as in R; else nothing.
std::string SpecialText(double value) {
  if (std::isnan(value)) return "NA";
  if (std::isinf(value)) return value > 0 ? "Inf" : "-Inf";
  return "";
}

/// A character, and where its bytes end. Bytes that are no UTF-8, and control characters, are
/// U+FFFD.
struct ShownCharacter {
  int32_t code;
  size_t end;
};

ShownCharacter CharacterAt(std::string_view text, size_t begin) {
  constexpr int32_t kReplacement = 0xFFFD;
  utf8proc_int32_t code = 0;
  const utf8proc_ssize_t size =
      utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + begin,
                       static_cast<utf8proc_ssize_t>(text.size() - begin), &code);
  if (size <= 0) return {kReplacement, begin + 1};
  const utf8proc_category_t category = utf8proc_category(code);
  const bool moves = category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_ZL ||
                     category == UTF8PROC_CATEGORY_ZP ||
                     // Marks that turn the direction of what follows them.
                     (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
  return {moves ? kReplacement : code, begin + static_cast<size_t>(size)};
}

}  // namespace

std::string CountText(int64_t count) { return WithCommas(StrCat(count)); }

std::string FixedText(double value, int decimals) {
  if (const std::string special = SpecialText(value); !special.empty()) return special;
  return WithCommas(absl::StrFormat("%.*f", decimals, value));
}

std::string BytesText(int64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {"KB", "MB", "GB", "TB", "PB"};
  if (bytes < 1000) return StrCat(bytes, " bytes");
  double value = static_cast<double>(bytes) / 1000;
  size_t unit = 0;
  for (; value >= 999.5 && unit + 1 < kUnits.size(); ++unit) value /= 1000;
  return absl::StrFormat("%.3g %s", value, kUnits[unit]);
}

int LeadingPower(double value, int digits) {
  const std::string text = absl::StrFormat("%.*e", digits - 1, std::abs(value));
  return std::atoi(text.c_str() + text.find('e') + 1);
}

std::string PValueText(double p) {
  constexpr int kDigits = 3;
  if (std::isnan(p)) return "NA";
  if (p < kLeastShownP) return "< 2e-16";
  const int power = LeadingPower(p, kDigits);
  if (power < -4) return absl::StrFormat("%.*e", kDigits - 1, p);
  return absl::StrFormat("%.*f", kDigits - 1 - std::min(power, -1), p);
}

std::string SignificantText(double value, int digits, int most_decimals) {
  if (const std::string special = SpecialText(value); !special.empty()) return special;
  if (value == 0) return FixedText(0, most_decimals);
  const int power = LeadingPower(value, digits);
  if (power < -most_decimals || power >= 7) return absl::StrFormat("%.*e", digits - 1, value);
  return FixedText(value, std::clamp(digits - 1 - power, 0, most_decimals));
}

EstimateDigits::EstimateDigits(double estimate, double standard_error, int digits) {
  constexpr int kWithoutError = 5;
  const bool has_error = std::isfinite(standard_error) && standard_error > 0;
  const double guide = has_error ? standard_error : estimate;
  const int guide_digits = has_error ? digits : kWithoutError;
  const bool is_nothing = !std::isfinite(guide) || guide == 0;
  power_ = is_nothing ? 1 - kWithoutError : LeadingPower(guide, guide_digits) - guide_digits + 1;
  decimals_ = std::max(0, -power_);
  const bool is_large = std::isfinite(estimate) && estimate != 0 &&
                        LeadingPower(estimate, kMostDigits) >= kMostDigits;
  is_fixed_ = decimals_ <= kMostDecimals && power_ < kMostDigits && !is_large;
}

std::string EstimateDigits::Text(double value, int fewer) const {
  if (const std::string special = SpecialText(value); !special.empty()) return special;
  if (is_fixed_) {
    std::string text = absl::StrFormat("%.*f", std::max(0, decimals_ - fewer), value);
    // The sign of a zero is that of digits which are not shown.
    const bool is_zero = text.find_first_of("123456789") == std::string::npos;
    return is_zero && text.starts_with('-') ? text.substr(1) : text;
  }
  constexpr int kLeastDigits = 3, kMostShown = 15;
  if (value == 0) return "0";
  const int digits = LeadingPower(value, kMostShown) - power_ - fewer;
  return absl::StrFormat("%.*e", std::clamp(digits, kLeastDigits - 1, kMostShown), value);
}

int64_t WidthOf(std::string_view text) {
  int64_t width = 0;
  for (size_t i = 0; i < text.size();) {
    const ShownCharacter c = CharacterAt(text, i);
    width += utf8proc_charwidth(c.code);
    i = c.end;
  }
  return width;
}

std::string ShownText(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const ShownCharacter c = CharacterAt(text, i);
    if (c.code == 0xFFFD) {
      out += "\xEF\xBF\xBD";
    } else {
      out += text.substr(i, c.end - i);
    }
    i = c.end;
  }
  return out;
}

std::string CutInMiddle(std::string_view text, int64_t width) {
  const std::string shown = ShownText(text);
  if (WidthOf(shown) <= width) return shown;
  std::vector<size_t> begins;
  for (size_t i = 0; i < shown.size(); i = CharacterAt(shown, i).end) begins.push_back(i);
  begins.push_back(shown.size());
  const auto width_of = [&](size_t from, size_t to) {
    return WidthOf(std::string_view(shown).substr(begins[from], begins[to] - begins[from]));
  };
  // The head has the larger half; what a wide character leaves of it is the tail's. A character of
  // no width belongs to the one before it.
  size_t head = 0, tail = begins.size() - 1;
  while (width_of(0, head + 1) <= width / 2) ++head;
  const int64_t rest = width - 1 - width_of(0, head);
  while (width_of(tail - 1, begins.size() - 1) <= rest) --tail;
  while (tail + 1 < begins.size() && width_of(tail, tail + 1) == 0) ++tail;
  return StrCat(shown.substr(0, begins[head]), "…", shown.substr(begins[tail]));
}

}  // namespace tenon
