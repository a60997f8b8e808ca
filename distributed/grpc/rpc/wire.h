// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/message_lite.h>

#include <climits>
#include <cstddef>
#include <cstdint>

namespace tenon {

/// The largest message that is sent: protobuf and gRPC count in int, and what surrounds the payload
/// needs room too.
constexpr size_t kMaxMessageBytes = INT_MAX - (16 << 20);

/// Reads the number in front of a field, its tag or its length: no more than five bytes, as
/// protobuf's own parser has it. False when there is none.
inline bool ReadShortVarint(google::protobuf::io::CodedInputStream& in, uint64_t* number) {
  const int begin = in.CurrentPosition();
  return in.ReadVarint64(number) && in.CurrentPosition() - begin <= 5;
}

/// Reads the length of a field: the one way in which a length from outside becomes a number to
/// work with. False unless so many bytes are left of what `in` is limited to. REQUIRES: `in` has a
/// limit.
inline bool ReadLength(google::protobuf::io::CodedInputStream& in, int* length) {
  uint64_t found = 0;
  if (!ReadShortVarint(in, &found)) return false;
  const int left = in.BytesUntilLimit();
  if (left < 0 || found > static_cast<uint64_t>(left)) return false;
  *length = static_cast<int>(found);
  return true;
}

/// Reads the tags of a message's fields, up to where `in` is limited:
///
///   TagReader fields(in);
///   while (fields.Next()) { … fields.tag() … }
///   return fields.ok();
class TagReader {
 public:
  explicit TagReader(google::protobuf::io::CodedInputStream& in) : in_(in) {}
  /// Reads the next tag. False at the end, and when what comes next is none.
  bool Next() {
    if (in_.BytesUntilLimit() == 0) return false;
    ok_ = ReadShortVarint(in_, &tag_) && tag_ != 0;
    return ok_;
  }
  uint64_t tag() const { return tag_; }
  /// False when something that is no tag ended the fields.
  bool ok() const { return ok_; }

 private:
  google::protobuf::io::CodedInputStream& in_;
  uint64_t tag_ = 0;
  bool ok_ = true;
};

/// Reads a message of fields up to where `in` is limited. False when the fields end before.
inline bool ReadFields(google::protobuf::io::CodedInputStream& in,
                       google::protobuf::MessageLite* message) {
  return message->MergeFromCodedStream(&in) && in.ConsumedEntireMessage();
}

/// Limits `in` to the `size` bytes of a whole message. False when none can be that large.
inline bool LimitToMessage(google::protobuf::io::CodedInputStream& in, size_t size) {
  if (size > INT_MAX) return false;
  in.SetTotalBytesLimit(INT_MAX);
  in.PushLimit(static_cast<int>(size));
  return true;
}

/// Limits `in` to a message in a field, whose length comes next, while it lives. ok() is false when
/// that cannot be, or messages in messages go deeper than protobuf allows.
class FieldLimit {
 public:
  explicit FieldLimit(google::protobuf::io::CodedInputStream& in) : in_(in) {
    int length = 0;
    ok_ = in.IncrementRecursionDepth() && ReadLength(in, &length);
    if (ok_) before_ = in.PushLimit(length);
  }
  ~FieldLimit() {
    if (ok_) in_.PopLimit(before_);
    in_.DecrementRecursionDepth();
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
