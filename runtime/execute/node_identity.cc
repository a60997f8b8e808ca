// SPDX-License-Identifier: Apache-2.0
#include "runtime/execute/node_identity.h"

namespace tenon {
namespace {

bool Covers(const AttributeMap& a, const AttributeMap& b) {
  for (const auto& [name, value] : a) {
    if (name.starts_with('_')) continue;
    const Attribute* other = b.Find(name);
    if (other == nullptr || !value.Equals(*other)) return false;
  }
  return true;
}

}  // namespace

std::string NodeDigest(const Node& node) {
  std::string digest = StrCat(node.op(), "@", node.assigned_device());
  for (const auto& [name, value] : node.attrs()) {
    if (!name.starts_with('_')) StrAppend(&digest, ";", name, "=", value.ToString());
  }
  return digest;
}

bool SameAttrs(const AttributeMap& a, const AttributeMap& b) {
  return &a == &b || (Covers(a, b) && Covers(b, a));
}

}  // namespace tenon
