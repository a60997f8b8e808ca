// SPDX-License-Identifier: Apache-2.0
#include "core/device/device_kind.h"

#include <gtest/gtest.h>

#include "core/base/strings.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

TEST(DeviceKindTest, EqualNamesAreOneKind) {
  const StatusOr<DeviceKind> kind = DeviceKind::Named("TEST_1");
  ASSERT_OK(kind.status());
  EXPECT_EQ(kind->name(), "TEST_1");
  EXPECT_EQ(*DeviceKind::Named("TEST_1"), *kind);
  EXPECT_NE(*kind, kCpu);
  EXPECT_EQ(*DeviceKind::Named("CPU"), kCpu);
  EXPECT_EQ(DeviceKind::All().front(), kCpu);
}

TEST(DeviceKindTest, WhatIsNoNameIsSaid) {
  for (const std::string_view name : {"", "gpu", "GPU:0", "A B"}) {
    EXPECT_EQ(DeviceKind::Named(name).status().code(), StatusCode::kInvalidArgument) << name;
  }
}

TEST(DeviceKindTest, APeerCannotNameKindsWithoutEnd) {
  Status status;
  for (int i = 0; i <= DeviceKind::kMaxKinds && status.ok(); ++i) {
    status = DeviceKind::Named(StrCat("ENDLESS_", i)).status();
  }
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(*DeviceKind::Named("ENDLESS_0"), *DeviceKind::Named("ENDLESS_0"));
}

}  // namespace
}  // namespace tenon
