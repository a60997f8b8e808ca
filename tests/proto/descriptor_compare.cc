// SPDX-License-Identifier: Apache-2.0
#include "tests/proto/descriptor_compare.h"

#include <cstdlib>
#include <fstream>
#include <string_view>

#include <google/protobuf/descriptor.pb.h>

namespace tenon::testing {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using nlohmann::json;

constexpr std::string_view kPackage = "tenon.";
/// Fields of Tenon's own in TensorFlow's messages have numbers from here on.
constexpr int kFirstOwnField = 1000;

json ReadJson(const std::string& name) {
  const char* root = std::getenv("TENON_SOURCE_DIR");
  std::ifstream file(std::string(root ? root : ".") + "/tests/data/tf/" + name);
  return json::parse(file);
}

// A type's name as the table writes it: ours without its package, others in full.
std::string WithoutPackage(const std::string& full_name) {
  if (full_name.rfind(kPackage, 0) == 0) return full_name.substr(kPackage.size());
  return full_name;
}

std::string GoldenName(const std::string& full_name) {
  return "tensorflow." + WithoutPackage(full_name);
}

std::string ElementType(const FieldDescriptor& field) {
  if (field.message_type()) return WithoutPackage(field.message_type()->full_name());
  if (field.enum_type()) return WithoutPackage(field.enum_type()->full_name());
  return field.type_name();
}

// The type as the table writes it: `rep T`, `map<K,V>` or `T`.
std::string FieldType(const FieldDescriptor& field) {
  if (field.is_map()) {
    const Descriptor& entry = *field.message_type();
    return "map<" + ElementType(*entry.map_key()) + "," + ElementType(*entry.map_value()) + ">";
  }
  return (field.is_repeated() ? "rep " : "") + ElementType(field);
}

std::string OneofName(const FieldDescriptor& field) {
  return field.real_containing_oneof() ? field.real_containing_oneof()->name() : "";
}

}  // namespace

json LoadGoldenFields() {
  json golden = ReadJson("fields.json");
  golden.merge_patch(ReadJson("fields_more.json"));
  return golden;
}

std::vector<std::string> CompareMessage(const Descriptor& ours, const json& golden) {
  const std::string name = GoldenName(ours.full_name());
  if (!golden["messages"].contains(name)) return {ours.full_name() + ": TensorFlow has no " + name};
  const json& fields = golden["messages"][name];
  const json oneofs = golden["oneofs"].value(name, json::object());

  std::vector<std::string> differences;
  auto differs = [&](int number, const std::string& what, const std::string& found,
                     const std::string& wanted) {
    differences.push_back(ours.full_name() + " field " + std::to_string(number) + ": " + what +
                          " is '" + found + "', wanted '" + wanted + "'");
  };
  for (int i = 0; i < ours.field_count(); ++i) {
    const FieldDescriptor& field = *ours.field(i);
    const std::string number = std::to_string(field.number());
    if (!fields.contains(number)) {
      if (field.number() >= kFirstOwnField) continue;
      differs(field.number(), "name", field.name(), "no such field");
      continue;
    }
    const std::string wanted_name = fields[number][0], wanted_type = fields[number][1];
    const std::string wanted_oneof = oneofs.value(number, "");
    if (field.name() != wanted_name) differs(field.number(), "name", field.name(), wanted_name);
    if (FieldType(field) != wanted_type) {
      differs(field.number(), "type", FieldType(field), wanted_type);
    }
    if (OneofName(field) != wanted_oneof) {
      differs(field.number(), "oneof", OneofName(field), wanted_oneof);
    }
  }
  for (const auto& [number, field] : fields.items()) {
    const int n = std::stoi(number);
    if (ours.FindFieldByNumber(n)) continue;
    const std::string field_name = field[0];
    if (!ours.IsReservedNumber(n) || !ours.IsReservedName(field_name)) {
      differs(n, "name", "neither there nor reserved by number and name", field_name);
    }
  }
  for (const int n : golden["reserved"].value(name, std::vector<int>())) {
    if (!ours.IsReservedNumber(n)) differs(n, "number", "not reserved", "reserved");
  }
  return differences;
}

std::vector<std::string> CompareEnum(const EnumDescriptor& ours, const json& golden) {
  const std::string name = GoldenName(ours.full_name());
  if (!golden["enums"].contains(name)) return {ours.full_name() + ": TensorFlow has no " + name};
  const json& values = golden["enums"][name];
  std::vector<std::string> differences;
  for (int i = 0; i < ours.value_count(); ++i) {
    const auto& value = *ours.value(i);
    const std::string wanted = values.value(std::to_string(value.number()), "no such value");
    if (value.name() != wanted) {
      differences.push_back(ours.full_name() + " value " + std::to_string(value.number()) +
                            ": name is '" + value.name() + "', wanted '" + wanted + "'");
    }
  }
  return differences;
}

}  // namespace tenon::testing
