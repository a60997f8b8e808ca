// SPDX-License-Identifier: Apache-2.0
#include "data/hdfs/hdfs_place.h"

#include "absl/strings/str_split.h"
#include "data/http/url.h"

namespace tenon {
namespace {

constexpr std::string_view kSchemeEnd = "://";
constexpr std::string_view kSecureScheme = "swebhdfs";
/// Where namenodes serve HTTP and HTTPS unless their settings say otherwise.
constexpr std::string_view kHttpPort = "9870";
constexpr std::string_view kHttpsPort = "9871";

}  // namespace

std::string HdfsPlace::Path() const { return StrCat(scheme, kSchemeEnd, authority, path); }

HdfsPlace HdfsPlace::Folder() const {
  const size_t slash = path.rfind('/');
  return {scheme, authority, slash == 0 ? "/" : path.substr(0, slash)};
}

HdfsPlace HdfsPlace::In(std::string_view name) const {
  return {scheme, authority, StrCat(path, path.ends_with('/') ? "" : "/", name)};
}

StatusOr<HdfsPlace> ParseHdfsPath(const std::string& path) {
  HdfsPlace place;
  const size_t mark = path.find(kSchemeEnd);
  if (mark == std::string::npos) return InvalidArgument("'", path, "' has no scheme");
  place.scheme = path.substr(0, mark);
  const std::string_view rest = std::string_view(path).substr(mark + kSchemeEnd.size());
  const size_t slash = std::min(rest.find('/'), rest.size());
  place.authority = std::string(rest.substr(0, slash));
  UrlParts parts;
  if (place.authority.empty() ? place.scheme != "hdfs"
                              : !ParseUrl(place.authority, "http", &parts)) {
    return InvalidArgument("'", path, "' names no namenode; wanted ", place.scheme,
                           "://HOST/PATH or ", place.scheme, "://HOST:PORT/PATH");
  }
  if (path.find('\0') != std::string::npos) {
    return InvalidArgument("a path cannot hold a zero byte, found '", path, "'");
  }
  std::string whole;
  for (const absl::string_view piece : absl::StrSplit(ToAbsl(rest.substr(slash)), '/')) {
    const std::string_view part = ToStd(piece);
    if (part.empty()) continue;
    if (part == "." || part == "..") {
      return InvalidArgument("'", path, "': HDFS has no '", part, "' in paths");
    }
    StrAppend(&whole, "/", part);
  }
  if (!whole.empty()) place.path = std::move(whole);
  return place;
}

std::vector<std::string> HdfsSettings::NamenodesOf(const HdfsPlace& place) const {
  if (place.scheme == "hdfs" && !namenodes.empty()) return namenodes;
  UrlParts parts;
  ParseUrl(place.authority, "http", &parts);
  const bool is_secure = place.scheme == kSecureScheme;
  // The port of hdfs:// is that of another protocol, Hadoop's own.
  if (parts.port.empty() || place.scheme == "hdfs") {
    parts.port = std::string(is_secure ? kHttpsPort : kHttpPort);
  }
  return {StrCat(is_secure ? "https://" : "http://", parts.host, ":", parts.port)};
}

StatusOr<HdfsSettings> ReadHdfsSettings(const Environment& environment, const std::string& login) {
  HdfsSettings settings;
  settings.user = environment("HADOOP_USER_NAME");
  if (settings.user.empty()) settings.user = login;
  settings.token = environment("TENON_HDFS_TOKEN");
  settings.ca_file = environment("SSL_CERT_FILE");
  const std::string namenodes = environment("TENON_HDFS_NAMENODES");
  if (namenodes.empty()) return settings;
  for (const absl::string_view piece : absl::StrSplit(namenodes, ',')) {
    const std::string_view text = ToStd(piece);
    UrlParts parts;
    if (!ParseUrl(text, "http", &parts)) {
      return InvalidArgument("TENON_HDFS_NAMENODES has '", text, "', wanted addresses such as ",
                             "http://namenode:9870, separated by commas");
    }
    const bool is_secure = parts.scheme == "https";
    if (parts.port.empty()) parts.port = std::string(is_secure ? kHttpsPort : kHttpPort);
    settings.namenodes.push_back(
        StrCat(parts.scheme, "://", parts.host, ":", parts.port, parts.path));
  }
  return settings;
}

}  // namespace tenon
