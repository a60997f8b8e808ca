// SPDX-License-Identifier: Apache-2.0
#include "core/device/device_kind.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

TEST(DeviceKindTest, EqualNamesAreOneKind) {
  const DeviceKind kind = DeviceKind::Named("TEST_1");
  EXPECT_EQ(kind.name(), "TEST_1");
  EXPECT_EQ(DeviceKind::Named("TEST_1"), kind);
  EXPECT_EQ(DeviceKind::Find("TEST_1"), kind);
  EXPECT_NE(kind, kCpu);
  EXPECT_EQ(DeviceKind::Named("CPU"), kCpu);
  EXPECT_EQ(DeviceKind::All().front(), kCpu);
}

TEST(DeviceKindTest, WhatAnotherTaskNamesIsNotKeptHere) {
  const size_t before = DeviceKind::All().size();
  EXPECT_EQ(DeviceKind::Find("NOBODY_BROUGHT_IT"), DeviceKind::kUnknown);
  EXPECT_EQ(DeviceKind::Find(""), DeviceKind::kUnknown);
  EXPECT_EQ(DeviceKind::All().size(), before);
  EXPECT_EQ(DeviceKind::kUnknown.name(), "");
}

}  // namespace
}  // namespace tenon
