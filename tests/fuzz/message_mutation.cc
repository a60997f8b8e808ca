// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/message_mutation.h"

#include <cstring>
#include <limits>
#include <memory>

#include "core/base/varint.h"
#include "proto/graph.pb.h"
#include "proto/peer_service.pb.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/testing/graph_mutation.h"

namespace tenon::testing {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr int kMaxDepth = 12;

int64_t CornerNumber(Random& random) {
  static const std::vector<int64_t> numbers = {0,
                                               1,
                                               2,
                                               3,
                                               7,
                                               19,
                                               1000,
                                               -1,
                                               -2,
                                               1 << 16,
                                               1 << 28,
                                               (int64_t{1} << 31) - 1,
                                               int64_t{1} << 31,
                                               int64_t{1} << 32,
                                               int64_t{1} << 40,
                                               int64_t{1} << 62,
                                               std::numeric_limits<int64_t>::max(),
                                               std::numeric_limits<int64_t>::min()};
  return random.Chance(50) ? random.Below(16) : random.OneOf(numbers);
}

double CornerReal(Random& random) {
  static const std::vector<double> numbers = {0,
                                              1,
                                              -1,
                                              0.5,
                                              1e9,
                                              -0.0,
                                              1e300,
                                              1e-310,
                                              std::numeric_limits<double>::infinity(),
                                              std::numeric_limits<double>::quiet_NaN()};
  return random.OneOf(numbers);
}

void ChangeText(const FieldDescriptor* field, std::string* text, Random& random) {
  if (random.Chance(20)) {
    text->clear();
  } else if (random.Chance(20)) {
    text->append(1 + random.Below(9), static_cast<char>('0' + random.Below(64)));
  } else {
    MutateBytes(text, random);
  }
  if (field->type() != FieldDescriptor::TYPE_STRING) return;
  for (char& c : *text) c = static_cast<char>(c & 0x7f);  // a message must be UTF-8
}

/// Sets a field, or element `i` of a repeated one (a new one when it is -1), to a value at random.
void SetNumber(Message* m, const FieldDescriptor* field, int i, Random& random) {
  const Reflection* r = m->GetReflection();
  const int64_t n = CornerNumber(random);
  const auto set = [&](auto value, auto one, auto element, auto add) {
    if (!field->is_repeated()) return (r->*one)(m, field, value);
    if (i < 0) return (r->*add)(m, field, value);
    (r->*element)(m, field, i, value);
  };
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return set(static_cast<int32_t>(n), &Reflection::SetInt32, &Reflection::SetRepeatedInt32,
                 &Reflection::AddInt32);
    case FieldDescriptor::CPPTYPE_INT64:
      return set(n, &Reflection::SetInt64, &Reflection::SetRepeatedInt64, &Reflection::AddInt64);
    case FieldDescriptor::CPPTYPE_UINT32:
      return set(static_cast<uint32_t>(n), &Reflection::SetUInt32, &Reflection::SetRepeatedUInt32,
                 &Reflection::AddUInt32);
    case FieldDescriptor::CPPTYPE_UINT64:
      return set(static_cast<uint64_t>(n), &Reflection::SetUInt64, &Reflection::SetRepeatedUInt64,
                 &Reflection::AddUInt64);
    case FieldDescriptor::CPPTYPE_BOOL:
      return set(random.Chance(50), &Reflection::SetBool, &Reflection::SetRepeatedBool,
                 &Reflection::AddBool);
    case FieldDescriptor::CPPTYPE_ENUM:
      return set(random.Chance(90) ? random.Below(26) : static_cast<int>(n),
                 &Reflection::SetEnumValue, &Reflection::SetRepeatedEnumValue,
                 &Reflection::AddEnumValue);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return set(static_cast<float>(CornerReal(random)), &Reflection::SetFloat,
                 &Reflection::SetRepeatedFloat, &Reflection::AddFloat);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return set(CornerReal(random), &Reflection::SetDouble, &Reflection::SetRepeatedDouble,
                 &Reflection::AddDouble);
    default:
      return;
  }
}

void SetText(Message* m, const FieldDescriptor* field, int i, Random& random) {
  const Reflection* r = m->GetReflection();
  std::string text;
  if (field->is_repeated() && i >= 0) {
    text = r->GetRepeatedString(*m, field, i);
  } else if (!field->is_repeated()) {
    text = r->GetString(*m, field);
  }
  ChangeText(field, &text, random);
  if (!field->is_repeated()) return r->SetString(m, field, text);
  if (i < 0) return r->AddString(m, field, text);
  r->SetRepeatedString(m, field, i, text);
}

void ChangeOnce(Message* m, Random& random, int depth);

void ChangeRepeated(Message* m, const FieldDescriptor* field, Random& random, int depth) {
  const Reflection* r = m->GetReflection();
  const int n = r->FieldSize(*m, field);
  const int i = n == 0 ? -1 : random.Below(n);
  const bool is_message = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
  const int kind = random.Below(10);
  if (n > 0 && kind == 0) return r->RemoveLast(m, field);
  if (n > 1 && kind == 1) return r->SwapElements(m, field, i, random.Below(n));
  const int which = n > 0 && kind > 2 ? i : -1;
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) return SetText(m, field, which, random);
  if (!is_message) return SetNumber(m, field, which, random);
  if (which >= 0) return ChangeOnce(r->MutableRepeatedMessage(m, field, i), random, depth + 1);
  const std::unique_ptr<Message> copy(n == 0 ? nullptr : r->GetRepeatedMessage(*m, field, i).New());
  if (copy != nullptr) copy->CopyFrom(r->GetRepeatedMessage(*m, field, i));
  Message* added = r->AddMessage(m, field);
  if (copy != nullptr) added->CopyFrom(*copy);
  ChangeOnce(added, random, depth + 1);
}

void ChangeOnce(Message* m, Random& random, int depth) {
  if (m->GetDescriptor() == GraphDef::descriptor() && random.Chance(80)) {
    return MutateMessage(static_cast<GraphDef*>(m), random);
  }
  const Reflection* r = m->GetReflection();
  const int count = m->GetDescriptor()->field_count();
  if (count == 0 || depth > kMaxDepth) return;
  // What is set already is mostly what matters.
  std::vector<const FieldDescriptor*> set;
  r->ListFields(*m, &set);
  const FieldDescriptor* field = !set.empty() && random.Chance(80)
                                     ? random.OneOf(set)
                                     : m->GetDescriptor()->field(random.Below(count));
  if (field->is_repeated()) return ChangeRepeated(m, field, random, depth);
  if (random.Chance(8)) return r->ClearField(m, field);
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return ChangeOnce(r->MutableMessage(m, field), random, depth + 1);
    case FieldDescriptor::CPPTYPE_STRING:
      return SetText(m, field, -1, random);
    default:
      return SetNumber(m, field, -1, random);
  }
}

template <typename T>
bool SameElements(const Tensor& a, const Tensor& b) {
  return std::equal(a.data<T>(), a.data<T>() + a.num_elements(), b.data<T>());
}

}  // namespace

void MutateFields(Message* message, Random& random) {
  for (int n = random.Chance(60) ? 1 : 1 + random.Below(4); n > 0; --n) {
    ChangeOnce(message, random, 0);
  }
}

void MutateAsMessage(const Message& prototype, std::string* bytes, size_t max_size,
                     Random& random) {
  const std::unique_ptr<Message> message(prototype.New());
  std::string changed = *bytes;
  if (random.Chance(85) && message->ParseFromString(changed)) {
    MutateFields(message.get(), random);
    changed = message->SerializeAsString();
  } else if (random.Chance(50)) {
    MutateBytes(&changed, random);
  } else {
    MutateAsLibFuzzer(&changed, max_size);
  }
  if (changed.size() <= max_size) *bytes = std::move(changed);
}

void MutatePeerMessage(std::string* message, size_t max_size, Random& random) {
  std::vector<std::pair<uint64_t, std::string>> records;  // tag, content
  std::string_view rest = *message;
  while (!rest.empty()) {
    uint64_t tag = 0;
    std::string_view piece;
    if (!TakeVarint(&rest, &tag) || !TakePiece(&rest, &piece)) break;
    records.emplace_back(tag, piece);
  }
  if (records.empty()) return MutateAsLibFuzzer(message, max_size);
  const int i = random.Below(static_cast<int>(records.size()));
  const int kind = random.Below(12);
  if (kind == 0) {
    records.erase(records.begin() + i);
  } else if (kind == 1) {
    records.push_back(records[i]);
  } else if (kind == 2) {
    std::swap(records[i], records[random.Below(static_cast<int>(records.size()))]);
  } else if (auto& [tag, content] = records[i]; tag == (2 << 3 | 2)) {
    MutateAsMessage(cluster::PeerTensor(), &content, max_size, random);
  } else if (tag == (3 << 3 | 2)) {
    MutateAsMessage(cluster::PeerTensorPart(), &content, max_size, random);
  } else {
    MutateAsMessage(cluster::PeerFrame(), &content, max_size, random);
  }
  message->clear();
  for (const auto& [tag, content] : records) {
    AppendVarint(message, tag);
    AppendPiece(message, content);
  }
}

bool TakePiece(std::string_view* rest, std::string_view* piece) {
  uint64_t size = 0;
  if (rest->empty()) return false;
  if (!TakeVarint(rest, &size)) {
    *rest = {};
    return false;
  }
  *piece = rest->substr(0, size);
  rest->remove_prefix(piece->size());
  return true;
}

void AppendPiece(std::string* out, std::string_view piece) {
  AppendVarint(out, piece.size());
  out->append(piece);
}

bool SameTensor(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.valid() != b.valid()) return false;
  if (!a.valid()) return true;
  if (a.shape() != b.shape()) return false;
  if (a.num_elements() == 0) return true;
  if (a.dtype() == DType::kString) return SameElements<TString>(a, b);
  if (a.dtype() == DType::kResource) return true;  // handles are compared by who makes them
  return std::memcmp(a.raw_data(), b.raw_data(), a.num_bytes()) == 0;
}

}  // namespace tenon::testing
