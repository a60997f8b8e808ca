// SPDX-License-Identifier: Apache-2.0
#include "data/s3/aws_profile.h"

#include <algorithm>
#include <string_view>

namespace tenon {
namespace {

constexpr std::string_view kSpace = " \t\r";

std::string_view WithoutSpace(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(kSpace), text.size());
  return text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
}

/// Adds what the section has and the profile has not.
Status AddSection(const std::string& path, const std::string& section, const FileReader& read_file,
                  AwsProfile* profile) {
  const StatusOr<std::string> text = read_file(path);
  if (text.status().code() == StatusCode::kNotFound) return OkStatus();
  TENON_RETURN_IF_ERROR(text.status());
  const auto sections = ParseAwsFile(*text);
  if (!sections.ok()) return Annotate(sections.status(), StrCat("'", path, "'"));
  const auto it = sections->find(section);
  if (it == sections->end()) return OkStatus();
  profile->found = true;
  profile->values.insert(it->second.begin(), it->second.end());
  return OkStatus();
}

}  // namespace

std::string AwsProfile::Get(const std::string& key) const {
  const auto it = values.find(key);
  return it == values.end() ? "" : it->second;
}

StatusOr<std::map<std::string, std::map<std::string, std::string>>> ParseAwsFile(
    const std::string& text) {
  std::map<std::string, std::map<std::string, std::string>> sections;
  std::map<std::string, std::string>* current = nullptr;
  std::string_view rest = text;
  for (int number = 1; !rest.empty(); ++number) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view whole = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const std::string_view line = WithoutSpace(whole);
    if (line.empty() || line[0] == '#' || line[0] == ';') continue;
    if (whole[0] == ' ' || whole[0] == '\t') continue;
    if (line[0] == '[') {
      const size_t close = line.find(']');
      if (close == std::string_view::npos) {
        return InvalidArgument("line ", number, ": the name of a section has no ']'");
      }
      // A name has quotes around it where it has spaces.
      std::string name(WithoutSpace(line.substr(1, close - 1)));
      std::erase(name, '"');
      current = &sections[name];
      continue;
    }
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos || current == nullptr) {
      return InvalidArgument("line ", number, " is neither [section] nor, in one, key = value");
    }
    (*current)[std::string(WithoutSpace(line.substr(0, equals)))] =
        std::string(WithoutSpace(line.substr(equals + 1)));
  }
  return sections;
}

StatusOr<AwsProfile> ReadAwsProfile(const Environment& environment, const FileReader& read_file) {
  AwsProfile profile;
  profile.name = environment("AWS_PROFILE");
  profile.chosen = !profile.name.empty();
  if (!profile.chosen) profile.name = "default";
  const auto path = [&](const std::string& variable, const std::string& name) {
    std::string given = environment(variable);
    if (!given.empty()) return given;
    const std::string home = environment("HOME");
    return home.empty() ? "" : StrCat(home, "/.aws/", name);
  };
  profile.credentials_file = path("AWS_SHARED_CREDENTIALS_FILE", "credentials");
  profile.config_file = path("AWS_CONFIG_FILE", "config");
  const std::string in_config =
      profile.name == "default" ? profile.name : StrCat("profile ", profile.name);
  if (!profile.credentials_file.empty()) {
    TENON_RETURN_IF_ERROR(AddSection(profile.credentials_file, profile.name, read_file, &profile));
  }
  if (!profile.config_file.empty()) {
    TENON_RETURN_IF_ERROR(AddSection(profile.config_file, in_config, read_file, &profile));
  }
  if (profile.chosen && !profile.found) {
    return NotFound("AWS_PROFILE names '", profile.name, "', which is neither a section [",
                    profile.name, "] of '", profile.credentials_file, "' nor one [", in_config,
                    "] of '", profile.config_file, "'");
  }
  return profile;
}

}  // namespace tenon
