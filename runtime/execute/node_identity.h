// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/graph/graph.h"

// When two nodes compute the same with the same inputs. Attributes that begin with '_' are remarks
// for tools and do not count.

namespace tenon {

/// Text that is the same for nodes of one op with equal attributes, on one device; others may share
/// it, since of large values only the beginning enters.
std::string NodeDigest(const Node& node);

/// Whether two maps hold the same attributes.
bool SameAttrs(const AttributeMap& a, const AttributeMap& b);

}  // namespace tenon
