// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/rpc/channel.h"

#include <arpa/inet.h>
#include <grpcpp/create_channel.h>

#include <algorithm>
#include <climits>

#include "core/base/strings.h"
#include "distributed/grpc/rpc/host_address.h"
#include "distributed/grpc/rpc/security.h"

namespace tenon {
namespace {

// gRPC's defaults suit small messages: with these, 128 MiB between two processes go up to twice as
// fast.
constexpr int kFrameBytes = 4 << 20;
// Small enough that what is read stays in the processor's cache until it is copied, and its memory
// is used again.
constexpr int kReadBytes = 256 << 10;
constexpr int kLookaheadBytes = 64 << 20;

// A host that loses its power or its network says nothing, so who waits for it has to ask.
constexpr int kFrequentMs = 20'000;
constexpr int kAnswerMs = 20'000;
constexpr int kHandshakeMs = 20'000;
constexpr int kRareMs = 310'000;  // servers hang up on clients that ask every 300 s or more often

template <typename Set>
void SetTransportOptions(int keepalive_ms, Set set) {
  set(GRPC_ARG_KEEPALIVE_TIME_MS, keepalive_ms);
  set(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kAnswerMs);
  set(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);  // no limit; a step may take hours
  set(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kFrameBytes);
  set(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kLookaheadBytes);
  // gRPC has no option for the window of a connection, which starts at 64 KiB: with the probe it
  // grows to what the network takes; without, each larger tensor waits for the receiver's leave.
  set(GRPC_ARG_HTTP2_BDP_PROBE, 1);
  set(GRPC_ARG_TCP_READ_CHUNK_SIZE, kReadBytes);
  set(GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, kReadBytes);
}

/// gRPC's name for the server at "host:port". Addresses of IPv4 need no resolver, which takes
/// milliseconds when a process first asks it.
std::string TargetOf(const std::string& address) {
  in_addr parsed;
  const bool is_v4 = inet_pton(AF_INET, HostOf(address).c_str(), &parsed) == 1;
  return is_v4 ? StrCat("ipv4:", address) : address;
}

}  // namespace

std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address,
                                           const Credentials& credentials, Keepalive keepalive) {
  grpc::ChannelArguments args;
  SetTransportOptions(keepalive == Keepalive::kFrequent ? kFrequentMs : kRareMs,
                      [&](const char* name, int value) { args.SetInt(name, value); });
  args.SetMaxReceiveMessageSize(INT_MAX);
  args.SetMaxSendMessageSize(INT_MAX);
  args.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  args.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  args.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  // How long one attempt to connect may take, in spite of the name: a busy or a distant server
  // needs more than the pause between two attempts.
  args.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5000);
  // Servers of one process, as tests have them, must not share connections.
  args.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(TargetOf(address), ChannelCredentialsOf(credentials), args);
}

void SetServerOptions(const ServerLimits& limits, grpc::ServerBuilder* builder) {
  SetTransportOptions(
      kFrequentMs, [&](const char* name, int value) { builder->AddChannelArgument(name, value); });
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                              kFrequentMs / 2);
  builder->SetMaxReceiveMessageSize(
      static_cast<int>(std::clamp<int64_t>(limits.message_bytes, 1, INT_MAX)));
  builder->SetMaxSendMessageSize(INT_MAX);
  // Beyond it calls are refused anyway; less would let calls wait behind those that they end.
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS,
                              static_cast<int>(std::clamp<int64_t>(limits.calls, 1, INT_MAX)));
  builder->SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder->SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  // Who connects and says nothing.
  builder->AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMs);
  // Calls may wait for hours: a queue's dequeue, a synchronous step.
  builder->AddChannelArgument("grpc.server_max_unrequested_time_in_server", 3600);
}

}  // namespace tenon
