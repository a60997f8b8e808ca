// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/op/shape_pattern.h"
#include "core/tensor/attribute.h"
#include "core/tensor/dtype.h"

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
  bool on_host = false;               // in host memory although the device has its own
  bool all_axes = false;              // may be left out in C++: all axes of the op's first input
  std::optional<ShapePattern> shape;  // of each of its tensors
  std::string doc;                    // what is not obvious
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

/// What an op means to the flow of control; the ops for references (RefSwitch, …) mean the same.
enum class FlowKind : uint8_t {
  kPlain,
  kSwitch,
  kMerge,
  kEnter,
  kConstantEnter,  // an Enter whose value every iteration sees; see Node::flow
  kExit,
  kNextIteration,
  kControlTrigger,
  kTransfer,  // Send and Recv: run on dead inputs too
};

/// What takes the place of a node that calls functions, before a graph is placed.
enum class CallKind : uint8_t {
  kNone,
  kFunction,  // the body of its function
  kGradient,  // the gradient of the body
  kRemote,    // the body, on the device that the first input names
  kIf,
  kCase,
  kWhile,
  kFor,
};

enum class OpTrait : uint8_t;

/// Which operands of an op are its result when the other one is 1.
enum class NeutralOne : uint8_t { kNone, kSecond, kEither };

/// An op, as it is declared; op_declaration.h says what each flag means.
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
  FlowKind flow = FlowKind::kPlain;
  CallKind call = CallKind::kNone;
  NeutralOne neutral_one = NeutralOne::kNone;
  bool is_arg = false;
  bool is_retval = false;
  bool is_constant = false;
  bool is_placeholder = false;
  bool is_variable = false;
  bool is_identity = false;
  uint64_t traits = 0;  // a bit for each OpTrait

  /// Whether it has the flag, of those in core/op/op_traits.h.
  bool Has(OpTrait trait) const { return (traits >> static_cast<int>(trait) & 1) != 0; }
  void Add(OpTrait trait) { traits |= uint64_t{1} << static_cast<int>(trait); }
  /// Whether the op is the runtime's own: its name begins with '_'.
  bool is_internal() const { return name.starts_with('_'); }
  /// Whether it is one that the runtime puts into the graphs of steps and their partitions, and has
  /// built in: what brings arguments and results, sends and receives. A client's graph has no
  /// business with them.
  bool is_runtime_only() const { return is_arg || is_retval || flow == FlowKind::kTransfer; }

  /// Whether the shape of an argument is declared.
  bool has_shapes() const;

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
