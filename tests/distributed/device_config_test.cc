// SPDX-License-Identifier: Apache-2.0
#include "distributed/protocol/device_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/build/building.h"
#include "core/proto/proto_io_graph.h"
#include "distributed/protocol/server.h"
#include "ops/array/constants.h"
#include "ops/register.h"
#include "proto/master.pb.h"
#include "tests/distributed/raw_client.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using testing::IsError;

DeviceName Name(const std::string& text) { return *DeviceName::Parse(text); }

TEST(DeviceOptionsTest, WhatAConfigSaysOfGpus) {
  ConfigProto config;
  config.mutable_gpu_options()->set_per_process_gpu_memory_fraction(0.5);
  config.mutable_gpu_options()->set_visible_device_list("1,0");
  auto options = DeviceOptionsOf(config);
  ASSERT_OK(options.status());
  EXPECT_EQ(options->gpu.memory_fraction, 0.5);
  EXPECT_EQ(options->gpu.visible_devices, "1,0");
  EXPECT_TRUE(options->gpu.allow_growth);
  EXPECT_FALSE(options->gpus.has_value());
  EXPECT_EQ(options->cpus, 1);
  (*config.mutable_device_count())["CPU"] = 2;
  (*config.mutable_device_count())["GPU"] = 0;
  options = DeviceOptionsOf(config);
  ASSERT_OK(options.status());
  EXPECT_EQ(options->cpus, 2);
  EXPECT_EQ(options->gpus, 0);
  (*config.mutable_device_count())["GPU"] = -1;
  EXPECT_THAT(DeviceOptionsOf(config).status(),
              IsError(StatusCode::kInvalidArgument, "found -1 for device_count of GPU"));
}

TEST(DeviceOptionsTest, ACountIsTheMostThatThereMayBe) {
  ConfigProto config;
  (*config.mutable_device_count())["GPU"] = 1000;
  const auto gpus = ListGpus();
  EXPECT_EQ(DeviceOptionsOf(config)->gpus, gpus.ok() ? static_cast<int>(gpus->size()) : 0);
}

TEST(DeviceOptionsTest, ASessionMayUseSoManyDevicesOfEachTask) {
  ConfigProto config;
  EXPECT_TRUE(MayUse(Name("/job:a/task:0/device:GPU:7"), config));
  (*config.mutable_device_count())["GPU"] = 1;
  (*config.mutable_device_count())["CPU"] = 0;
  EXPECT_TRUE(MayUse(Name("/job:a/task:0/device:GPU:0"), config));
  EXPECT_FALSE(MayUse(Name("/job:a/task:3/device:GPU:1"), config));
  EXPECT_TRUE(MayUse(Name("/job:a/task:0/device:CPU:0"), config));
  EXPECT_FALSE(MayUse(Name("/job:a/task:0/device:CPU:1"), config));
}

/// A server with two CPUs and no GPU, and sessions with a node on a device.
class DeviceCountTest : public ::testing::Test {
 protected:
  DeviceCountTest() {
    ServerOptions options;
    options.port = 0;
    options.devices.cpus = 2;
    options.devices.gpus = 0;
    auto server = Server::Start(options, AllOps());
    EXPECT_OK(server.status());
    server_ = *std::move(server);
  }

  grpc::Status Open(const std::string& device, const ConfigProto& config) {
    Graph graph(AllOps());
    {
      GraphBuilding building(graph);
      const DeviceScope on(device);
      Const(1.0f, {.name = "c"});
    }
    CreateSessionRequest request;
    EXPECT_OK(GraphToProto(graph, request.mutable_graph_def()));
    *request.mutable_config() = config;
    CreateSessionResponse response;
    testing::RawCaller caller(server_->target());
    return caller.Call("/tensorflow.MasterService/CreateSession", request, &response);
  }

  std::unique_ptr<Server> server_;
};

TEST_F(DeviceCountTest, LeavesASessionSoManyDevicesOfAServer) {
  ConfigProto config;
  EXPECT_TRUE(Open("/device:CPU:1", config).ok());
  (*config.mutable_device_count())["CPU"] = 1;
  EXPECT_TRUE(Open("/device:CPU:0", config).ok());
  EXPECT_THAT(Open("/device:CPU:1", config).error_message(),
              ::testing::HasSubstr("was explicitly assigned to /device:CPU:1"));
  config.set_allow_soft_placement(true);
  EXPECT_TRUE(Open("/device:CPU:1", config).ok());
}

TEST_F(DeviceCountTest, AServerSaysWhyItHasNoGpu) {
  EXPECT_THAT(Open("/device:GPU:0", {}).error_message(),
              ::testing::HasSubstr(" No GPU is there: it has been asked to use none."));
}

}  // namespace
}  // namespace tenon
