// SPDX-License-Identifier: Apache-2.0
//
// What somebody gets from the network: with the job's credentials a session, without them nothing.
#include "distributed/protocol/credentials.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "distributed/client/remote_session.h"
#include "distributed/resolver/task_credentials.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/io/io_ops.h"
#include "ops/math/math_ops.h"
#include "ops/register.h"
#include "proto/master.pb.h"
#include "tests/distributed/raw_client.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using testing::IsError;
using ::testing::Not;
using testing::RawCaller;
using testing::RawSocket;

constexpr char kTls[] = "tests/data/tls/";

Credentials Token(const std::string& token) {
  Credentials credentials;
  credentials.token = token;
  return credentials;
}

Credentials Certificate(const std::string& name) {
  const std::string folder = kTls;
  auto credentials =
      ReadCredentials({folder + name + ".pem", folder + name + ".key", folder + "ca.pem", ""});
  EXPECT_OK(credentials);
  return *std::move(credentials);
}

/// A server of its own with these credentials, and a graph to run there.
class CredentialsTest : public ::testing::Test {
 protected:
  CredentialsTest() {
    const GraphBuilding building(graph_);
    Neg(1.0f, {.name = "y"});
    options_.port = 0;
  }
  void Start(const Credentials& credentials) {
    options_.credentials = credentials;
    auto server = Server::Start(options_, AllOps());
    ASSERT_OK(server);
    server_ = *std::move(server);
  }
  /// What a client with these credentials gets at `target`.
  Status Try(const std::string& target, const Credentials& credentials) {
    RemoteSessionOptions options;
    options.credentials = credentials;
    options.connect_deadline = std::chrono::milliseconds(0);
    TENON_ASSIGN_OR_RETURN(const auto session, MakeRemoteSession(target, graph_, options));
    return session->Run({}, {"y"}).status();
  }

  Graph graph_{AllOps()};
  ServerOptions options_;
  std::unique_ptr<Server> server_;
};

TEST_F(CredentialsTest, WhoKeepsCallingWithoutTheTokenIsShutOut) {
  Start(Token("secret"));
  RawCaller welcome(server_->target(), "secret"), stranger(server_->target());
  const std::string status = "/tenon.cluster.ClusterService/ServerStatus";
  EXPECT_TRUE(welcome.Call(status, "").ok());
  grpc::StatusCode code = grpc::StatusCode::UNAUTHENTICATED;
  int refused = 0;
  for (; refused < 1000 && code == grpc::StatusCode::UNAUTHENTICATED; ++refused) {
    code = stranger.Call(status, "").error_code();
  }
  EXPECT_GE(refused, 100);
  EXPECT_EQ(code, grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(welcome.Call(status, "").ok()) << "who was there stays";
  EXPECT_EQ(RawCaller(server_->target()).Call(status, "").error_code(),
            grpc::StatusCode::UNAVAILABLE);
}

TEST_F(CredentialsTest, AnybodyMayAskForTheServersHealth) {
  Start(Token("secret"));
  const std::string check = "/grpc.health.v1.Health/Check";
  const std::string serving = "\x08\x01", services[] = {"", "\x0a\x18tensorflow.WorkerService"};
  for (const char* token : {"", "wrong", "secret"}) {
    RawCaller caller(server_->target(), token);
    for (const std::string& service : services) {
      std::string answer;
      EXPECT_TRUE(caller.Call(check, service, std::chrono::seconds(20), &answer).ok());
      EXPECT_EQ(answer, serving);
    }
    EXPECT_EQ(caller.Call(check, "\x0a\x01x").error_code(), grpc::StatusCode::NOT_FOUND);
    EXPECT_EQ(caller.Call(check, "\x0a\x05x").error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  }
  // That has let nobody in.
  RawCaller stranger(server_->target());
  EXPECT_TRUE(stranger.Call(check, "").ok());
  EXPECT_EQ(stranger.Call("/tenon.cluster.ClusterService/ServerStatus", "").error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
}

/// HTTP/2's frame of `type` on `stream` (RFC 9113, 4.1).
std::string Http2Frame(char type, char flags, uint32_t stream, const std::string& payload) {
  const auto big_endian = [](uint32_t value, int bytes) {
    std::string text;
    for (int i = bytes - 1; i >= 0; --i) text += static_cast<char>(value >> (8 * i));
    return text;
  };
  return big_endian(static_cast<uint32_t>(payload.size()), 3) + type + flags +
         big_endian(stream, 4) + payload;
}

TEST_F(CredentialsTest, AStrangerWhoTakesBackHisCallsIsShutOutToo) {
  Start(Token("secret"));
  RawCaller welcome(server_->target(), "secret");
  const std::string status = "/tenon.cluster.ClusterService/ServerStatus";
  EXPECT_TRUE(welcome.Call(status, "").ok());
  // A call without a token, as HPACK writes its headers, and at once its end.
  const std::string headers = std::string(
                                  "\x83\x86\x04\x02/x\x01\x01"
                                  "a\x0f\x10\x10"
                                  "application/grpc",
                                  28) +
                              std::string("\0\x02te\x08trailers", 13);
  RawSocket stranger(server_->port());
  bool connected = stranger.Send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Http2Frame(4, 0, 0, ""));
  uint32_t stream = 1;
  constexpr uint32_t kStreams = 1'000'000;
  while (connected && stream < 2 * kStreams) {
    std::string burst;
    for (int i = 0; i < 100; ++i, stream += 2) {
      burst += Http2Frame(1, 4, stream, headers) + Http2Frame(3, 0, stream, {"\0\0\0\x8", 4});
    }
    connected = stranger.Send(burst);
  }
  EXPECT_FALSE(connected) << "all of " << kStreams << " calls were taken";
  EXPECT_TRUE(welcome.Call(status, "", std::chrono::seconds(20)).ok());
}

TEST_F(CredentialsTest, CertificatesThatAreNoneAreFoundAtTheStart) {
  Credentials of_another = Certificate("task");
  of_another.tls_key = Certificate("stranger").tls_key;
  Credentials no_certificate = Certificate("task");
  no_certificate.tls_cert = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
  Credentials no_key = Certificate("task");
  no_key.tls_key = "secret";
  Credentials no_authority = Certificate("task");
  no_authority.tls_ca = "nobody";
  for (const Credentials& credentials : {of_another, no_certificate, no_key, no_authority}) {
    options_.credentials = credentials;
    EXPECT_THAT(Server::Start(options_, AllOps()),
                IsError(StatusCode::kInvalidArgument, "do not make a server"));
  }
}

TEST_F(CredentialsTest, WithoutTheTokenEveryCallIsRefused) {
  Start(Token("secret"));
  const std::string target = server_->target();
  EXPECT_OK(Try(target, Token("secret")));
  const auto refused = IsError(StatusCode::kUnauthenticated, "does not carry this job's token");
  EXPECT_THAT(Try(target, {}), refused);
  EXPECT_THAT(Try(target, Token("secreT")), refused);
  EXPECT_THAT(Try(target, Token("secret1")), refused);
  EXPECT_THAT(StopServer(target, "test"), refused);
  EXPECT_THAT(DescribeServer(target), refused);
  RawCaller caller(target);
  for (const char* method :
       {"/tensorflow.MasterService/CreateSession", "/tensorflow.WorkerService/GetStatus",
        "/tenon.cluster.ClusterService/Shutdown", "/tenon.cluster.PeerService/Exchange",
        "/no.Such/Method"}) {
    EXPECT_EQ(caller.Call(method, "").error_code(), grpc::StatusCode::UNAUTHENTICATED) << method;
  }
  EXPECT_OK(DescribeServer(target, Token("secret")));
}

TEST_F(CredentialsTest, WithTlsOnlyThoseGetInWhoseCertificateTheAuthorityHasSigned) {
  Start(Certificate("task"));
  const std::string target = server_->target();
  EXPECT_OK(Try(target, Certificate("task")));
  EXPECT_THAT(Try(target, Certificate("stranger")), Not(testing::IsOk()));
  EXPECT_THAT(Try(target, {}), Not(testing::IsOk()));
  RawSocket socket(server_->port());
  EXPECT_TRUE(socket.Send("GET / HTTP/1.1\r\n\r\n"));
  EXPECT_EQ(socket.Receive(), "");
  EXPECT_OK(DescribeServer(target, Certificate("task")));
}

TEST_F(CredentialsTest, APortOfLoopbackIsThereForClientsWithoutCredentials) {
  options_.loopback_port = 0;
  Start(Certificate("task"));
  ASSERT_GT(server_->loopback_port(), 0);
  EXPECT_OK(Try(StrCat("grpc://127.0.0.1:", server_->loopback_port()), {}));
  EXPECT_THAT(Try(server_->target(), {}), Not(testing::IsOk()));
}

TEST_F(CredentialsTest, TasksOfAJobWithATokenAndTlsRunStepsTogether) {
  Credentials both = Certificate("task");
  both.token = "secret";
  // Two servers that find each other's ports free; whoever loses one tries again.
  std::vector<std::unique_ptr<Server>> servers;
  for (int attempt = 0; servers.size() < 2; ++attempt) {
    ASSERT_LT(attempt, 20);
    servers.clear();
    ServerOptions options;
    options.credentials = both;
    std::vector<std::string> addresses;
    for (int i = 0; i < 2; ++i) {
      ServerOptions probe;
      probe.port = 0;
      auto server = Server::Start(probe, AllOps());
      ASSERT_OK(server);
      addresses.push_back(StrCat("127.0.0.1:", (*server)->port()));
    }
    if (addresses[0] == addresses[1]) continue;
    ASSERT_OK(options.cluster.AddTask("ps", 0, addresses[0]));
    ASSERT_OK(options.cluster.AddTask("worker", 0, addresses[1]));
    for (const char* job : {"ps", "worker"}) {
      options.job = job;
      auto server = Server::Start(options, AllOps());
      if (server.ok()) servers.push_back(*std::move(server));
    }
  }
  Graph graph(AllOps());
  GraphBuilding building(graph);
  const Output negated = [] {
    const DeviceScope ps("/job:ps/task:0");
    return Neg(Const({1.0f, 2.0f}));
  }();
  {
    const DeviceScope worker("/job:worker/task:0");
    Neg(negated, {.name = "y"});
  }
  RemoteSessionOptions remote;
  remote.credentials = both;
  remote.optimize = false;
  auto session = MakeRemoteSession(servers[1]->target(), graph, remote);
  ASSERT_OK(session);
  for (int i = 0; i < 20; ++i) {  // the first ones before the stream stands
    const auto y = (*session)->Run({}, {"y"});
    ASSERT_OK(y);
    EXPECT_EQ((*y)[0].data<float>()[1], 2.0f);
  }
}

TEST_F(CredentialsTest, BeyondLoopbackAServerWantsCredentialsOrToBeToldThatItNeedsNone) {
  ServerOptions options;
  options.port = 0;
  ASSERT_OK(options.cluster.AddTask("worker", 0, "0.0.0.0:1"));
  options.job = "worker";
  EXPECT_THAT(Server::Start(options, AllOps()),
              IsError(StatusCode::kFailedPrecondition, "--insecure"));
  options.insecure = true;
  EXPECT_OK(Server::Start(options, AllOps()));
  options.insecure = false;
  options.credentials = Token("secret");
  EXPECT_OK(Server::Start(options, AllOps()));
}

TEST_F(CredentialsTest, ASessionReachesNoFileOutsideTheRoot) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / StrCat("tenon_root_", getpid());
  std::filesystem::create_directories(folder / "root");
  std::ofstream(folder / "outside") << "secret";
  std::ofstream(folder / "root" / "inside") << "open";
  std::filesystem::create_symlink(folder / "outside", folder / "root" / "link");
  std::filesystem::create_directory_symlink(folder, folder / "root" / "up");
  options_.files = FileAccess{FileAccess::Kind::kRoot, folder / "root"};
  Start({});
  Graph graph(AllOps());
  GraphBuilding building(graph);
  ReadFile(Placeholder(DType::kString, {}, {.name = "path"}), {.name = "read"});
  auto session = MakeRemoteSession(server_->target(), graph);
  ASSERT_OK(session);
  const auto read = [&](const std::string& path) {
    return (*session)->Run({{"path", Tensor::Scalar(path)}}, {"read"}).status();
  };
  EXPECT_OK(read("inside"));
  EXPECT_OK(read(folder / "root" / "inside"));
  for (const std::string& path :
       {std::string(folder / "outside"), std::string("../outside"), std::string("link"),
        std::string("up/outside"), std::string("/etc/passwd"), std::string("/proc/self/environ")}) {
    EXPECT_THAT(read(path), IsError(StatusCode::kPermissionDenied, "")) << path;
  }
  std::filesystem::remove_all(folder);
}

TEST(ReadCredentialsTest, WhatIsMissingOrWrongIsNamed) {
  const std::string folder = kTls;
  EXPECT_THAT(ReadCredentials({folder + "task.pem", "", "", ""}),
              IsError(StatusCode::kInvalidArgument, "found 1 of the three"));
  EXPECT_THAT(ReadCredentials({folder + "task.pem", folder + "none", folder + "ca.pem", ""}),
              IsError(StatusCode::kNotFound, "tests/data/tls/none"));
  EXPECT_THAT(ReadCredentials({"", "", "", folder + "none"}),
              IsError(StatusCode::kNotFound, "token"));
  EXPECT_THAT(ReadCredentials({"", "", "", "CMakeLists.txt"}),
              IsError(StatusCode::kInvalidArgument, "printable ASCII"));
}

TEST(FindCredentialsTest, TheEnvironmentHasTheTokenWhereNoFileIsNamed) {
  const std::string folder = kTls;
  const Environment with_token({{kTokenVariable, "secret"}});
  EXPECT_EQ(FindCredentials({}, with_token)->token, "secret");
  EXPECT_TRUE(FindCredentials({}, Environment())->empty());
  EXPECT_TRUE(FindCredentials({}, Environment({{kTokenVariable, ""}}))->empty());
  const auto by_file = FindCredentials(
      {folder + "task.pem", folder + "task.key", folder + "ca.pem", ""}, with_token);
  ASSERT_OK(by_file.status());
  EXPECT_TRUE(by_file->has_tls());
  EXPECT_EQ(by_file->token, "");
  for (const char* wrong : {"two words", "\x01", "t\xc3\xb6ken", "a\n"}) {
    EXPECT_THAT(FindCredentials({}, Environment({{kTokenVariable, wrong}})),
                IsError(StatusCode::kInvalidArgument, "TENON_TOKEN: the token must be"));
  }
}

}  // namespace
}  // namespace tenon
