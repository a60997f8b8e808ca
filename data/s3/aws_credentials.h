// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/base/status.h"
#include "data/http/http_client.h"
#include "data/http/retries.h"
#include "data/s3/aws_profile.h"

namespace tenon {

/// Who asks. Without a key requests are anonymous, and `source` says where was looked for one.
struct AwsCredentials {
  std::string key_id, secret, token;
  std::optional<Clock::WallTime> expires;
  std::string source;  // "the environment (AWS_ACCESS_KEY_ID)"

  bool anonymous() const { return key_id.empty(); }
};

/// Finds credentials where AWS' own tools look, in their order: the environment, a web identity
/// (AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN), the shared files, the role of a container, the
/// role of an instance. They are fetched again before they expire. Thread-safe.
class AwsCredentialSource {
 public:
  /// `clock` outlives this. `region` is that of the token service.
  AwsCredentialSource(Environment environment, FileReader read_file, AwsProfile profile,
                      std::string region, HttpOptions http, Clock& clock);

  /// Credentials that hold for some minutes more. The error says which of the places was tried and
  /// what was wrong there.
  StatusOr<std::shared_ptr<const AwsCredentials>> Get();
  /// Has the next Get look again, since the server does not take `old` any more.
  void Forget(const std::shared_ptr<const AwsCredentials>& old);

 private:
  using Found = StatusOr<std::optional<AwsCredentials>>;

  StatusOr<AwsCredentials> Find();
  Found FromEnvironment() const;
  Found FromWebIdentity();
  Found FromProfile() const;
  Found FromContainer();
  Found FromInstance();
  /// The response to a request of which 200 alone is good; `from` says of whom.
  StatusOr<std::string> Ask(const HttpRequest& request, std::string_view from, int attempts);

  const Environment environment_;
  const FileReader read_file_;
  const AwsProfile profile_;
  const std::string region_;
  Clock& clock_;
  HttpClient http_;
  Mutex mu_;  // held while they are fetched: all wait for one
  std::shared_ptr<const AwsCredentials> current_ ABSL_GUARDED_BY(mu_);
};

/// The credentials in the JSON with which the role of a container or an instance is answered.
StatusOr<AwsCredentials> ParseRoleCredentials(const std::string& json);

}  // namespace tenon
