// SPDX-License-Identifier: Apache-2.0
#include "core/op/op_registry.h"

#include <unistd.h>

#include <algorithm>

#include "core/op/op_declaration.h"

namespace tenon {
namespace {

std::string HostName() {
  char name[256] = "";
  gethostname(name, sizeof(name) - 1);
  return name;
}

bool TypesMatch(const KernelOptions& options, const AttributeMap& attrs) {
  for (const auto& [attr, allowed] : options.types) {
    const Attribute* found = attrs.Find(attr);
    if (found == nullptr) return false;
    const DType* type = found->get_if<DType>();
    if (type == nullptr || std::count(allowed.begin(), allowed.end(), *type) == 0) return false;
  }
  return true;
}

/// Whether all dtypes that a node chooses are int32.
bool AllInt32(const OpSchema& schema, const AttributeMap& attrs) {
  return std::all_of(schema.attrs.begin(), schema.attrs.end(), [&](const AttrSchema& a) {
    return a.kind != "type" || attrs.GetOr<DType>(a.name, DType::kInvalid) == DType::kInt32;
  });
}

/// In TensorFlow's words, by which scripts recognise it.
Status NoKernel(const OpRegistration& op, const KernelConstruction& c) {
  std::string attrs;
  for (const AttrSchema& a : op.schema.attrs) {
    const Attribute* value = c.attrs().Find(a.name);
    if (value == nullptr) continue;
    StrAppend(&attrs, attrs.empty() ? "" : ", ", a.name, "=", value->ToString());
  }
  std::string registered;
  for (const KernelRegistration& k : op.kernels) {
    StrAppend(&registered, registered.empty() ? "" : "; ", k.device.name());
    for (const auto& [attr, types] : k.options.types) {
      std::vector<std::string> names;
      for (const DType t : types) names.push_back(ToString(t));
      StrAppend(&registered, ", ", attr, " in {", Join(names, ", "), "}");
    }
  }
  return InvalidArgument("No OpKernel was registered to support Op '", op.schema.name, "' on ",
                         c.device().kind().name(), " with these attrs: [", attrs,
                         "]; registered kernels: ", registered.empty() ? "none" : registered);
}

/// The family that this thread is reading, if any.
thread_local const void* family_of_this_thread = nullptr;

}  // namespace

const KernelRegistration* OpRegistration::FindKernel(DeviceKind device,
                                                     const AttributeMap& attrs) const {
  const auto find = [&](DeviceKind kind, bool everywhere) -> const KernelRegistration* {
    for (const KernelRegistration& k : kernels) {
      const bool serves = !everywhere || k.options.memory != KernelMemory::kDevice;
      if (serves && k.device == kind && TypesMatch(k.options, attrs)) return &k;
    }
    return nullptr;
  };
  if (device == kCpu) return find(kCpu, false);
  if (schema.int32_on_host && AllInt32(schema, attrs)) return find(kCpu, false);
  const KernelRegistration* own = find(device, false);
  return own != nullptr ? own : find(kCpu, true);
}

KernelMemory OpRegistration::MemoryOn(DeviceKind device, const AttributeMap& attrs) const {
  const KernelRegistration* kernel = FindKernel(device, attrs);
  if (kernel == nullptr) return KernelMemory::kDevice;
  if (kernel->device == device) return kernel->options.memory;
  // What is there for the sake of int32 runs on the host.
  return kernel->options.memory == KernelMemory::kAny ? KernelMemory::kAny : KernelMemory::kHost;
}

bool OpRegistration::HasKernel(const AttributeMap& attrs) const {
  return std::any_of(kernels.begin(), kernels.end(),
                     [&](const KernelRegistration& k) { return TypesMatch(k.options, attrs); });
}

StatusOr<std::unique_ptr<Kernel>> OpRegistration::MakeKernel(KernelConstruction& c) const {
  const KernelRegistration* registration = FindKernel(c.device().kind(), c.attrs());
  if (registration == nullptr) return NoKernel(*this, c);
  std::unique_ptr<Kernel> kernel = registration->factory(c);
  TENON_RETURN_IF_ERROR(c.status());
  return kernel;
}

OpBuilder& OpBuilder::Shape(ShapeFn fn) {
  op_.shape = fn;
  return *this;
}
OpBuilder& OpBuilder::SetGradient(GradientFn fn) {
  op_.gradient = std::move(fn);
  return *this;
}
OpBuilder& OpBuilder::ShapeValue(ShapeValueFn fn) {
  op_.shape_value = fn;
  return *this;
}
OpBuilder& OpBuilder::InDomain(double low, double high) {
  op_.domain = Domain{low, high};
  return *this;
}
OpBuilder& OpBuilder::Example(std::vector<ExampleInput> inputs, AttributeMap attrs) {
  op_.examples.push_back({std::move(inputs), std::move(attrs)});
  return *this;
}
OpBuilder& OpBuilder::NoExample(std::string_view reason) {
  op_.no_example_reason = reason;
  return *this;
}
void OpBuilder::CheckClassOptions(const KernelOptions& options) const {
  TENON_CHECK(options.attrs.empty() && !options.cheap, "the kernel of ", op_.schema.name,
              " is a class, which says these itself");
}
void OpBuilder::CheckParameters(const KernelOptions& options,
                                absl::Span<const Parameter> parameters) const {
  const OpSchema& schema = op_.schema;
  size_t attrs = 0, inputs = 0, outputs = 0;
  for (const Parameter& parameter : parameters) {
    attrs += parameter.kind == ParameterKind::kAttr;
    inputs += parameter.is_input() ? parameter.count : 0;
    outputs += parameter.kind == ParameterKind::kOutput;
  }
  TENON_CHECK(options.attrs.size() == attrs, "the kernel of ", schema.name, " takes ", attrs,
              " attributes, registered with ", options.attrs.size());
  TENON_CHECK(inputs <= schema.inputs.size(), "the kernel of ", schema.name, " takes ", inputs,
              " inputs, and the op has ", schema.inputs.size());
  for (size_t i = 0; i < outputs; ++i) {
    TENON_CHECK(i < schema.outputs.size() && schema.outputs[i].shape, "the kernel of ", schema.name,
                " takes output ", i, ", which has no declared shape");
  }
  for (const std::string& attr : options.attrs) {
    TENON_CHECK(op_.schema.FindAttr(attr) != nullptr, "op ", op_.schema.name, " has no attribute ",
                attr);
  }
}
OpBuilder& OpBuilder::AddKernel(DeviceKind device, KernelOptions options, KernelFactory factory) {
  op_.kernels.push_back({device, std::move(options), std::move(factory)});
  return *this;
}

OpRegistry::OpRegistry() = default;
OpRegistry::~OpRegistry() = default;

OpRegistry::Entry& OpRegistry::AddEntry(std::string_view name, std::string_view file) {
  auto [it, added] = ops_.emplace(name, Entry{std::make_unique<OpRegistration>()});
  TENON_CHECK(added, file, ": op ", name, " is declared already");
  return it->second;
}

bool OpRegistry::Declare(std::string_view text, std::string_view file) {
  if (!files_.emplace(file).second) return false;
  auto declared = ParseOpDeclarations(text, file);
  TENON_CHECK(declared.ok(), Message(declared.status()));
  for (OpSchema& schema : *declared) {
    Entry& entry = AddEntry(schema.name, file);
    entry.op->schema = std::move(schema);
  }
  return true;
}

void OpRegistry::DeclareFamily(OpFamily family) {
  if (!files_.emplace(family.file).second) return;
  families_.push_back(std::make_unique<Pending>());
  Pending& pending = *families_.back();
  for (const std::string_view name : family.names) AddEntry(name, family.file).family = &pending;
  pending.family = std::move(family);
  pending.registry = this;
}

OpRegistration& OpRegistry::Entry::Read() const {
  if (family_of_this_thread != nullptr) {
    // Two families that read each other would wait for each other on two threads.
    TENON_CHECK(family == family_of_this_thread, "an op family asks for an op of another one: ",
                family == nullptr ? "no family" : family->family.file);
  } else if (family != nullptr) {
    std::call_once(family->once, &Pending::Read, family);
  }
  return *op;
}

void OpRegistry::Pending::Read() {
  family_of_this_thread = this;
  auto declared = ParseOpDeclarations(family.text, family.file);
  TENON_CHECK(declared.ok(), Message(declared.status()));
  TENON_CHECK(declared->size() == family.names.size(), family.file, " declares ", declared->size(),
              " ops, and has the names of ", family.names.size());
  for (OpSchema& schema : *declared) {
    const auto entry = registry->ops_.find(schema.name);
    TENON_CHECK(entry != registry->ops_.end() && entry->second.family == this, family.file,
                " declares op ", schema.name, ", which is not among its names");
    entry->second.op->schema = std::move(schema);
  }
  family.add(*registry);
  family_of_this_thread = nullptr;
}

OpBuilder OpRegistry::Get(std::string_view name) {
  const auto it = ops_.find(name);
  TENON_CHECK(it != ops_.end(), "op not declared: ", name);
  return OpBuilder(it->second.Read());
}

const OpRegistration* OpRegistry::Find(std::string_view name) const {
  const auto it = ops_.find(name);
  return it == ops_.end() ? nullptr : &it->second.Read();
}

StatusOr<const OpRegistration*> OpRegistry::Lookup(std::string_view name) const {
  if (const OpRegistration* op = Find(name)) return op;
  constexpr std::string_view kBefore = "Experimental";
  if (name.starts_with(kBefore)) {
    if (const OpRegistration* op = Find(name.substr(kBefore.size()))) return op;
  }
  return NotFound("Op type not registered '", name, "' in binary running on ", HostName(),
                  ". `tenon ops` lists the ones that are.");
}

std::vector<const OpRegistration*> OpRegistry::All() const {
  std::vector<const OpRegistration*> all;
  all.reserve(ops_.size());
  for (const auto& [name, entry] : ops_) all.push_back(&entry.Read());
  std::sort(all.begin(), all.end(),
            [](const auto* a, const auto* b) { return a->schema.name < b->schema.name; });
  return all;
}

}  // namespace tenon
