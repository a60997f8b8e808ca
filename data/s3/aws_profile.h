// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>

#include "core/base/status.h"
#include "data/http/environment.h"

namespace tenon {

/// The content of a file of this machine. NotFound where there is none.
using FileReader = std::function<StatusOr<std::string>(const std::string& path)>;

/// A profile of AWS' shared files (~/.aws/credentials and ~/.aws/config, or those that
/// AWS_SHARED_CREDENTIALS_FILE and AWS_CONFIG_FILE name).
struct AwsProfile {
  std::string name;                           // AWS_PROFILE, or "default"
  bool chosen = false;                        // AWS_PROFILE is set
  bool found = false;                         // one of the files has it
  std::string credentials_file, config_file;  // where was looked
  std::map<std::string, std::string> values;  // those of the credentials file come first

  /// The value of that name; empty where there is none.
  std::string Get(const std::string& key) const;
};

/// The sections of a file in that format: "[name]" lines, then "key = value" ones; lines that begin
/// with '#' or ';' are comments, indented ones belong to the value before them and are left out.
/// The error names the line.
StatusOr<std::map<std::string, std::map<std::string, std::string>>> ParseAwsFile(
    const std::string& text);

/// Reads the profile that the environment chooses. Files that are not there say nothing; NotFound
/// when AWS_PROFILE names a profile that neither has.
StatusOr<AwsProfile> ReadAwsProfile(const Environment& environment, const FileReader& read_file);

}  // namespace tenon
