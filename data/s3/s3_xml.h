// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace tenon {

/// The text of the first element that an XPath expression finds, whatever its namespace prefix;
/// empty without one, and for what is no XML.
std::string XmlText(std::string_view xml, const std::string& path);
/// Whether the document's root is called so.
bool IsXmlOf(std::string_view xml, std::string_view root);

/// A page of ListObjectsV2, asked for with encoding-type=url.
struct S3Listing {
  std::vector<std::string> keys;      // of objects
  std::vector<std::string> prefixes;  // common ones, with their last slash
  std::string next;                   // the token of the next page; empty at the end
};
StatusOr<S3Listing> ParseListing(std::string_view xml);

/// The body of CompleteMultipartUpload for parts 1, 2, ... with these ETags.
std::string CompletionXml(const std::vector<std::string>& etags);

}  // namespace tenon
