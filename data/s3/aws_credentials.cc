// SPDX-License-Identifier: Apache-2.0
#include "data/s3/aws_credentials.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/time/time.h"
#include "data/http/url.h"
#include "data/s3/s3_xml.h"
#include "nlohmann/json.hpp"

namespace tenon {
namespace {

/// How long before their end credentials are fetched again.
constexpr auto kMargin = std::chrono::minutes(5);
/// How long a host without such a service is asked for it.
constexpr auto kInstanceLimit = std::chrono::seconds(1);

std::string WithoutNewline(std::string text) {
  absl::StripAsciiWhitespace(&text);
  return text;
}

StatusOr<Clock::WallTime> ParseExpiration(const std::string& text) {
  absl::Time time;
  std::string error;
  if (!absl::ParseTime(absl::RFC3339_full, text, &time, &error)) {
    return InvalidArgument("the expiration '", text, "' is no time: ", error);
  }
  return std::chrono::time_point_cast<Clock::WallTime::duration>(absl::ToChronoTime(time));
}

}  // namespace

StatusOr<AwsCredentials> ParseRoleCredentials(const std::string& json) {
  const nlohmann::json found = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!found.is_object()) return InvalidArgument("found no JSON object: ", json.substr(0, 100));
  const auto text = [&](const char* name) -> std::string {
    const auto it = found.find(name);
    return it != found.end() && it->is_string() ? it->get<std::string>() : "";
  };
  AwsCredentials credentials{text("AccessKeyId"), text("SecretAccessKey"), text("Token"), {}, {}};
  if (credentials.key_id.empty() || credentials.secret.empty()) {
    const std::string reason = text("Message").empty() ? text("message") : text("Message");
    return InvalidArgument("found no AccessKeyId and SecretAccessKey",
                           reason.empty() ? "" : StrCat(": ", reason));
  }
  if (const std::string end = text("Expiration"); !end.empty()) {
    TENON_ASSIGN_OR_RETURN(credentials.expires, ParseExpiration(end));
  }
  return credentials;
}

AwsCredentialSource::AwsCredentialSource(Environment environment, FileReader read_file,
                                         AwsProfile profile, std::string region, HttpOptions http,
                                         Clock& clock)
    : environment_(std::move(environment)),
      read_file_(std::move(read_file)),
      profile_(std::move(profile)),
      region_(std::move(region)),
      clock_(clock),
      http_(std::move(http)) {}

StatusOr<std::shared_ptr<const AwsCredentials>> AwsCredentialSource::Get() {
  MutexLock lock(mu_);
  const bool good = current_ != nullptr &&
                    (!current_->expires || clock_.WallNow() + kMargin < *current_->expires);
  if (good) return current_;
  StatusOr<AwsCredentials> found = Find();
  if (found.ok()) {
    current_ = std::make_shared<const AwsCredentials>(*std::move(found));
  } else if (current_ == nullptr || clock_.WallNow() >= *current_->expires) {
    return found.status();
  }
  return current_;
}

void AwsCredentialSource::Forget(const std::shared_ptr<const AwsCredentials>& old) {
  MutexLock lock(mu_);
  if (current_ == old) current_ = nullptr;
}

StatusOr<AwsCredentials> AwsCredentialSource::Find() {
  Found found = FromEnvironment();
  if (found.ok() && !*found) found = FromWebIdentity();
  if (found.ok() && !*found) found = FromProfile();
  if (found.ok() && !*found) found = FromContainer();
  if (found.ok() && !*found) found = FromInstance();
  TENON_RETURN_IF_ERROR(found.status());
  if (*found) return **std::move(found);
  AwsCredentials none;
  none.source = StrCat("AWS_ACCESS_KEY_ID and AWS_WEB_IDENTITY_TOKEN_FILE are not set, '",
                       profile_.credentials_file, "' and '", profile_.config_file,
                       "' have no keys for the profile ", profile_.name,
                       ", and neither a container nor an instance of EC2 gives a role");
  return none;
}

AwsCredentialSource::Found AwsCredentialSource::FromEnvironment() const {
  AwsCredentials found{environment_("AWS_ACCESS_KEY_ID"),
                       environment_("AWS_SECRET_ACCESS_KEY"),
                       environment_("AWS_SESSION_TOKEN"),
                       {},
                       "the environment (AWS_ACCESS_KEY_ID)"};
  if (found.key_id.empty() && found.secret.empty()) return std::nullopt;
  if (!found.key_id.empty() && !found.secret.empty()) return found;
  const bool has_key = !found.key_id.empty();
  return InvalidArgument(has_key ? "AWS_ACCESS_KEY_ID" : "AWS_SECRET_ACCESS_KEY", " is set and ",
                         has_key ? "AWS_SECRET_ACCESS_KEY" : "AWS_ACCESS_KEY_ID", " is not");
}

StatusOr<std::string> AwsCredentialSource::Ask(const HttpRequest& request, std::string_view from,
                                               int attempts) {
  RetryPolicy policy;
  policy.attempts = attempts;
  policy.attempts_to_connect = attempts;
  const auto response = SendPatiently(http_, request, policy, clock_);
  if (!response.ok()) {
    return Unavailable("no credentials of ", from, ": ", Message(response.status()));
  }
  if (response->status == 200) return response->body;
  const std::string text = WithoutNewline(response->body.substr(0, 300));
  return PermissionDenied("no credentials of ", from, ": ", response->status,
                          text.empty() ? "" : " ", text);
}

AwsCredentialSource::Found AwsCredentialSource::FromWebIdentity() {
  std::string file = environment_("AWS_WEB_IDENTITY_TOKEN_FILE");
  std::string role = environment_("AWS_ROLE_ARN");
  if (file.empty()) {
    file = profile_.Get("web_identity_token_file");
    role = profile_.Get("role_arn");
  }
  if (file.empty()) return std::nullopt;
  if (role.empty()) {
    return InvalidArgument("AWS_WEB_IDENTITY_TOKEN_FILE is set and AWS_ROLE_ARN is not");
  }
  const StatusOr<std::string> token = read_file_(file);
  if (!token.ok()) return Annotate(token.status(), "AWS_WEB_IDENTITY_TOKEN_FILE");
  std::string session = environment_("AWS_ROLE_SESSION_NAME");
  if (session.empty()) session = "tenon";
  std::string endpoint = environment_("AWS_ENDPOINT_URL_STS");
  if (endpoint.empty()) endpoint = StrCat("https://sts.", region_, ".amazonaws.com");
  while (endpoint.ends_with('/')) endpoint.pop_back();
  HttpRequest request;
  request.method = "POST";
  request.url = endpoint + "/";
  const std::string body = QueryOf({{"Action", "AssumeRoleWithWebIdentity"},
                                    {"RoleArn", role},
                                    {"RoleSessionName", session},
                                    {"Version", "2011-06-15"},
                                    {"WebIdentityToken", WithoutNewline(*token)}});
  request.body = body;
  request.headers = {"Content-Type: application/x-www-form-urlencoded"};
  const std::string from = StrCat("the role ", role, " by the web identity in '", file, "'");
  TENON_ASSIGN_OR_RETURN(const std::string xml, Ask(request, from, RetryPolicy().attempts));
  const std::string at = "//Credentials/";
  AwsCredentials found{XmlText(xml, at + "AccessKeyId"),
                       XmlText(xml, at + "SecretAccessKey"),
                       XmlText(xml, at + "SessionToken"),
                       {},
                       from};
  if (found.key_id.empty()) return InvalidArgument("no credentials of ", from, ": found none");
  TENON_ASSIGN_OR_RETURN(found.expires, ParseExpiration(XmlText(xml, at + "Expiration")));
  return found;
}

AwsCredentialSource::Found AwsCredentialSource::FromProfile() const {
  AwsCredentials found{profile_.Get("aws_access_key_id"),
                       profile_.Get("aws_secret_access_key"),
                       profile_.Get("aws_session_token"),
                       {},
                       StrCat("the profile ", profile_.name, " of '", profile_.credentials_file,
                              "' and '", profile_.config_file, "'")};
  if (!found.key_id.empty() && !found.secret.empty()) return found;
  if (!found.key_id.empty() || !found.secret.empty()) {
    return InvalidArgument(found.source, " has one of aws_access_key_id and aws_secret_access_key ",
                           "only");
  }
  for (const char* const other : {"source_profile", "credential_process", "sso_session",
                                  "sso_start_url", "credential_source"}) {
    if (profile_.Get(other).empty()) continue;
    return Unimplemented(found.source, " has ", other, ", which is not read; `aws configure ",
                         "export-credentials --format env` prints credentials for the environment");
  }
  return std::nullopt;
}

AwsCredentialSource::Found AwsCredentialSource::FromContainer() {
  const std::string relative = environment_("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
  const std::string full = environment_("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  if (relative.empty() && full.empty()) return std::nullopt;
  HttpRequest request;
  request.url = relative.empty() ? full : StrCat("http://169.254.170.2", relative);
  std::string token = environment_("AWS_CONTAINER_AUTHORIZATION_TOKEN");
  if (const std::string file = environment_("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
      !file.empty()) {
    StatusOr<std::string> text = read_file_(file);
    if (!text.ok()) return Annotate(text.status(), "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    token = WithoutNewline(*std::move(text));
  }
  if (!token.empty()) request.headers = {StrCat("Authorization: ", token)};
  const std::string from = StrCat("the role of this container at ", request.url);
  TENON_ASSIGN_OR_RETURN(const std::string json, Ask(request, from, 4));
  StatusOr<AwsCredentials> found = ParseRoleCredentials(json);
  if (!found.ok()) return Annotate(found.status(), from);
  found->source = from;
  return *std::move(found);
}

AwsCredentialSource::Found AwsCredentialSource::FromInstance() {
  std::string disabled = environment_("AWS_EC2_METADATA_DISABLED");
  absl::AsciiStrToLower(&disabled);
  if (disabled == "true") return std::nullopt;
  std::string base = environment_("AWS_EC2_METADATA_SERVICE_ENDPOINT");
  if (base.empty()) base = "http://169.254.169.254";
  while (base.ends_with('/')) base.pop_back();
  HttpRequest request;
  request.method = "PUT";
  request.url = base + "/latest/api/token";
  request.headers = {"X-aws-ec2-metadata-token-ttl-seconds: 21600"};
  request.connect_limit = kInstanceLimit;
  request.silence_limit = kInstanceLimit;
  // A machine that is no instance has nobody there, which is no mistake.
  const StatusOr<HttpResponse> token = http_.Send(request);
  if (!token.ok() || token->status != 200) return std::nullopt;
  request.method = "GET";
  request.headers = {StrCat("X-aws-ec2-metadata-token: ", token->body)};
  request.silence_limit = std::chrono::seconds(5);
  const std::string roles = base + "/latest/meta-data/iam/security-credentials/";
  request.url = roles;
  const StatusOr<HttpResponse> role = http_.Send(request);
  if (!role.ok() || role->status != 200) return std::nullopt;  // an instance without a role
  const std::string name = WithoutNewline(role->body.substr(0, role->body.find('\n')));
  if (name.empty()) return std::nullopt;
  request.url = roles + PercentEncodedPath(name);
  const std::string from = StrCat("the role ", name, " of this instance");
  TENON_ASSIGN_OR_RETURN(const std::string json, Ask(request, from, 4));
  StatusOr<AwsCredentials> found = ParseRoleCredentials(json);
  if (!found.ok()) return Annotate(found.status(), from);
  found->source = from;
  return *std::move(found);
}

}  // namespace tenon
