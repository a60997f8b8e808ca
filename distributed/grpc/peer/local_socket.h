// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <array>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/base/status.h"
#include "proto/peer_service.pb.h"

namespace tenon {

/// A file descriptor, closed at the end.
class OwnedFile {
 public:
  explicit OwnedFile(int number = -1) : number_(number) {}
  OwnedFile(OwnedFile&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  OwnedFile& operator=(OwnedFile&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~OwnedFile();
  bool valid() const { return number_ >= 0; }
  int number() const { return number_; }

 private:
  int number_;
};

/// Two ends of a new connection within this host, of which the second is for another process;
/// neither is valid when the system has none.
std::pair<OwnedFile, OwnedFile> NewLocalSockets();

/// The description by which another process may take one of this process's sockets; see
/// PeerMemory::TakeSocket.
cluster::PeerSocket DescribeSocket(const OwnedFile& socket);
/// Whether `file` is a socket of NewLocalSockets' kind, and the one that was described.
bool IsSocket(const OwnedFile& file, const cluster::PeerSocket& described);

/// One end of a connection between two tasks of one host, whose messages have their lengths before
/// them (four bytes). It never waits. One thread at a time may write, and one read.
///
/// Source: unix(7).
class LocalSocket {
 public:
  /// Messages that come may have up to `most_bytes`.
  explicit LocalSocket(OwnedFile socket, size_t most_bytes = INT_MAX)
      : socket_(std::move(socket)), most_bytes_(most_bytes), buffer_(kBufferBytes) {}

  int number() const { return socket_.number(); }

  /// Begins with a message, or goes on with the last one where there is none. False when the other
  /// end has to read first; Unavailable when it is gone.
  StatusOr<bool> Write(const grpc::ByteBuffer* message);
  /// Reads some of what has come, and gives each message that is complete. False when nothing has
  /// come; Unavailable when the other end is gone; InvalidArgument for a length that no message
  /// has; an error of `receive`.
  StatusOr<bool> Read(absl::FunctionRef<Status(std::string_view message)> receive);

 private:
  static constexpr size_t kBufferBytes = 64 << 10;
  static constexpr size_t kHeadBytes = sizeof(uint32_t);

  Status TakeMessages(absl::FunctionRef<Status(std::string_view message)> receive);

  const OwnedFile socket_;
  const size_t most_bytes_;

  std::array<char, kHeadBytes> head_ = {};  // of the message that leaves
  std::vector<grpc::Slice> slices_;         // its parts
  size_t next_ = 0, written_ = 0;           // the part that leaves, and what has left of it
  size_t head_left_ = 0;

  /// The bytes that have come are [begin_, end_) of the buffer, and the first ones of a message
  /// that is larger than it.
  std::vector<char> buffer_;
  size_t begin_ = 0, end_ = 0;
  std::unique_ptr<char[]> large_;
  size_t large_bytes_ = 0, large_size_ = 0;
};

}  // namespace tenon
