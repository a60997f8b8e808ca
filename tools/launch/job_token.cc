// SPDX-License-Identifier: Apache-2.0
#include "tools/launch/job_token.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "core/base/strings.h"
#include "distributed/resolver/environment.h"
#include "distributed/resolver/task_credentials.h"
#include "tools/launch/task_plan.h"

namespace tenon::tools {
namespace {

constexpr std::array<std::string_view, 3> kTlsFlags = {"--tls_cert", "--tls_key", "--tls_ca"};
constexpr std::array<std::string_view, 2> kOtherFlags = {"--token_file", "--insecure"};

}  // namespace

StatusOr<std::string> MakeJobToken() {
  std::array<unsigned char, 32> bytes;
  // So few bytes come whole, or not at all.
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return Unavailable("the system has no random bytes: ", std::strerror(errno));
  }
  constexpr char kDigits[] = "0123456789abcdef";
  std::string token;
  for (const unsigned char byte : bytes) {
    token += kDigits[byte >> 4];
    token += kDigits[byte & 15];
  }
  return token;
}

bool WantsJobToken(const std::vector<std::string>& command) {
  return !HasTlsFlags(command) &&
         std::none_of(kOtherFlags.begin(), kOtherFlags.end(),
                      [&](std::string_view flag) { return HasFlag(command, flag); });
}

bool HasTlsFlags(const std::vector<std::string>& command) {
  return std::any_of(kTlsFlags.begin(), kTlsFlags.end(),
                     [&](std::string_view flag) { return HasFlag(command, flag); });
}

StatusOr<std::vector<std::string>> JobTokenVariables(const std::vector<std::string>& command) {
  std::vector<std::string> variables;
  const bool is_inherited = Environment::OfProcess().Find(kTokenVariable) != nullptr;
  if (is_inherited || !WantsJobToken(command)) return variables;
  TENON_ASSIGN_OR_RETURN(const std::string token, MakeJobToken());
  variables.push_back(StrCat(kTokenVariable, "=", token));
  return variables;
}

}  // namespace tenon::tools
