// SPDX-License-Identifier: Apache-2.0
#include "data/http/url.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "core/base/strings.h"

namespace tenon {
namespace {

constexpr std::string_view kSchemeMark = "://";

std::string EncodedBut(std::string_view text, std::string_view plain) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
        plain.find(c) != std::string_view::npos) {
      encoded += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    encoded += '%';
    encoded += kDigits[byte >> 4];
    encoded += kDigits[byte & 15];
  }
  return encoded;
}

int DigitOf(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = absl::ascii_tolower(static_cast<unsigned char>(c));
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

}  // namespace

std::string PercentEncoded(std::string_view text) { return EncodedBut(text, "-_.~"); }
std::string PercentEncodedPath(std::string_view path) { return EncodedBut(path, "-_.~/"); }

std::string QueryDecoded(std::string_view encoded) {
  std::string text;
  for (size_t i = 0; i < encoded.size(); ++i) {
    const int high = i + 2 < encoded.size() ? DigitOf(encoded[i + 1]) : -1;
    const int low = i + 2 < encoded.size() ? DigitOf(encoded[i + 2]) : -1;
    if (encoded[i] == '%' && high >= 0 && low >= 0) {
      text += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      text += encoded[i] == '+' ? ' ' : encoded[i];
    }
  }
  return text;
}

std::string QueryOf(const std::vector<std::pair<std::string, std::string>>& fields) {
  std::vector<std::pair<std::string, std::string>> encoded;
  for (const auto& [name, value] : fields) {
    encoded.emplace_back(PercentEncoded(name), PercentEncoded(value));
  }
  std::sort(encoded.begin(), encoded.end());
  std::string query;
  for (const auto& [name, value] : encoded) {
    StrAppend(&query, query.empty() ? "" : "&", name, "=", value);
  }
  return query;
}

bool ParseUrl(std::string_view url, std::string_view default_scheme, UrlParts* parts) {
  *parts = {};
  const size_t mark = url.find(kSchemeMark);
  parts->scheme =
      std::string(mark == std::string_view::npos ? default_scheme : url.substr(0, mark));
  if (mark != std::string_view::npos) url.remove_prefix(mark + kSchemeMark.size());
  if (parts->scheme != "http" && parts->scheme != "https") return false;
  const size_t slash = std::min(url.find('/'), url.size());
  std::string_view host = url.substr(0, slash), path = url.substr(slash);
  while (path.ends_with('/')) path.remove_suffix(1);
  parts->path = std::string(path);
  const size_t colon = host.rfind(':');
  // An address of IPv6 has colons of its own, between brackets.
  if (colon != std::string_view::npos && host.find(']', colon) == std::string_view::npos) {
    const std::string_view port = host.substr(colon + 1);
    const bool is_number = !port.empty() && port.size() <= 5 &&
                           port.find_first_not_of("0123456789") == std::string_view::npos;
    if (!is_number) return false;
    parts->port = std::string(port);
    host = host.substr(0, colon);
  }
  parts->host = std::string(host);
  return !host.empty() && host.find_first_of("?#@% ") == std::string_view::npos &&
         path.find_first_of("?# ") == std::string_view::npos;
}

}  // namespace tenon
