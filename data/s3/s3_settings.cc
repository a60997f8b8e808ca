// SPDX-License-Identifier: Apache-2.0
#include "data/s3/s3_settings.h"

#include <utility>

#include "absl/strings/ascii.h"

namespace tenon {
namespace {

constexpr std::string_view kS3Mark = "s3://";

constexpr std::string_view kBucketCharacters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";

/// Whether a variable of yes or no says so; `otherwise` where it is not set.
StatusOr<bool> ReadFlag(const Environment& environment, const std::string& name, bool otherwise) {
  std::string text = environment(name);
  absl::AsciiStrToLower(&text);
  if (text.empty()) return otherwise;
  if (text == "1" || text == "true" || text == "yes") return true;
  if (text == "0" || text == "false" || text == "no") return false;
  return InvalidArgument(name, " is '", environment(name), "', wanted 1 or 0");
}

}  // namespace

std::string S3Place::Path() const { return StrCat(kS3Mark, bucket, key.empty() ? "" : "/", key); }

std::string S3Place::FolderPrefix() const {
  return key.empty() || key.ends_with('/') ? key : StrCat(key, "/");
}

StatusOr<S3Place> ParseS3Path(const std::string& path) {
  S3Place place;
  std::string_view rest = path;
  if (rest.starts_with(kS3Mark)) rest.remove_prefix(kS3Mark.size());
  const size_t slash = rest.find('/');
  place.bucket = std::string(rest.substr(0, slash));
  if (slash != std::string_view::npos) place.key = std::string(rest.substr(slash + 1));
  if (place.bucket.empty()) {
    return InvalidArgument("'", path, "' names no bucket; wanted s3://BUCKET/KEY");
  }
  const bool is_name = place.bucket.size() >= 3 && place.bucket.size() <= 255 &&
                       place.bucket.find_first_not_of(kBucketCharacters) == std::string::npos;
  if (!is_name) {
    return InvalidArgument("'", path, "': '", place.bucket, "' cannot be the name of a bucket: ",
                           "wanted 3 or more letters, digits, '-' and '.'");
  }
  if (place.key.find('\0') != std::string::npos) {
    return InvalidArgument("a path cannot hold a zero byte, found '", path, "'");
  }
  if (place.key.size() > 1024) {
    return InvalidArgument("'", path, "': a key has at most 1024 bytes, found ", place.key.size());
  }
  return place;
}

std::string S3Settings::EndpointText() const {
  if (endpoint.host.empty()) {
    const std::string_view domain =
        region.starts_with("cn-") ? ".amazonaws.com.cn" : ".amazonaws.com";
    return StrCat(endpoint.scheme, "://s3.", region, domain);
  }
  return StrCat(endpoint.scheme, "://", endpoint.host, endpoint.port.empty() ? "" : ":",
                endpoint.port, endpoint.path);
}

std::string S3Settings::UrlOf(const S3Place& place) const {
  const std::string base = EndpointText();
  const std::string key = PercentEncodedPath(place.key);
  // The certificates of AWS hold for one name before the domain, and names of hosts have no '_' and
  // no capitals.
  const bool is_host_name =
      endpoint.host.empty() && place.bucket.find_first_of("._") == std::string::npos &&
      place.bucket.find_first_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ") == std::string::npos;
  if (!is_host_name) return StrCat(base, "/", place.bucket, "/", key);
  const size_t host = base.find("://") + 3;
  return StrCat(base.substr(0, host), place.bucket, ".", base.substr(host), "/", key);
}

StatusOr<S3Settings> ReadS3Settings(const Environment& environment, const AwsProfile& profile) {
  S3Settings settings;
  for (const std::string& region :
       {environment("AWS_REGION"), environment("AWS_DEFAULT_REGION"), profile.Get("region")}) {
    if (region.empty()) continue;
    settings.region = region;
    break;
  }
  // The region becomes a part of hosts' names.
  for (const char c : settings.region) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-') continue;
    return InvalidArgument("the region '", settings.region, "' has '", std::string(1, c),
                           "', wanted letters, digits and '-', as in eu-central-1");
  }
  TENON_ASSIGN_OR_RETURN(const bool https, ReadFlag(environment, "S3_USE_HTTPS", true));
  const std::string scheme = https ? "https" : "http";
  settings.endpoint.scheme = scheme;
  const std::pair<std::string, std::string> endpoints[] = {
      {"AWS_ENDPOINT_URL_S3", environment("AWS_ENDPOINT_URL_S3")},
      {"AWS_ENDPOINT_URL", environment("AWS_ENDPOINT_URL")},
      {"S3_ENDPOINT", environment("S3_ENDPOINT")},
      {StrCat("endpoint_url of the profile '", profile.name, "'"), profile.Get("endpoint_url")}};
  for (const auto& [name, text] : endpoints) {
    if (text.empty()) continue;
    if (!ParseUrl(text, scheme, &settings.endpoint)) {
      return InvalidArgument(name, " is '", text, "', wanted an address such as ",
                             "http://127.0.0.1:9000 or storage.example.com");
    }
    break;
  }
  TENON_ASSIGN_OR_RETURN(settings.verify_certificates,
                         ReadFlag(environment, "S3_VERIFY_SSL", true));
  settings.ca_file = environment("AWS_CA_BUNDLE");
  return settings;
}

}  // namespace tenon
