// SPDX-License-Identifier: Apache-2.0
#include "data/s3/aws_credentials.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/testing/simulated_clock.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using testing::IsError;
using testing::kInvalid;
using testing::SimulatedClock;

using NamedTexts = std::map<std::string, std::string>;

/// Credentials with these variables and files, and no server.
class AwsPlace {
 public:
  AwsPlace(NamedTexts variables, NamedTexts files)
      : variables_(std::move(variables)), files_(std::move(files)) {
    variables_.emplace("HOME", "/h");
    variables_.emplace("AWS_EC2_METADATA_DISABLED", "true");
  }

  StatusOr<AwsProfile> Profile() const { return ReadAwsProfile(Variables(), Files()); }
  StatusOr<AwsCredentials> Find() const {
    TENON_ASSIGN_OR_RETURN(const AwsProfile profile, Profile());
    SimulatedClock clock;
    AwsCredentialSource source(Variables(), Files(), profile, "r", {}, clock);
    TENON_ASSIGN_OR_RETURN(const auto found, source.Get());
    return *found;
  }

 private:
  Environment Variables() const {
    return [this](const std::string& name) {
      const auto it = variables_.find(name);
      return it == variables_.end() ? "" : it->second;
    };
  }
  FileReader Files() const {
    return [this](const std::string& path) -> StatusOr<std::string> {
      const auto it = files_.find(path);
      if (it == files_.end()) return NotFound("no '", path, "'");
      return it->second;
    };
  }

  NamedTexts variables_, files_;
};

constexpr char kAwsCredentials[] =
    "# a comment\n[default]\naws_access_key_id = K\r\naws_secret_access_key=S=1\n"
    "s3 =\n  addressing_style = path\n\n[other]\naws_access_key_id=K2\n"
    "aws_secret_access_key=S2\naws_session_token=T2\n[half]\naws_access_key_id=K3\n";
constexpr char kAwsConfig[] =
    "[default]\nregion = eu-west-1\naws_access_key_id=not this one\n[profile other]\n"
    "region=eu-west-2\n[profile sso]\nsso_session = x\n";
const NamedTexts kAwsFiles = {{"/h/.aws/credentials", kAwsCredentials},
                              {"/h/.aws/config", kAwsConfig}};

TEST(AwsProfileTest, JoinsTheSectionsOfBothFiles) {
  const auto profile = AwsPlace({}, kAwsFiles).Profile();
  ASSERT_OK(profile);
  EXPECT_EQ(profile->Get("aws_access_key_id"), "K");
  EXPECT_EQ(profile->Get("aws_secret_access_key"), "S=1");
  EXPECT_EQ(profile->Get("region"), "eu-west-1");
  EXPECT_EQ(profile->Get("addressing_style"), "");
  const auto other = AwsPlace({{"AWS_PROFILE", "other"}}, kAwsFiles).Profile();
  ASSERT_OK(other);
  EXPECT_EQ(other->Get("region"), "eu-west-2");
  EXPECT_EQ(other->Get("aws_session_token"), "T2");
}

TEST(AwsProfileTest, VariablesNameOtherFiles) {
  const AwsPlace place({{"AWS_SHARED_CREDENTIALS_FILE", "/c"}, {"AWS_CONFIG_FILE", "/d"}},
                       {{"/c", kAwsCredentials}, {"/d", "[default]\nregion=r\n"}});
  ASSERT_OK(place.Profile());
  EXPECT_EQ(place.Profile()->Get("region"), "r");
  EXPECT_EQ(place.Find()->key_id, "K");
}

TEST(AwsProfileTest, MistakesAreNamed) {
  EXPECT_THAT(AwsPlace({{"AWS_PROFILE", "prod"}}, kAwsFiles).Profile(),
              IsError(StatusCode::kNotFound,
                      "AWS_PROFILE names 'prod', which is neither a section "
                      "[prod] of '/h/.aws/credentials'"));
  for (const auto& [text, what] : NamedTexts{{"[x", "line 1: the name of a section has no ']'"},
                                             {"[default]\nkey", "line 2 is neither"},
                                             {"key = 1", "line 1 is neither"}}) {
    EXPECT_THAT(AwsPlace({}, {{"/h/.aws/config", text}}).Profile(), IsError(kInvalid, what));
  }
}

TEST(AwsCredentialsTest, TheEnvironmentComesFirst) {
  const auto found =
      AwsPlace(
          {{"AWS_ACCESS_KEY_ID", "E"}, {"AWS_SECRET_ACCESS_KEY", "F"}, {"AWS_SESSION_TOKEN", "G"}},
          kAwsFiles)
          .Find();
  ASSERT_OK(found);
  EXPECT_EQ(found->key_id + found->secret + found->token, "EFG");
  EXPECT_EQ(AwsPlace({}, kAwsFiles).Find()->key_id, "K");
  EXPECT_THAT(AwsPlace({{"AWS_ACCESS_KEY_ID", "E"}}, kAwsFiles).Find(),
              IsError(kInvalid, "AWS_SECRET_ACCESS_KEY is not"));
  EXPECT_THAT(AwsPlace({{"AWS_SECRET_ACCESS_KEY", "E"}}, kAwsFiles).Find(),
              IsError(kInvalid, "AWS_ACCESS_KEY_ID is not"));
}

TEST(AwsCredentialsTest, HalvesAndWhatIsNotReadAreErrors) {
  EXPECT_THAT(AwsPlace({{"AWS_PROFILE", "half"}}, kAwsFiles).Find(),
              IsError(kInvalid, "one of aws_access_key_id and aws_secret_access_key"));
  EXPECT_THAT(AwsPlace({{"AWS_PROFILE", "sso"}}, kAwsFiles).Find(),
              IsError(StatusCode::kUnimplemented, "sso_session, which is not read"));
  EXPECT_THAT(AwsPlace({{"AWS_WEB_IDENTITY_TOKEN_FILE", "/t"}}, kAwsFiles).Find(),
              IsError(kInvalid, "AWS_ROLE_ARN is not"));
  EXPECT_THAT(
      AwsPlace({{"AWS_WEB_IDENTITY_TOKEN_FILE", "/t"}, {"AWS_ROLE_ARN", "a"}}, kAwsFiles).Find(),
      IsError(StatusCode::kNotFound, "AWS_WEB_IDENTITY_TOKEN_FILE: no '/t'"));
}

TEST(AwsCredentialsTest, WithoutAnyRequestsAreAnonymousAndSayWhereWasLooked) {
  const auto found = AwsPlace({}, {}).Find();
  ASSERT_OK(found);
  EXPECT_TRUE(found->anonymous());
  for (const char* const place :
       {"AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE", "/h/.aws/credentials", "instance"}) {
    EXPECT_NE(found->source.find(place), std::string::npos) << found->source;
  }
}

TEST(AwsCredentialsTest, RolesAnswerInJson) {
  const auto found = ParseRoleCredentials(
      R"({"AccessKeyId": "A", "SecretAccessKey": "S", "Token": "T",
          "Expiration": "2026-11-27T20:30:05Z", "Code": "Success"})");
  ASSERT_OK(found);
  EXPECT_EQ(found->key_id + found->secret + found->token, "AST");
  ASSERT_TRUE(found->expires);
  EXPECT_EQ(
      std::chrono::duration_cast<std::chrono::seconds>(found->expires->time_since_epoch()).count(),
      1795811405);
  for (const char* const wrong :
       {"", "[]", "{", "{}", R"({"AccessKeyId": 1})", R"({"AccessKeyId": "A"})",
        R"({"AccessKeyId": "A", "SecretAccessKey": "S", "Expiration": "tomorrow"})"}) {
    EXPECT_EQ(ParseRoleCredentials(wrong).status().code(), kInvalid) << wrong;
  }
  EXPECT_THAT(ParseRoleCredentials(R"({"Code": "Failed", "Message": "no role"})"),
              IsError(kInvalid, ": no role"));
}

}  // namespace
}  // namespace tenon
