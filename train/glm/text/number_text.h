// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

// Numbers and names as a table for people shows them.

namespace tenon {

/// "261,876".
std::string CountText(int64_t count);
/// With so many decimals, and commas between thousands: "286,969.0"; "NA" for NaN.
std::string FixedText(double value, int decimals);
/// "16.2 MB".
std::string BytesText(int64_t bytes);
/// "1.74e-12", "0.184", "< 2e-16" below what R's summary shows, "NA".
std::string PValueText(double p);
/// With so many significant digits, but no more than `most_decimals`, and commas between thousands;
/// with a power of ten where it is very large or small.
std::string SignificantText(double value, int digits, int most_decimals);

/// The power of ten of the first of `digits` significant digits of a finite value that is not 0,
/// after rounding: 0 for 1 to 9.99, and 1 for 9.999 with three digits.
int LeadingPower(double value, int digits);

/// How an estimate is shown: as far as its standard error has `digits` significant digits, as
/// further ones are noise.
class EstimateDigits {
 public:
  /// A standard error that is not there, or 0, leaves the estimate's own first digits.
  EstimateDigits(double estimate, double standard_error, int digits);
  /// The estimate, its error or a bound; with `fewer` digits than these.
  std::string Text(double value, int fewer = 0) const;

 private:
  bool is_fixed_;
  int decimals_;  // fixed; else those of the estimate's first digit
  int power_;     // of the last digit shown
};

/// The columns of a terminal that a text takes. Characters that have no width there, such as
/// accents to be combined, take none, and those of East Asia two.
int64_t WidthOf(std::string_view text);
/// A text for a terminal: what is no UTF-8, or would move the cursor, is replaced by U+FFFD.
std::string ShownText(std::string_view text);
/// A shown text with "…" for its middle where it is wider than `width`, which is at least 3.
std::string CutInMiddle(std::string_view text, int64_t width);

}  // namespace tenon
