// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "core/device/rendezvous.h"
#include "core/tensor/resource_store.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using tenon::testing::IsError;

TEST(RendezvousKeyTest, TheTextIsThatOfTensorFlow) {
  const RendezvousKey key{"/job:a/replica:0/task:0/device:CPU:0",
                          0xabc,
                          "/job:b/replica:0/task:0/device:CPU:0",
                          "edge_1_x",
                          0,
                          0};
  const std::string text = key.ToString();
  EXPECT_EQ(text,
            "/job:a/replica:0/task:0/device:CPU:0;0000000000000abc;"
            "/job:b/replica:0/task:0/device:CPU:0;edge_1_x;0:0");
  const auto back = RendezvousKey::Parse(text);
  ASSERT_OK(back);
  EXPECT_EQ(back->ToString(), text);
  EXPECT_EQ(back->src_incarnation, 0xabcu);
}

TEST(RendezvousKeyTest, AnythingElseIsRefused) {
  for (const char* text : {"", "a;b;c;d;e", "a;0000000000000abc;b;c", "a;0000000000000abc;b;c;0",
                           "a;0000000000000abc;b;c;0:0;x", "a;abc;b;c;0:0",
                           "a;000000000000000g;b;c;0:0", "a;0000000000000abc;b;c;-1:0"}) {
    EXPECT_THAT(RendezvousKey::Parse(text), IsError(StatusCode::kInvalidArgument, "rendezvous key"))
        << text;
  }
}

struct Counter final : Resource {
  static constexpr std::string_view kKind = "counter";
  std::string_view kind() const override { return kKind; }
  int value = 0;
};
struct Other final : Resource {
  static constexpr std::string_view kKind = "other";
  std::string_view kind() const override { return kKind; }
};

StatusOr<std::shared_ptr<Counter>> MakeCounter() { return std::make_shared<Counter>(); }

TEST(ResourceStoreTest, OneNameIsOneResource) {
  ResourceStore store("ps");
  const auto a = store.LookupOrCreate<Counter>("", "n", MakeCounter);
  ASSERT_OK(a);
  EXPECT_EQ(*store.LookupOrCreate<Counter>("ps", "n", MakeCounter), *a);
  EXPECT_EQ(*store.Lookup<Counter>("", "n"), *a);
  EXPECT_NE(*store.LookupOrCreate<Counter>("elsewhere", "n", MakeCounter), *a);
}

TEST(ResourceStoreTest, KindsDoNotMeet) {
  ResourceStore store("ps");
  ASSERT_OK(store.LookupOrCreate<Counter>("", "n", MakeCounter));
  EXPECT_THAT(store.Lookup<Other>("", "n"),
              IsError(StatusCode::kNotFound, "Resource ps/n/other does not exist."));
}

TEST(ResourceStoreTest, AFailedCreationLeavesNothing) {
  ResourceStore store;
  const auto fail = []() -> StatusOr<std::shared_ptr<Counter>> { return Internal("no"); };
  EXPECT_THAT(store.LookupOrCreate<Counter>("", "n", fail), IsError(StatusCode::kInternal, "no"));
  EXPECT_FALSE(store.Lookup<Counter>("", "n").ok());
}

TEST(ResourceStoreTest, AResourceOutlivesItsRemovalWhileItIsHeld) {
  ResourceStore store;
  const auto held = *store.LookupOrCreate<Counter>("", "n", MakeCounter);
  ASSERT_OK(store.Delete("", "counter", "n"));
  EXPECT_THAT(store.Delete("", "counter", "n"), IsError(StatusCode::kNotFound, "does not exist"));
  held->value = 1;
  EXPECT_EQ((*store.LookupOrCreate<Counter>("", "n", MakeCounter))->value, 0);
  store.Clear("");
  EXPECT_FALSE(store.Lookup<Counter>("", "n").ok());
}

}  // namespace
}  // namespace tenon
