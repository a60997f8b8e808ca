// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/attribute.h"
#include "core/dtype.h"
#include "core/status.h"

// What an op takes and gives: TensorFlow's OpDef.

namespace tenon {

/// One input or output argument, which may stand for several tensors.
struct ArgSchema {
  std::string name;
  DType type = DType::kInvalid;  // when fixed
  std::string type_attr;         // else the attribute that names it
  std::string number_attr;       // N * T: the attribute that counts the tensors
  std::string type_list_attr;    // one tensor per entry of this list(type)
  bool is_ref = false;
  bool on_host = false;   // in host memory although the device has its own
  bool all_axes = false;  // may be left out in C++: all axes of the op's first input
  std::string doc;        // what is not obvious
};

struct AttrSchema {
  std::string name;
  std::string kind;  // "int", "list(type)", ...
  std::optional<Attribute> default_value;
  DTypeVector allowed_types;                 // of a type attribute; empty means any
  std::vector<std::string> allowed_strings;  // of a string attribute; empty means any
  std::optional<int64_t> minimum;            // of an int, or of a list's length
  std::string doc;                           // what is not obvious
};

struct OpSchema {
  std::string name;
  std::string function;      // what the C++ function is called, when not after the op
  bool has_function = true;  // false: C++ builds it in another way
  bool is_basic = false;  // its function stands in a header of its own, with the other basic ones
  std::string doc;
  std::vector<ArgSchema> inputs;
  std::vector<ArgSchema> outputs;
  std::vector<AttrSchema> attrs;
  bool is_stateful = false;
  bool is_commutative = false;
  bool is_aggregate = false;
  bool allows_uninitialized_input = false;
  bool reads_outside = false;     // what it gives depends on the task and the time at which it runs
  bool is_differentiable = true;  // false: no gradient flows through it, by definition
  bool int32_on_host = false;     // on every device, where all its dtypes are int32: loops count so

  const AttrSchema* FindAttr(std::string_view attr_name) const;
};

/// Checks the attributes of a node against `schema`, adds the defaults of those that are missing,
/// and gives empty lists their kind. Attributes the schema does not know are kept. InvalidArgument
/// for a missing, mistyped or disallowed one.
Status ApplySchema(const OpSchema& schema, AttributeMap* attrs);

/// The dtype of each input (or output) tensor of a node with these attributes, references marked.
/// The attributes must have passed ApplySchema.
StatusOr<DTypeVector> ArgTypes(const std::vector<ArgSchema>& args, const AttributeMap& attrs);

/// How many tensors one argument stands for.
StatusOr<int64_t> ArgLength(const ArgSchema& arg, const AttributeMap& attrs);

}  // namespace tenon
