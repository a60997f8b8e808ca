// SPDX-License-Identifier: Apache-2.0
#include "core/op/declared_op.h"

#include <algorithm>

#include "core/op/op_tokens.h"

namespace tenon {
namespace {

DeclaredArg* FindArg(std::vector<DeclaredArg>& args, const std::string& name) {
  for (DeclaredArg& arg : args) {
    if (arg.schema.name == name) return &arg;
  }
  return nullptr;
}

AttrSchema* FindAttr(OpSchema& schema, const std::string& name) {
  return const_cast<AttrSchema*>(schema.FindAttr(name));
}

template <typename T, typename NameOf>
size_t Erase(std::vector<T>& from, const std::string& name, NameOf name_of) {
  return std::erase_if(from, [&](const T& one) { return name_of(one) == name; });
}

/// Gives the texts of `from` to those arguments of the same name that have none.
void InheritTexts(std::vector<DeclaredArg>& from, std::vector<DeclaredArg>* to) {
  for (DeclaredArg& arg : *to) {
    const DeclaredArg* const base = FindArg(from, arg.schema.name);
    if (base != nullptr) arg.schema.doc = base->schema.doc;
  }
}

void Change(const DeclaredOp::Change& change, DeclaredOp* op) {
  DeclaredArg arg = change.arg;
  for (auto* args : {&op->inputs, &op->outputs}) {
    DeclaredArg* const old = FindArg(*args, arg.schema.name);
    if (old == nullptr || !change.before.empty()) continue;
    arg.schema.doc = old->schema.doc;
    *old = std::move(arg);
    return;
  }
  const DeclaredArg* const before = FindArg(op->inputs, change.before);
  if (before == nullptr && !change.before.empty()) {
    throw Mistake{arg.line, StrCat("there is no input ", change.before)};
  }
  const auto at =
      before == nullptr ? op->inputs.end() : op->inputs.begin() + (before - op->inputs.data());
  op->inputs.insert(at, std::move(arg));
}

/// Adds to a twin what it has from its base, which is finished but for the types of arguments.
void Inherit(DeclaredOp base, DeclaredOp* op) {
  if (op->has_signature) {
    InheritTexts(base.inputs, &op->inputs);
    InheritTexts(base.outputs, &op->outputs);
  } else {
    op->inputs = std::move(base.inputs);
    op->outputs = std::move(base.outputs);
  }
  for (const DeclaredOp::Change& change : op->changes) Change(change, op);
  OpSchema own = std::move(op->schema);
  op->schema = op->has_flags ? own : base.schema;
  op->schema.name = own.name;
  op->schema.function = own.function;
  op->schema.doc = own.doc.empty() ? base.schema.doc : own.doc;
  op->schema.attrs = std::move(base.schema.attrs);
  for (const std::string& name : op->without) {
    const auto of_arg = [](const DeclaredArg& arg) { return arg.schema.name; };
    const size_t erased =
        Erase(op->inputs, name, of_arg) + Erase(op->outputs, name, of_arg) +
        Erase(op->schema.attrs, name, [](const AttrSchema& attr) { return attr.name; });
    if (erased == 0) throw Mistake{op->line, StrCat(base.schema.name, " has no ", name)};
  }
  for (AttrSchema& attr : own.attrs) {
    AttrSchema* const old = FindAttr(op->schema, attr.name);
    if (old == nullptr) {
      op->schema.attrs.push_back(std::move(attr));
    } else {
      if (attr.doc.empty()) attr.doc = old->doc;
      *old = std::move(attr);
    }
  }
}

void AddTexts(DeclaredOp* op) {
  std::vector<std::string_view> told;
  for (const DeclaredOp::Text& text : op->texts) {
    bool found = false;
    for (auto* args : {&op->inputs, &op->outputs}) {
      if (DeclaredArg* const arg = FindArg(*args, text.name)) {
        arg->schema.doc = text.text;
        found = true;
      }
    }
    if (AttrSchema* const attr = FindAttr(op->schema, text.name); attr != nullptr && !found) {
      attr->doc = text.text;
      found = true;
    }
    if (!found) {
      throw Mistake{text.line,
                    StrCat("found '", text.name, "', wanted an argument's or attribute's name")};
    }
    if (std::count(told.begin(), told.end(), text.name) > 0) {
      throw Mistake{text.line, StrCat(text.name, " has two texts")};
    }
    told.push_back(text.name);
  }
}

void FindType(DeclaredArg* arg, const OpSchema& op) {
  ArgSchema& schema = arg->schema;
  const AttrSchema* number = op.FindAttr(schema.number_attr);
  if (!schema.number_attr.empty() && (number == nullptr || number->kind != "int")) {
    throw Mistake{arg->line, StrCat("there is no int attribute ", schema.number_attr)};
  }
  const AttrSchema* attr = op.FindAttr(arg->type);
  if (attr == nullptr) {
    const auto type = ParseDType(arg->type);
    if (!type) throw Mistake{arg->line, StrCat("'", arg->type, "' is no type and no attribute")};
    schema.type = *type;
  } else if (attr->kind == "type") {
    schema.type_attr = arg->type;
  } else if (attr->kind == "list(type)" && number == nullptr) {
    schema.type_list_attr = arg->type;
  } else {
    throw Mistake{arg->line, StrCat("attribute ", arg->type, " is no type")};
  }
}

/// Finds what the names of a declared shape stand for. `symbols` are those met before.
void FindNames(DeclaredArg* arg, const DeclaredOp& op, bool is_output,
               std::vector<std::string>* symbols) {
  if (!arg->schema.shape) return;
  for (DimPattern& dim : arg->schema.shape->dims) {
    if (dim.kind != DimPattern::Kind::kSymbol) continue;
    const AttrSchema* const attr = op.schema.FindAttr(dim.name);
    if (attr != nullptr && attr->kind == "int") {
      dim.kind = DimPattern::Kind::kAttr;
      continue;
    }
    for (size_t i = 0; i < op.inputs.size() && is_output; ++i) {
      if (op.inputs[i].schema.name != dim.name) continue;
      dim.kind = DimPattern::Kind::kInput;
      dim.index = static_cast<int>(i);
    }
    if (dim.kind == DimPattern::Kind::kInput) continue;
    if (dim.element >= 0) throw Mistake{arg->line, StrCat("no input is called ", dim.name)};
    const auto at = std::find(symbols->begin(), symbols->end(), dim.name);
    dim.index = static_cast<int>(at - symbols->begin());
    if (at == symbols->end()) symbols->push_back(dim.name);
    if (symbols->size() > ShapePattern::kMaxSymbols) {
      throw Mistake{arg->line, "the declared shapes have too many names"};
    }
  }
}

void CheckNames(const OpSchema& op, int line) {
  std::vector<std::string_view> inputs_and_attrs, outputs;
  const auto add = [&](std::vector<std::string_view>& names, const std::string& name) {
    if (std::count(names.begin(), names.end(), name) > 0) {
      throw Mistake{line, StrCat("op ", op.name, " has two of the name ", name)};
    }
    names.push_back(name);
  };
  for (const ArgSchema& arg : op.inputs) add(inputs_and_attrs, arg.name);
  for (const AttrSchema& attr : op.attrs) add(inputs_and_attrs, attr.name);
  for (const ArgSchema& arg : op.outputs) add(outputs, arg.name);
}

void Finish(std::vector<DeclaredOp>& ops, DeclaredOp* op) {
  if (op->finished) return;
  if (op->being_finished) throw Mistake{op->line, "the op is its own twin"};
  op->being_finished = true;
  if (!op->base.empty()) {
    const auto base = std::find_if(
        ops.begin(), ops.end(), [&](const DeclaredOp& one) { return one.schema.name == op->base; });
    if (base == ops.end()) throw Mistake{op->line, StrCat("there is no op ", op->base)};
    Finish(ops, &*base);
    Inherit(*base, op);
  }
  AddTexts(op);
  op->finished = true;
}

OpSchema Schema(DeclaredOp op) {
  std::vector<std::string> symbols;
  for (DeclaredArg& arg : op.inputs) {
    FindType(&arg, op.schema);
    FindNames(&arg, op, false, &symbols);
  }
  for (DeclaredArg& arg : op.outputs) {
    FindType(&arg, op.schema);
    FindNames(&arg, op, true, &symbols);
  }
  const auto take = [](std::vector<DeclaredArg>& from, std::vector<ArgSchema>* to) {
    to->reserve(from.size());
    for (DeclaredArg& arg : from) to->push_back(std::move(arg.schema));
  };
  take(op.inputs, &op.schema.inputs);
  take(op.outputs, &op.schema.outputs);
  CheckNames(op.schema, op.line);
  return std::move(op.schema);
}

}  // namespace

std::vector<OpSchema> FinishedOps(std::vector<DeclaredOp> ops) {
  for (DeclaredOp& op : ops) Finish(ops, &op);
  std::vector<OpSchema> finished;
  finished.reserve(ops.size());
  for (DeclaredOp& op : ops) finished.push_back(Schema(std::move(op)));
  return finished;
}

}  // namespace tenon
