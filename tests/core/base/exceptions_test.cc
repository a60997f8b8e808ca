// SPDX-License-Identifier: Apache-2.0
#include "core/base/exceptions.h"

#include <gtest/gtest.h>

#include <new>
#include <system_error>
#include <vector>

namespace tenon {
namespace {

TEST(ExceptionsTest, WhatTheStandardLibraryThrowsBecomesAStatus) {
  const auto run = [](auto fn) { return CatchExceptions(fn); };
  EXPECT_EQ(run([] { return OkStatus(); }), OkStatus());
  EXPECT_EQ(run([] { return Aborted("mine"); }), Aborted("mine"));
  EXPECT_EQ(run([]() -> Status { throw std::bad_alloc(); }).code(), StatusCode::kResourceExhausted);
  size_t huge = SIZE_MAX;
  EXPECT_EQ(
      run([&] { return std::vector<char>(huge).empty() ? OkStatus() : Internal("?"); }).code(),
      StatusCode::kResourceExhausted);
  EXPECT_EQ(
      run([]() -> Status {
        throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
      }).code(),
      StatusCode::kResourceExhausted);
  EXPECT_EQ(run([]() -> Status { throw 1; }).code(), StatusCode::kInternal);
}

}  // namespace
}  // namespace tenon
