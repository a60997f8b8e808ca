// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/peer/local_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/base/strings.h"

namespace tenon {
namespace {

/// Parts of a message that one call writes.
constexpr size_t kPartsAtOnce = 32;

Status Gone(int error) {
  return Unavailable("the connection within the host has ended",
                     error == 0 ? "" : StrCat(": ", std::strerror(error)));
}

}  // namespace

OwnedFile::~OwnedFile() {
  if (valid()) close(number_);
}

std::pair<OwnedFile, OwnedFile> NewLocalSockets() {
  std::array<int, 2> ends = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return std::pair<OwnedFile, OwnedFile>();
  return {OwnedFile(ends[0]), OwnedFile(ends[1])};
}

cluster::PeerSocket DescribeSocket(const OwnedFile& socket) {
  cluster::PeerSocket description;
  struct stat file = {};
  if (fstat(socket.number(), &file) == 0) description.set_inode(file.st_ino);
  description.set_number(socket.number());
  return description;
}

bool IsSocket(const OwnedFile& file, const cluster::PeerSocket& described) {
  struct stat found = {};
  const auto has = [&](int option, int wanted) {
    int value = 0;
    socklen_t size = sizeof(value);
    return getsockopt(file.number(), SOL_SOCKET, option, &value, &size) == 0 && value == wanted;
  };
  return file.valid() && fstat(file.number(), &found) == 0 && found.st_ino == described.inode() &&
         has(SO_DOMAIN, AF_UNIX) && has(SO_TYPE, SOCK_STREAM);
}

StatusOr<bool> LocalSocket::Write(const grpc::ByteBuffer* message) {
  if (message != nullptr) {
    const auto size = static_cast<uint32_t>(message->Length());
    std::memcpy(head_.data(), &size, kHeadBytes);
    head_left_ = kHeadBytes;
    message->Dump(&slices_);
    next_ = written_ = 0;
  }
  while (head_left_ > 0 || next_ < slices_.size()) {
    std::array<iovec, 1 + kPartsAtOnce> parts;
    size_t count = 0;
    if (head_left_ > 0) parts[count++] = {head_.data() + kHeadBytes - head_left_, head_left_};
    for (size_t i = next_; i < slices_.size() && count < parts.size(); ++i) {
      const size_t begin = i == next_ ? written_ : 0;
      parts[count++] = {const_cast<uint8_t*>(slices_[i].begin()) + begin,
                        slices_[i].size() - begin};
    }
    msghdr all = {};
    all.msg_iov = parts.data();
    all.msg_iovlen = count;
    const ssize_t sent = sendmsg(socket_.number(), &all, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == ENOBUFS)) return false;
    if (sent < 0) return Gone(errno);
    auto left = static_cast<size_t>(sent);
    const size_t of_head = std::min(left, head_left_);
    head_left_ -= of_head;
    left -= of_head;
    while (next_ < slices_.size() && left >= slices_[next_].size() - written_) {
      left -= slices_[next_++].size() - written_;
      written_ = 0;
    }
    written_ += left;
  }
  slices_.clear();
  return true;
}

StatusOr<bool> LocalSocket::Read(absl::FunctionRef<Status(std::string_view message)> receive) {
  char* const to = large_ != nullptr ? large_.get() + large_bytes_ : buffer_.data() + end_;
  const size_t room = large_ != nullptr ? large_size_ - large_bytes_ : buffer_.size() - end_;
  ssize_t came = 0;
  while ((came = recv(socket_.number(), to, room, MSG_DONTWAIT)) < 0 && errno == EINTR) {
  }
  if (came < 0 && errno == EAGAIN) return false;
  if (came <= 0) return Gone(came < 0 ? errno : 0);
  if (large_ == nullptr) {
    end_ += static_cast<size_t>(came);
    TENON_RETURN_IF_ERROR(TakeMessages(receive));
    return true;
  }
  large_bytes_ += static_cast<size_t>(came);
  if (large_bytes_ < large_size_) return true;
  const std::unique_ptr<char[]> message = std::move(large_);
  TENON_RETURN_IF_ERROR(receive(std::string_view(message.get(), large_size_)));
  return true;
}

Status LocalSocket::TakeMessages(absl::FunctionRef<Status(std::string_view message)> receive) {
  while (end_ - begin_ >= kHeadBytes) {
    uint32_t size = 0;
    std::memcpy(&size, buffer_.data() + begin_, kHeadBytes);
    if (size > most_bytes_) {
      return InvalidArgument("a message of ", size, " bytes is announced, and the largest has ",
                             most_bytes_);
    }
    const char* const message = buffer_.data() + begin_ + kHeadBytes;
    const size_t here = end_ - begin_ - kHeadBytes;
    if (here < size) {
      if (size <= buffer_.size() - kHeadBytes) break;
      large_ = std::make_unique_for_overwrite<char[]>(size);
      large_size_ = size;
      large_bytes_ = here;
      std::memcpy(large_.get(), message, here);
      begin_ = end_;
      break;
    }
    begin_ += kHeadBytes + size;
    TENON_RETURN_IF_ERROR(receive(std::string_view(message, size)));
  }
  // The rest is the beginning of a message for which there is room when it is moved.
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  return OkStatus();
}

}  // namespace tenon
