// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "core/base/status.h"
#include "data/http/url.h"
#include "data/s3/aws_profile.h"

namespace tenon {

/// A bucket and a key in it; the key of a bucket's root is empty.
struct S3Place {
  std::string bucket, key;

  /// "s3://bucket/key"
  std::string Path() const;
  /// The prefix of all keys in this folder: empty for the root, or one that ends with a slash.
  std::string FolderPrefix() const;
};

/// Parts of "s3://bucket/key". InvalidArgument for what has no bucket, or one whose name cannot be.
StatusOr<S3Place> ParseS3Path(const std::string& path);

/// Where the servers are and how they are spoken to.
struct S3Settings {
  std::string region = "us-east-1";
  UrlParts endpoint;  // no host: those of AWS
  bool verify_certificates = true;
  std::string ca_file;  // empty: the certificates that the system trusts

  /// The address of the object, of which the parts are encoded. Buckets are part of the host's name
  /// at AWS, where that can be, and part of the path elsewhere.
  std::string UrlOf(const S3Place& place) const;
  /// "https://s3.eu-central-1.amazonaws.com"
  std::string EndpointText() const;
};

/// Settings of the environment (AWS_REGION, AWS_DEFAULT_REGION, AWS_ENDPOINT_URL_S3,
/// AWS_ENDPOINT_URL, S3_ENDPOINT, S3_USE_HTTPS, S3_VERIFY_SSL, AWS_CA_BUNDLE), then those of the
/// profile. InvalidArgument names the variable and what is wrong with it.
StatusOr<S3Settings> ReadS3Settings(const Environment& environment, const AwsProfile& profile);

}  // namespace tenon
