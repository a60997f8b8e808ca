// SPDX-License-Identifier: Apache-2.0
#include "data/files/standard_input.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <optional>
#include <string>

#include "core/base/mutex.h"
#include "core/base/strings.h"
#include "core/memory/counted_memory.h"
#include "data/files/local_file.h"

namespace tenon {
namespace {

constexpr size_t kChunkBytes = 1 << 20;
/// How often a reader that waits for bytes looks whether it was cancelled.
constexpr int kLookMs = 100;

std::string TemporaryPlace() {
  const char* const folder = std::getenv("TMPDIR");
  return folder == nullptr || *folder == '\0' ? "/tmp" : folder;
}

/// Says of an error where bytes are kept.
Status WhileKeeping(int error, const std::string& folder) {
  return Annotate(StatusOfErrno(error, "write to a file in", folder),
                  "the standard input cannot be kept to be read again ($TMPDIR says where)");
}

/// Reads what there is, waiting for it; nothing at the end.
StatusOr<size_t> ReadSome(int fd, CountedVector<char>* out, const FileContext& context) {
  while (true) {
    TENON_RETURN_IF_ERROR(context.CheckCancelled());
    pollfd waited = {fd, POLLIN, 0};
    if (poll(&waited, 1, kLookMs) == 0) continue;
    const ssize_t n = read(fd, out->data(), out->size());
    if (n >= 0) return static_cast<size_t>(n);
    if (errno != EINTR && errno != EAGAIN) return StatusOfErrno(errno, "read", "-");
  }
}

/// 0, or the error.
int WriteAll(int fd, const char* data, size_t size) {
  while (size > 0) {
    const ssize_t n = write(fd, data, size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    data += n;
    size -= static_cast<size_t>(n);
  }
  return 0;
}

/// The text that came through the standard input of this process.
struct StandardInput {
  Mutex mu;
  std::optional<StatusOr<std::unique_ptr<KeptBytes>>> kept ABSL_GUARDED_BY(mu);
};

StandardInput& TheStandardInput() {
  static auto* const input = new StandardInput;
  return *input;
}

}  // namespace

StatusOr<std::unique_ptr<KeptBytes>> KeptBytes::Read(int fd, const FileContext& context) {
  const std::string folder = TemporaryPlace();
  std::string name = JoinPath(folder, "tenon_input_XXXXXX");
  const int kept = mkostemp(name.data(), O_CLOEXEC);
  if (kept < 0) return WhileKeeping(errno, folder);
  unlink(name.c_str());
  std::unique_ptr<KeptBytes> bytes(new KeptBytes(kept));
  CountedVector<char> chunk(kChunkBytes);
  while (true) {
    TENON_ASSIGN_OR_RETURN(const size_t n, ReadSome(fd, &chunk, context));
    if (n == 0) return bytes;
    const int error = WriteAll(kept, chunk.data(), n);
    if (error != 0) return WhileKeeping(error, folder);
    bytes->size_ += static_cast<int64_t>(n);
  }
}

KeptBytes::~KeptBytes() { close(fd_); }

StatusOr<std::unique_ptr<InputFile>> KeptBytes::Open() const {
  const int fd = fcntl(fd_, F_DUPFD_CLOEXEC, 0);
  if (fd < 0) return StatusOfErrno(errno, "open", "-");
  return InputOfDescriptor(fd, "-", size_);
}

Status KeepStandardInput(const FileContext& context) {
  StandardInput& input = TheStandardInput();
  const MutexLock lock(input.mu);
  if (!input.kept) input.kept = KeptBytes::Read(STDIN_FILENO, context);
  return input.kept->status();
}

StatusOr<std::unique_ptr<InputFile>> OpenStandardInput() {
  StandardInput& input = TheStandardInput();
  const MutexLock lock(input.mu);
  if (!input.kept) {
    return FailedPrecondition(
        "the standard input, '-', was read by another process: no other one can read it");
  }
  if (!input.kept->ok()) return input.kept->status();
  return (**input.kept)->Open();
}

}  // namespace tenon
