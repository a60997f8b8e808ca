// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/peer/peer_memory.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/base/strings.h"

namespace tenon {
namespace {

/// Fewer bytes cost more to be read than to be sent.
constexpr size_t kUsualLimit = 16 << 10;

}  // namespace

StatusOr<std::optional<size_t>> HostMemoryLimit(const Credentials& credentials) {
  std::optional<size_t> limit = kUsualLimit;
  if (const char* const given = std::getenv("TENON_HOST_MEMORY")) {
    const std::string_view wish = given;
    const auto [end, error] = std::from_chars(wish.data(), wish.data() + wish.size(), *limit);
    if (wish == "off") {
      limit.reset();
    } else if (error != std::errc() || end != wish.data() + wish.size()) {
      return InvalidArgument("TENON_HOST_MEMORY must be a number of bytes or 'off', found '", wish,
                             "'");
    }
  }
  if (credentials.has_tls()) limit.reset();
  return limit;
}

std::string NewMemoryChallenge() {
  std::string bytes(kMemoryChallengeBytes, '\0');
  const ssize_t given = getrandom(bytes.data(), bytes.size(), GRND_NONBLOCK);
  return given == static_cast<ssize_t>(bytes.size()) ? bytes : std::string();
}

ShownMemory::ShownMemory(const std::string& challenge)
    : challenge_(challenge + NewMemoryChallenge()) {
  // Yama, as Ubuntu sets it, has only ancestors read a process's memory; elsewhere processes of the
  // same user may.
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
}

cluster::PeerMemoryPlace ShownMemory::place() const {
  cluster::PeerMemoryPlace place;
  place.set_process(getpid());
  place.set_address(reinterpret_cast<uint64_t>(challenge_.data()));
  return place;
}

bool ShownMemory::IsProof(std::string_view proof) const {
  return !proof.empty() && proof == std::string_view(challenge_).substr(kMemoryChallengeBytes);
}

void ShownMemory::Hide() {
  // Processes that nobody here knows of look at these bytes.
  explicit_bzero(challenge_.data(), challenge_.size());
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

std::unique_ptr<PeerMemory> PeerMemory::Open(const cluster::PeerMemoryPlace& place,
                                             std::string_view challenge) {
  if (place.process() <= 0 || challenge.size() != kMemoryChallengeBytes) return nullptr;
  const auto handle = static_cast<int>(syscall(SYS_pidfd_open, place.process(), 0));
  if (handle < 0) return nullptr;
  std::unique_ptr<PeerMemory> memory(new PeerMemory(place, challenge, handle));
  return memory->Read(place.address(), nullptr, 0).ok() ? std::move(memory) : nullptr;
}

PeerMemory::~PeerMemory() { close(handle_); }

std::string PeerMemory::ReadProof() const {
  std::string proof(kMemoryChallengeBytes, '\0');
  return Read(shown_ + kMemoryChallengeBytes, proof.data(), proof.size()).ok() ? proof : "";
}

OwnedFile PeerMemory::TakeSocket(const cluster::PeerSocket& socket) const {
  OwnedFile file(static_cast<int>(syscall(SYS_pidfd_getfd, handle_, socket.number(), 0)));
  return IsSocket(file, socket) ? std::move(file) : OwnedFile();
}

Status PeerMemory::Read(uint64_t address, void* to, size_t bytes) const {
  // The challenge comes last, so that what was read before was still there.
  std::array<char, kMemoryChallengeBytes> shown = {};
  const size_t all = bytes + shown.size();
  for (size_t done = 0; done < all;) {
    const size_t left = done < bytes ? bytes - done : 0, seen = done < bytes ? 0 : done - bytes;
    const std::array<iovec, 2> own = {iovec{static_cast<char*>(to) + (bytes - left), left},
                                      iovec{shown.data() + seen, shown.size() - seen}};
    const std::array<iovec, 2> theirs = {
        iovec{reinterpret_cast<void*>(address + (bytes - left)), left},
        iovec{reinterpret_cast<void*>(shown_ + seen), shown.size() - seen}};
    const ssize_t n = process_vm_readv(process_, own.data(), 2, theirs.data(), 2, 0);
    if (n <= 0) {
      const int code = n < 0 ? errno : 0;
      const std::string error =
          StrCat("the memory of process ", process_,
                 " cannot be read: ", code != 0 ? std::strerror(code) : "nothing is there");
      return code == EPERM ? PermissionDenied(error) : Unavailable(error);
    }
    done += static_cast<size_t>(n);
  }
  if (std::string_view(shown.data(), shown.size()) != challenge_) {
    return Unavailable("process ", process_, " does not show its memory any more");
  }
  // The process that was read is the one that is meant only if that still lives.
  pollfd ended = {handle_, POLLIN, 0};
  if (poll(&ended, 1, 0) != 0) return Unavailable("process ", process_, " has ended");
  return OkStatus();
}

}  // namespace tenon
