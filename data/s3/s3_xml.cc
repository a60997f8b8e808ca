// SPDX-License-Identifier: Apache-2.0
#include "data/s3/s3_xml.h"

#include <pugixml.hpp>
#include <sstream>

#include "data/http/url.h"

namespace tenon {

std::string XmlText(std::string_view xml, const std::string& path) {
  pugi::xml_document document;
  if (!document.load_buffer(xml.data(), xml.size())) return "";
  return document.select_node(path.c_str()).node().text().get();
}

bool IsXmlOf(std::string_view xml, std::string_view root) {
  pugi::xml_document document;
  return document.load_buffer(xml.data(), xml.size()) && document.document_element().name() == root;
}

StatusOr<S3Listing> ParseListing(std::string_view xml) {
  pugi::xml_document document;
  const pugi::xml_parse_result parsed = document.load_buffer(xml.data(), xml.size());
  const pugi::xml_node root = document.document_element();
  if (!parsed || root.name() != std::string_view("ListBucketResult")) {
    return DataLoss("the answer is no listing: found '", xml.substr(0, 100), "'",
                    parsed ? "" : StrCat(", ", parsed.description(), " at byte ", parsed.offset));
  }
  S3Listing listing;
  const bool encoded = root.child("EncodingType").text().get() == std::string_view("url");
  const auto text = [encoded](const pugi::xml_node& node) {
    const char* const content = node.text().get();
    return encoded ? QueryDecoded(content) : std::string(content);
  };
  for (const pugi::xml_node entry : root.children("Contents")) {
    listing.keys.push_back(text(entry.child("Key")));
  }
  for (const pugi::xml_node entry : root.children("CommonPrefixes")) {
    listing.prefixes.push_back(text(entry.child("Prefix")));
  }
  if (root.child("IsTruncated").text().as_bool()) {
    listing.next = root.child("NextContinuationToken").text().get();
    if (listing.next.empty()) return DataLoss("a listing goes on and does not say where");
  }
  return listing;
}

std::string CompletionXml(const std::vector<std::string>& etags) {
  pugi::xml_document document;
  pugi::xml_node root = document.append_child("CompleteMultipartUpload");
  int number = 0;
  for (const std::string& etag : etags) {
    pugi::xml_node part = root.append_child("Part");
    part.append_child("PartNumber").text().set(++number);
    part.append_child("ETag").text().set(etag.c_str());
  }
  std::ostringstream out;
  document.save(out, "", pugi::format_raw);
  return out.str();
}

}  // namespace tenon
