// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/op/op_schema.h"

// Declarations of ops before their names have been looked up: an op may be declared by another one
// of its file, and an argument by an attribute, that stand below.

namespace tenon {

/// An argument whose type is a name.
struct DeclaredArg {
  ArgSchema schema;
  std::string type;
  int line = 0;
};

/// An op as it is written.
struct DeclaredOp {
  /// An argument of a twin that is another one than its base has, or a new input and its place.
  struct Change {
    DeclaredArg arg;
    std::string before;
  };
  /// The documentation of an argument or attribute.
  struct Text {
    std::string name, text;
    int line;
  };

  OpSchema schema;  // its name, flags, documentation and own attributes
  std::vector<DeclaredArg> inputs, outputs;
  std::vector<Text> texts;
  bool has_signature = false, has_flags = false;
  std::string base;  // empty: it is no twin
  std::vector<Change> changes;
  std::vector<std::string> without;
  int line = 0;
  bool being_finished = false, finished = false;
};

/// The ops that are declared, twins with what they have from their bases. Throws a Mistake.
std::vector<OpSchema> FinishedOps(std::vector<DeclaredOp> ops);

}  // namespace tenon
