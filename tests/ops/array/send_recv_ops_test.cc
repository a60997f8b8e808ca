// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "ops/register.h"
#include "runtime/execute/local_rendezvous.h"
#include "tests/testing/op_runner.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

constexpr char kKey[] =
    "/job:ps/replica:0/task:0/device:CPU:0;fffffffffffffffe;/job:w/replica:0/task:0/"
    "device:CPU:0;x;";

/// One end of an edge: a kernel and what it runs with.
struct End {
  End(const std::string& op, LocalRendezvous* rendezvous, DType type = DType::kFloat) {
    const OpRegistration* registration = AllOps().Find(op);
    const bool sends = op.ends_with("Send");
    const AttributeMap attrs = {{sends ? "T" : "tensor_type", type},
                                {"tensor_name", "x"},
                                {"send_device", "/job:ps/replica:0/task:0/device:CPU:0"},
                                {"send_device_incarnation", int64_t{-2}},
                                {"recv_device", "/job:w/replica:0/task:0/device:CPU:0"},
                                {"client_terminated", false}};
    outputs = sends ? DTypeVector{} : DTypeVector{type};
    KernelConstruction c("end", op, attrs, sends ? DTypeVector{type} : DTypeVector{}, outputs,
                         TestDevice());
    kernel = *registration->MakeKernel(c);
    run.rendezvous = rendezvous;
    context = std::make_unique<KernelContext>(on_device, outputs, &input, sends ? 1 : 0, &output);
  }

  std::unique_ptr<Kernel> kernel;
  ProgramRun run;
  DeviceRun on_device{run, TestDevice()};
  DTypeVector outputs;
  Value input, output;
  std::unique_ptr<KernelContext> context;
};

class SendRecvOpsTest : public ::testing::TestWithParam<std::string> {
 protected:
  LocalRendezvous rendezvous;
  End send{StrCat(GetParam(), "Send"), &rendezvous};
  End recv{StrCat(GetParam(), "Recv"), &rendezvous};
  int done = 0;
  Status status;
  void StartRecv() {
    recv.kernel->ComputeAsync(*recv.context, [this](Status s) {
      status = s;
      ++done;
    });
  }
};
INSTANTIATE_TEST_SUITE_P(Memory, SendRecvOpsTest, ::testing::Values("_", "_Host"),
                         [](const auto& info) { return info.param == "_" ? "device" : "host"; });

TEST_P(SendRecvOpsTest, TheTensorArrivesWhicheverEndIsFirst) {
  send.input.tensor = Tensor::Scalar(7.0f);
  StartRecv();
  EXPECT_EQ(done, 0);
  ASSERT_OK(send.kernel->Compute(*send.context));
  EXPECT_EQ(done, 1);
  ASSERT_OK(status);
  EXPECT_EQ(recv.output.tensor.scalar<float>(), 7);
  EXPECT_FALSE(recv.context->is_output_dead);
}

TEST_P(SendRecvOpsTest, TheKeyNamesFrameAndIteration) {
  for (const auto& [frame, iteration] :
       {std::pair<uint64_t, int64_t>{0, 0}, {2414045154581136951u, 2}}) {
    const std::string key = StrCat(kKey, frame, ":", iteration);
    recv.context->frame = send.context->frame = frame;
    recv.context->iteration = send.context->iteration = iteration;
    done = 0;
    StartRecv();
    ASSERT_OK(rendezvous.Send(key, Tensor::Scalar(1.0f), false));
    EXPECT_EQ(done, 1);
    send.input.tensor = Tensor::Scalar(2.0f);
    ASSERT_OK(send.kernel->Compute(*send.context));
    Tensor sent;
    bool dead = false;
    ASSERT_OK(rendezvous.Take(key, &sent, &dead));
    EXPECT_EQ(sent.scalar<float>(), 2);
  }
}

TEST_P(SendRecvOpsTest, ADeadInputMakesADeadOutput) {
  send.context->is_input_dead = true;
  ASSERT_OK(send.kernel->Compute(*send.context));
  StartRecv();
  ASSERT_OK(status);
  EXPECT_TRUE(recv.context->is_output_dead);
  EXPECT_FALSE(recv.output.tensor.valid());
}

TEST_P(SendRecvOpsTest, AWrongDtypeAndAnAbortAreErrors) {
  StartRecv();
  End other(StrCat(GetParam(), "Send"), &rendezvous, DType::kInt32);
  other.input.tensor = Tensor::Scalar<int32_t>(1);
  ASSERT_OK(other.kernel->Compute(*other.context));
  EXPECT_THAT(status, IsError(StatusCode::kInternal, "received a tensor of int32, wanted float"));
  rendezvous.Abort(Aborted("gone"));
  StartRecv();
  EXPECT_THAT(status, IsError(StatusCode::kAborted, "gone"));
}

}  // namespace
}  // namespace tenon::testing
