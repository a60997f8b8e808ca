// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/rpc/run_graph_coding.h"

#include <gtest/gtest.h>

#include "core/proto/proto_io_tensor.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using testing::IsError;

/// A tensor of 1 GiB whose elements nobody may read.
Tensor Gibibyte() {
  static char byte;
  return Tensor(DType::kUInt8, {int64_t{1} << 30},
                WrapBuffer(
                    &byte, size_t{1} << 30, [](void*) {}, nullptr));
}

TEST(RunGraphCodingTest, FetchesOfMoreThanAMessageCanHoldAreAnError) {
  RunGraphCall call;
  call.received = {Gibibyte(), Gibibyte()};
  call.recv_keys = {"a", "b"};
  RunGraphResponse response;
  EXPECT_OK(WriteRunGraphResponse(OkStatus(), true, &call, &response));
  EXPECT_EQ(response.status_code(), error::RESOURCE_EXHAUSTED);
  EXPECT_EQ(response.recv_size(), 0);
  EXPECT_THAT(WriteRunGraphResponse(OkStatus(), false, &call, &response),
              IsError(StatusCode::kResourceExhausted, "fetch fewer at a time"));
}

TEST(RunGraphCodingTest, FeedsOfMoreThanAMessageCanHoldAreAnError) {
  RunGraphCall call;
  call.send.emplace_back("a", Gibibyte());
  call.send.emplace_back("b", Gibibyte());
  RunGraphRequest request;
  EXPECT_THAT(WriteRunGraphRequest(call, &request),
              IsError(StatusCode::kResourceExhausted, "2147483648 bytes"));
}

TEST(RunGraphCodingTest, AnErrorThatIsNotUtf8CanBeRead) {
  RunGraphCall call;
  RunGraphResponse response, read;
  EXPECT_OK(WriteRunGraphResponse(InvalidArgument("'\xff'"), true, &call, &response));
  ASSERT_TRUE(read.ParseFromString(response.SerializeAsString()));
  EXPECT_EQ(read.status_error_message(), "'\\xff'");
}

TEST(RunGraphCodingTest, OneRequestHasOneBudgetToFillMemory) {
  RunGraphRequest request;
  for (const int64_t size : {int64_t{1} << 16, kMaxFillBytes - 1}) {
    NamedTensorProto* fed = request.add_send();
    fed->mutable_tensor()->set_dtype(DT_UINT8);
    fed->mutable_tensor()->mutable_tensor_shape()->add_dim()->set_size(size);
  }
  RunGraphCall call;
  EXPECT_THAT(ReadRunGraphRequest(request, ArrivalMemory(), &call),
              IsError(StatusCode::kInvalidArgument, "fill"));
}

}  // namespace
}  // namespace tenon
