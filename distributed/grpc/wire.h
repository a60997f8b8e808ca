// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <google/protobuf/io/coded_stream.h>

#include <climits>
#include <cstddef>
#include <cstdint>

namespace tenon {

/// The largest message that is sent: protobuf and gRPC count in int, and what surrounds the payload
/// needs room too.
constexpr size_t kMaxMessageBytes = INT_MAX - (16 << 20);

/// Reads the length of a field: the one way in which a length from outside becomes a number to
/// work with. False unless so many bytes are left of what `in` is limited to. REQUIRES: `in` has a
/// limit.
inline bool ReadLength(google::protobuf::io::CodedInputStream& in, int* length) {
  uint32_t found = 0;
  if (!in.ReadVarint32(&found)) return false;
  const int left = in.BytesUntilLimit();
  if (left < 0 || found > static_cast<uint32_t>(left)) return false;
  *length = static_cast<int>(found);
  return true;
}

/// Limits `in` to the `size` bytes of a whole message. False when none can be that large.
inline bool LimitToMessage(google::protobuf::io::CodedInputStream& in, size_t size) {
  if (size > INT_MAX) return false;
  in.SetTotalBytesLimit(INT_MAX);
  in.PushLimit(static_cast<int>(size));
  return true;
}

/// Limits `in` to a field whose length comes next, while it lives. ok() is false when that cannot
/// be.
class FieldLimit {
 public:
  explicit FieldLimit(google::protobuf::io::CodedInputStream& in) : in_(in) {
    int length = 0;
    ok_ = ReadLength(in, &length);
    if (ok_) before_ = in.PushLimit(length);
  }
  ~FieldLimit() {
    if (ok_) in_.PopLimit(before_);
  }
  FieldLimit(const FieldLimit&) = delete;
  FieldLimit& operator=(const FieldLimit&) = delete;
  bool ok() const { return ok_; }

 private:
  google::protobuf::io::CodedInputStream& in_;
  bool ok_;
  google::protobuf::io::CodedInputStream::Limit before_ = 0;
};

}  // namespace tenon
