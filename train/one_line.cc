// SPDX-License-Identifier: Apache-2.0
#include "train/one_line.h"

#include <algorithm>

namespace tenon {

std::string OneLine(std::string_view message) {
  std::string line(message.substr(0, message.find("\n\t [[{{node")));
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

}  // namespace tenon
