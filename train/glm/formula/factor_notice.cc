// SPDX-License-Identifier: Apache-2.0
#include "train/glm/formula/factor_notice.h"

#include <cstdint>

#include "core/base/strings.h"
#include "data/csv/read_number.h"
#include "train/glm/text/number_text.h"

namespace tenon {

std::string FactorNotice(std::string_view column, const TableLevels& levels) {
  int64_t values = 0, others = 0;
  std::string_view other, code;
  for (size_t i = 0; i < levels.texts.size(); ++i) {
    const std::string& text = levels.texts[i];
    double number;
    values += levels.counts[i];
    if (!ReadFieldNumber(text, &number)) {
      if (others == 0) other = text;
      others += levels.counts[i];
    } else if (code.empty() && text.size() > 1 && text[0] == '0' && text[1] != '.') {
      code = text;
    }
  }
  if (2 * others > values || (others == 0 && code.empty())) return "";
  const std::string taken =
      StrCat(column, " is taken for a factor of ",
             CountText(static_cast<int64_t>(levels.texts.size())), " levels: ");
  if (others == 0) {
    return StrCat(taken, "numbers such as '", ShownText(code),
                  "' have a zero before them, as codes have");
  }
  return StrCat(taken, CountText(others), " of its ", CountText(values),
                others == 1 ? " values is no number: '" : " values are no numbers, such as '",
                ShownText(other), "'; --na takes a text for missing");
}

}  // namespace tenon
