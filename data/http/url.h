// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon {

/// `text` with everything but letters, digits and "-_.~" as %XX (RFC 3986), of a path all but its
/// slashes.
std::string PercentEncoded(std::string_view text);
std::string PercentEncodedPath(std::string_view path);

/// The text of which `encoded` is the form in a query: "+" is a space, %XX a byte; a "%" without
/// two hexadecimal digits stays as it is.
std::string QueryDecoded(std::string_view encoded);

/// "a=1&b=x%20y", in the order of the encoded names, which signatures want.
std::string QueryOf(const std::vector<std::pair<std::string, std::string>>& fields);

/// "http://host:8080/path" in parts. The port is empty where it is not given, and the path is empty
/// or begins with a slash and does not end with one.
struct UrlParts {
  std::string scheme, host, port, path;
};

/// Parts of `url`; the scheme is `default_scheme` where none is given. False for what is no address
/// of http or https.
bool ParseUrl(std::string_view url, std::string_view default_scheme, UrlParts* parts);

}  // namespace tenon
