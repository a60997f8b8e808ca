// SPDX-License-Identifier: Apache-2.0
#include "core/device/device_name.h"

#include <gtest/gtest.h>

#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using tenon::testing::IsError;
using tenon::testing::kInvalid;

std::string Canonical(std::string_view text) {
  const auto name = DeviceName::Parse(text);
  EXPECT_OK(name);
  return name.ok() ? name->ToString() : "";
}

std::string Merged(std::string_view a, std::string_view b, bool soft = false) {
  DeviceName merged = *DeviceName::Parse(a);
  const Status status = merged.MergeConstraint(*DeviceName::Parse(b), soft);
  return status.ok() ? merged.ToString() : std::string(Message(status));
}

TEST(DeviceNameTest, EverySpellingHasOneCanonicalForm) {
  EXPECT_EQ(Canonical("/job:ps/replica:0/task:1/device:CPU:0"),
            "/job:ps/replica:0/task:1/device:CPU:0");
  EXPECT_EQ(Canonical("/cpu:0"), "/device:CPU:0");
  EXPECT_EQ(Canonical("/GPU:1/job:a"), "/job:a/device:GPU:1");
  EXPECT_EQ(Canonical("/device:gpu"), "/device:GPU");
  EXPECT_EQ(Canonical("/job:*/task:3/device:CPU:*"), "/task:3/device:CPU");
  EXPECT_EQ(Canonical("/job:a/job:b"), "/job:b");
  EXPECT_EQ(Canonical(""), "");
  EXPECT_EQ(Canonical("/"), "");
}

TEST(DeviceNameTest, WhatCannotBeReadIsNamed) {
  for (const char* text : {"cpu:0", "/job", "/job:", "/job:1a", "/task:-1", "/task:x", "/tpu:0",
                           "/replica:99999999999", "/device:CPU:0x", "/job:a//task:0"}) {
    EXPECT_THAT(DeviceName::Parse(text), IsError(kInvalid, StrCat("'", text, "' is not"))) << text;
  }
}

TEST(DeviceNameTest, MergingUnitesAndContradictionsAreErrors) {
  EXPECT_EQ(Merged("/job:a", "/task:1/cpu:0"), "/job:a/task:1/device:CPU:0");
  EXPECT_EQ(Merged("/job:a", "/job:b"), "devices '/job:a' and '/job:b' name different jobs");
  EXPECT_EQ(Merged("/task:0", "/task:1"), "devices '/task:0' and '/task:1' name different tasks");
  EXPECT_EQ(Merged("/cpu:0", "/gpu:0"),
            "devices '/device:CPU:0' and '/device:GPU:0' name different device types or numbers");
}

TEST(DeviceNameTest, SoftMergingDropsAContradictionInTypeOnly) {
  EXPECT_EQ(Merged("/job:a/cpu:0", "/task:1/gpu:0", true), "/job:a/task:1");
  EXPECT_EQ(Merged("/job:a", "/job:b", true), "devices '/job:a' and '/job:b' name different jobs");
}

TEST(DeviceNameTest, NestedScopesOverride) {
  EXPECT_EQ(*MergeDeviceNames("/job:a/gpu:1", "/job:b/cpu:0"), "/job:b/device:CPU:0");
  EXPECT_EQ(*MergeDeviceNames("/job:a/gpu:1", "/device:CPU"), "/job:a/device:CPU");
  EXPECT_EQ(*MergeDeviceNames("", "/job:b"), "/job:b");
  EXPECT_THAT(MergeDeviceNames("x", ""), IsError(kInvalid, "'x'"));
}

TEST(DeviceNameTest, APartialNameMatchesDevicesThatHaveItsParts) {
  const DeviceName device = *DeviceName::Parse("/job:a/replica:0/task:1/device:CPU:0");
  EXPECT_TRUE(device.IsFull());
  EXPECT_TRUE(DeviceName::Parse("/task:1")->Matches(device));
  EXPECT_TRUE(DeviceName().Matches(device));
  EXPECT_FALSE(DeviceName::Parse("/gpu:0")->Matches(device));
  EXPECT_TRUE(device.SameTask(*DeviceName::Parse("/job:a/replica:0/task:1/device:GPU:3")));
  EXPECT_FALSE(device.SameTask(*DeviceName::Parse("/job:a/replica:0/task:2")));
  EXPECT_EQ(TaskPartOf(device.ToString()), "/job:a/replica:0/task:1");
}

}  // namespace
}  // namespace tenon
