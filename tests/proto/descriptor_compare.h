// SPDX-License-Identifier: Apache-2.0
//
// Compares protobuf descriptors of ours with the recorded table of TensorFlow's fields.
#pragma once

#include <string>
#include <vector>

#include <google/protobuf/descriptor.h>
#include <nlohmann/json.hpp>

namespace tenon::testing {

// The recorded table: fields.json and fields_more.json of tests/data/tf in one value, with the
// members `messages`, `enums`, `oneofs` and `reserved`, each keyed by TensorFlow's full name.
nlohmann::json LoadGoldenFields();

// What differs between a message of ours and the recorded one, as one line a difference; nested
// messages and enums are not looked into. Differences are: an unknown message; a field whose
// number, name, type, label or oneof is another, but for fields of Tenon's own, which have numbers
// from 1000 on; a number that TensorFlow uses or reserves and we neither have nor reserve.
std::vector<std::string> CompareMessage(const google::protobuf::Descriptor& ours,
                                        const nlohmann::json& golden);

// The same for an enum: every value of ours must be there under its number.
std::vector<std::string> CompareEnum(const google::protobuf::EnumDescriptor& ours,
                                     const nlohmann::json& golden);

}  // namespace tenon::testing
