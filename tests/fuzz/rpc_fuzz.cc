// SPDX-License-Identifier: Apache-2.0
//
// Calls to a server of this process, over gRPC, one after the other or beside each other; see
// RpcCaller::Run.
#include <google/protobuf/stubs/logging.h>

#include "core/memory/memory_limit.h"
#include "core/proto/proto_io_graph.h"
#include "core/proto/proto_io_tensor.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/math/math_ops.h"
#include "ops/register.h"
#include "ops/state/state_ops.h"
#include "proto/cluster_service.pb.h"
#include "proto/master.pb.h"
#include "proto/peer_service.pb.h"
#include "proto/worker.pb.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/message_mutation.h"
#include "tests/fuzz/rpc_caller.h"
#include "tests/fuzz/sample_graphs.h"

namespace tenon::testing {
namespace {

constexpr int64_t kRpcMemory = int64_t{256} << 20;
/// Variables and queues that no Reset names stay; a new server begins without.
constexpr int kExecutionsOfAServer = 1000;

void FuzzRpc(absl::Span<const uint8_t> data) {
  google::protobuf::SetLogHandler(nullptr);
  SetCpuMemoryLimit(kRpcMemory);
  const std::string_view input(reinterpret_cast<const char*>(data.data()), data.size());
  // Its lines would fill the fuzzer's own.
  if (input.find("Print") != std::string_view::npos) return;
  static std::unique_ptr<RpcCaller> caller;
  static int executions = 0;
  if (executions++ % kExecutionsOfAServer == 0) {
    caller.reset();
    caller = std::make_unique<RpcCaller>();
  }
  caller->Run(input);
}

using CallList = std::vector<std::pair<uint8_t, std::string>>;

std::string Join(const CallList& calls) {
  std::string input;
  for (const auto& [head, request] : calls) {
    input.push_back(static_cast<char>(head));
    AppendPiece(&input, request);
  }
  return input;
}

void MutateRpc(std::string* data, size_t max_size, uint64_t seed) {
  Random random(seed);
  CallList calls;
  std::string_view rest = *data;
  while (!rest.empty()) {
    const auto head = static_cast<uint8_t>(rest[0]);
    rest.remove_prefix(1);
    std::string_view request;
    if (!TakePiece(&rest, &request)) break;
    calls.emplace_back(head, request);
  }
  if (calls.empty() || random.Chance(3)) return MutateAsLibFuzzer(data, max_size);
  const int i = random.Below(static_cast<int>(calls.size()));
  auto& [head, request] = calls[i];
  switch (random.Below(16)) {
    case 0:
      calls.insert(calls.begin() + i, calls[i]);
      break;
    case 1:
      if (calls.size() > 1) calls.erase(calls.begin() + i);
      break;
    case 2:
      std::swap(calls[i], calls[random.Below(static_cast<int>(calls.size()))]);
      break;
    case 3:
    case 4:
      head ^= kDoNotWait;
      break;
    case 5:
      calls.emplace(calls.begin() + i, random.Below(static_cast<int>(RpcMethods().size())), "");
      break;
    default: {
      const int number = (head & 0x7f) % static_cast<int>(RpcMethods().size());
      if (number == kPeer) {
        MutatePeerMessage(&request, max_size, random);
      } else {
        MutateAsMessage(*RpcMethods()[number].request, &request, max_size, random);
      }
    }
  }
  const std::string changed = Join(calls);
  if (changed.size() <= max_size) *data = changed;
}

NodeDef* AddFloatNode(GraphDef* graph, const char* name, const char* op,
                      std::vector<const char*> inputs) {
  NodeDef* node = graph->add_node();
  node->set_name(name);
  node->set_op(op);
  for (const char* input : inputs) node->add_input(input);
  (*node->mutable_attr())["T"].set_type(DT_FLOAT);
  return node;
}

/// y = x * w, with w a variable, and perhaps a loop without end whose result would be exit:0.
std::string NumbersGraph(bool with_loop) {
  Graph graph(AllOps());
  GraphBuilding building(graph);
  const Output x = Placeholder(DType::kFloat, {}, {.name = "x"});
  const Output w = VariableV2({2}, DType::kFloat, {.name = "w"});
  Assign(w, Const({1.0f, 2.0f}, {.name = "c"}), {.name = "init"});
  Mul(x, w, {.name = "y"});
  Const(true, {.name = "true"});
  CreateSessionRequest request;
  GraphDef* def = request.mutable_graph_def();
  TENON_CHECK(GraphToProto(graph, def).ok());
  if (with_loop) {
    for (NodeDef& node : *def->mutable_node()) {
      if (node.name() == "true") node.add_input("^merge");
    }
    (*AddFloatNode(def, "enter", "Enter", {"c"})->mutable_attr())["frame_name"].set_s("loop");
    (*AddFloatNode(def, "merge", "Merge", {"enter", "next"})->mutable_attr())["N"].set_i(2);
    AddFloatNode(def, "go_on", "LoopCond", {"true"})->mutable_attr()->clear();
    AddFloatNode(def, "switch", "Switch", {"merge", "go_on"});
    AddFloatNode(def, "next", "NextIteration", {"switch:1"});
    AddFloatNode(def, "exit", "Exit", {"switch"});
  }
  return request.SerializeAsString();
}

RunStepRequest Step(const std::string& fetch, const std::string& target) {
  RunStepRequest request;
  request.set_session_handle(kLastHandle);
  if (!fetch.empty()) request.add_fetch(fetch);
  if (!target.empty()) request.add_target(target);
  return request;
}

template <typename Request>
std::string OfSession(Request request, const std::string& handle = kLastHandle) {
  request.set_session_handle(handle);
  return request.SerializeAsString();
}

/// A client: steps, an extension, and what may come beside them.
void AddMasterSeeds(std::vector<std::string>* seeds) {
  RunStepRequest feeding = Step("y:0", "");
  NamedTensorProto* feed = feeding.add_feed();
  feed->set_name("x:0");
  feed->mutable_tensor()->set_dtype(DT_FLOAT);
  feed->mutable_tensor()->mutable_tensor_shape()->add_dim()->set_size(2);
  feed->mutable_tensor()->add_float_val(3);
  ExtendSessionRequest extend;
  AddFloatNode(extend.mutable_graph_def(), "more", "Neg", {"w"});
  const std::string init = Step("", "init").SerializeAsString();
  const std::string run = feeding.SerializeAsString();
  const std::string close = OfSession(CloseSessionRequest());
  seeds->push_back(Join({{kCreate, NumbersGraph(false)},
                         {kRun, init},
                         {kRun, run},
                         {kExtend, OfSession(extend)},
                         {kRun, Step("more:0", "").SerializeAsString()},
                         {kList, OfSession(ListDevicesRequest())},
                         {kClose, close}}));
  const std::string wait = Step("exit:0", "").SerializeAsString();
  for (const auto& [number, request] :
       {std::pair(kClose, close), std::pair(kReset, std::string()),
        std::pair(kExtend, OfSession(extend)), std::pair(kCleanupAll, std::string())}) {
    seeds->push_back(Join({{kCreate, NumbersGraph(true)},
                           {kRun | kDoNotWait, wait},
                           {kRun | kDoNotWait, init},
                           {static_cast<uint8_t>(number), request},
                           {kRun, run}}));
  }
  for (const SampleGraph& sample : SampleGraphs()) {
    if (sample.bytes.size() > 50'000) continue;
    CreateSessionRequest create;
    *create.mutable_graph_def() = sample.graph;
    RunStepRequest step = Step("", "");
    for (const auto& [name, value] : sample.steps.feeds) {
      NamedTensorProto* fed = step.add_feed();
      fed->set_name(name);
      TENON_CHECK(TensorToProto(value, fed->mutable_tensor()).ok());
    }
    for (const std::string& fetch : sample.steps.fetches) step.add_fetch(fetch);
    seeds->push_back(
        Join({{kCreate, create.SerializeAsString()}, {kRun, step.SerializeAsString()}}));
  }
}

/// A master: a partition that takes one value and leaves another, whole or on a peer stream.
void AddWorkerSeeds(std::vector<std::string>* seeds) {
  const std::string device = "/job:localhost/replica:0/task:0/device:CPU:0";
  const auto key = [&device](const char* name) {
    return StrCat(device, ";", kIncarnation, ";", device, ";", name, ";0:0");
  };
  CreateWorkerSessionRequest create;
  create.set_master_task("/job:master/replica:0/task:0");
  RegisterGraphRequest graph;
  for (const char* op : {"_Recv", "_Send"}) {
    const bool is_send = op[1] == 'S';
    NodeDef* node = graph.mutable_graph_def()->add_node();
    node->set_name(is_send ? "send" : "recv");
    node->set_op(op);
    node->set_device(device);
    if (is_send) node->add_input("recv");
    auto& attrs = *node->mutable_attr();
    attrs[is_send ? "T" : "tensor_type"].set_type(DT_FLOAT);
    attrs["tensor_name"].set_s(is_send ? "out" : "in");
    attrs["send_device"].set_s(device);
    attrs["recv_device"].set_s(device);
    attrs["send_device_incarnation"].set_i(kIncarnationNumber);
    attrs["client_terminated"].set_b(true);
  }
  RunGraphRequest run;
  run.set_graph_handle("0000000000000000");
  run.set_session_handle("w");
  run.set_step_id(5);
  NamedTensorProto* sent = run.add_send();
  sent->set_name(key("in"));
  sent->mutable_tensor()->set_dtype(DT_FLOAT);
  sent->mutable_tensor()->mutable_tensor_shape();
  sent->mutable_tensor()->add_float_val(2);
  RecvTensorRequest recv;
  recv.set_step_id(5);
  recv.set_rendezvous_key(key("out"));
  CleanupGraphRequest clean;
  clean.set_step_id(5);
  DeregisterGraphRequest deregister;
  deregister.set_graph_handle("0000000000000000");
  const std::string opened = OfSession(create, "w"), registered = OfSession(graph, "w");
  seeds->push_back(Join({{kCreateWorker, opened},
                         {kRegister, registered},
                         {kRunGraph, run.SerializeAsString()},
                         {kRecv, recv.SerializeAsString()},
                         {kCleanupGraph, clean.SerializeAsString()},
                         {kDeregister, OfSession(deregister, "w")},
                         {kDeleteWorker, OfSession(DeleteWorkerSessionRequest(), "w")}}));
  RunGraphRequest fetching = run;
  fetching.add_recv_key(key("out"));
  cluster::PeerFrames first, second;
  auto* frame = first.add_frame();
  frame->set_call(1);
  *frame->mutable_run_graph() = run;
  frame = first.add_frame();
  frame->set_call(2);
  *frame->mutable_recv_tensor() = recv;
  frame = second.add_frame();
  frame->set_call(3);
  *frame->mutable_run_graph() = fetching;
  frame->mutable_run_graph()->set_step_id(6);
  frame = second.add_frame();
  frame->set_call(2);
  frame->set_cancel(true);
  *second.add_frame()->mutable_cleanup_graph() = clean;
  seeds->push_back(Join({{kCreateWorker, opened},
                         {kRegister, registered},
                         {kPeer, first.SerializeAsString()},
                         {kPeer, second.SerializeAsString()}}));
  run.clear_send();
  seeds->push_back(Join({{kCreateWorker, opened},
                         {kRegister, registered},
                         {kRecv | kDoNotWait, recv.SerializeAsString()},
                         {kRunGraph | kDoNotWait, run.SerializeAsString()},
                         {kCleanupGraph, clean.SerializeAsString()},
                         {kRunGraph, fetching.SerializeAsString()}}));
}

std::vector<std::string> RpcSeeds() {
  std::vector<std::string> seeds;
  AddMasterSeeds(&seeds);
  AddWorkerSeeds(&seeds);
  cluster::TaskEndedRequest ended;
  ended.set_job("localhost");
  ended.set_message("why");
  seeds.push_back(Join({{kList, ""},
                        {kPartialRun, ""},
                        {kGetStatus, ""},
                        {kLogging, ""},
                        {kTaskEnded, ended.SerializeAsString()},
                        {kServerStatus, ""}}));
  return seeds;
}

const bool rpc_registered =
    RegisterFuzzTarget({.name = "rpc", .run = FuzzRpc, .mutate = MutateRpc, .seeds = RpcSeeds});

}  // namespace
}  // namespace tenon::testing
