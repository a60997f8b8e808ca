// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <optional>

#include "core/op/op_registry.h"
#include "data/csv/read_number.h"
#include "data/files/file.h"
#include "ops/arguments.h"
#include "ops/io/files_for.h"
#include "ops/lookup/dense_hash_table.h"
#include "ops/lookup/hash_table.h"
#include "ops/maths.h"
#include "ops/state/resource_node.h"

namespace tenon {
namespace {

/// How the kernel of a node makes its table, of this run's inputs.
class TableMaker {
 public:
  using Made = StatusOr<std::shared_ptr<LookupTable>>;

  explicit TableMaker(KernelConstruction& c) : options_(c) {
    if (options_.is_dense) layout_.emplace(c);
  }
  Made Make(const KernelContext& ctx, const std::string& name) const {
    if (!layout_) return std::make_shared<HashTable>(options_, name);
    return DenseHashTable::Create(options_, *layout_, name, ctx.input(0),
                                  ctx.num_inputs() > 1 ? ctx.input(1) : Tensor());
  }

 private:
  const TableOptions options_;
  std::optional<DenseHashTable::Layout> layout_;
};

class TableKernel final : public ResourceNodeKernel<LookupTable> {
 public:
  explicit TableKernel(KernelConstruction& c) : ResourceNodeKernel(c), maker_(c) {}

 protected:
  TableMaker::Made Make(KernelContext& ctx, const std::string& name) const override {
    return maker_.Make(ctx, name);
  }

 private:
  const TableMaker maker_;
};

/// Makes a table in each run, which ends with its last handle.
class AnonymousTableKernel final : public Kernel {
 public:
  explicit AnonymousTableKernel(KernelConstruction& c) : Kernel(c), maker_(c) {}
  Status Compute(KernelContext& ctx) const override {
    static std::atomic<int64_t> made{0};
    ResourceHandle handle;
    handle.device = ctx.device().name();
    handle.container = "anonymous";
    handle.name = StrCat(name(), "_", made.fetch_add(1));
    handle.type_name = LookupTable::kTypeName;
    TENON_ASSIGN_OR_RETURN(handle.resource, maker_.Make(ctx, std::string(handle.name)));
    return ctx.Return(Tensor::Scalar(std::move(handle)));
  }

 private:
  const TableMaker maker_;
};

StatusOr<std::shared_ptr<LookupTable>> TableInput(const KernelContext& ctx) {
  return ResourceInput<LookupTable>(ctx);
}

/// A kernel that changes a table with the keys and values of inputs 1 and 2.
template <Status (LookupTable::*kChange)(const Tensor& keys, const Tensor& values)>
Status ChangeKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const auto table, TableInput(ctx));
  return ((*table).*kChange)(ctx.input(1), ctx.input(2));
}

Status InitializeKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const auto table, TableInput(ctx));
  if (ctx.input(1).num_elements() == 0) {
    return InvalidArgument("keys and values cannot be empty tensors.");
  }
  return table->Initialize(ctx.input(1), ctx.input(2));
}

Status RemoveKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const auto table, TableInput(ctx));
  return table->Remove(ctx.input(1));
}

Status FindKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const auto table, TableInput(ctx));
  return table->Find(ctx, ctx.input(1), ctx.input(2));
}

Status SizeKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const auto table, TableInput(ctx));
  return ctx.Return(Tensor::Scalar(table->size()));
}

Status ExportKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const auto table, TableInput(ctx));
  if (ctx.output_type(0) != table->key_type() || ctx.output_type(1) != table->value_type()) {
    return InvalidArgument("the table has ", table->key_type(), "->", table->value_type(),
                           ", wanted ", ctx.output_type(0), "->", ctx.output_type(1));
  }
  return table->Export(ctx);
}

/// How the lines of a text file become the entries of a table.
struct FileFormat : KernelState {
  static constexpr int64_t kLineNumber = -1;  // of a key_index or value_index; -2: the whole line

  explicit FileFormat(KernelConstruction& c)
      : key_index(c.Attr<int64_t>("key_index")),
        value_index(c.Attr<int64_t>("value_index")),
        vocab_size(c.Attr<int64_t>("vocab_size")),
        offset(c.Attr<int64_t>("offset")) {
    const std::string text = c.Attr<std::string>("delimiter");
    if (text.size() == 1) delimiter = text[0];
    if (text.size() != 1) {
      c.Fail(InvalidArgument("delimiter should be only 1 char, found '", text, "'"));
    }
  }

  int64_t key_index, value_index, vocab_size, offset;
  char delimiter = '\t';
};

/// Makes `field`, a field of line `line` or its number, element `line` of `t`.
Status ReadField(std::string_view text, int64_t index, int64_t line, const FileFormat& format,
                 Tensor* t) {
  if (index == FileFormat::kLineNumber) {
    if (t->dtype() != DType::kInt64) {
      return InvalidArgument("line numbers are int64, the table wants ", t->dtype());
    }
    t->data<int64_t>()[line] = line + format.offset;
    return OkStatus();
  }
  for (int64_t i = 0; i < index; ++i) {
    const size_t end = text.find(format.delimiter);
    if (end == std::string_view::npos) {
      return InvalidArgument("Invalid number of columns in line ", line, ": expected at least ",
                             index + 1, ", found ", i + 1);
    }
    text.remove_prefix(end + 1);
  }
  if (index >= 0) text = text.substr(0, text.find(format.delimiter));
  if (t->dtype() == DType::kString) {
    t->data<TString>()[line] = text;
    return OkStatus();
  }
  bool read = false;
  Dispatch(t->dtype(), TypeList<float, double, int32_t, int64_t>(),
           [&]<typename T>(T) { read = ReadNumber(text, t->data<T>() + line); });
  if (read) return OkStatus();
  return InvalidArgument("Field ", text, " in line ", line, " is not a valid ", t->dtype(), ".");
}

Status InitializeFromFileKernel(KernelContext& ctx, const FileFormat& format) {
  TENON_ASSIGN_OR_RETURN(const auto table, TableInput(ctx));
  if (ctx.input(1).num_elements() != 1) {
    return InvalidArgument("filename must be a scalar, found shape ", ctx.input(1).shape());
  }
  const std::string path(ctx.input(1).scalar<TString>());
  TENON_ASSIGN_OR_RETURN(const FileContext files, FilesFor(ctx));
  TENON_ASSIGN_OR_RETURN(const std::string content, ReadFileToString(path, files));
  CountedVector<std::string_view> lines;
  std::string_view rest = content;
  while (!rest.empty() &&
         (format.vocab_size < 0 || static_cast<int64_t>(lines.size()) < format.vocab_size)) {
    const size_t end = rest.find('\n');
    std::string_view line = rest.substr(0, end);
    rest = end == std::string_view::npos ? "" : rest.substr(end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) {
      return InvalidArgument("Invalid content in ", path, ": empty line found at position ",
                             lines.size(), ".");
    }
    lines.push_back(line);
  }
  const int64_t n = static_cast<int64_t>(lines.size());
  if (format.vocab_size >= 0 && n < format.vocab_size) {
    return InvalidArgument("Invalid vocab_size in ", path, ": expected ", format.vocab_size,
                           " but got ", n);
  }
  TENON_ASSIGN_OR_RETURN(Tensor keys, ctx.AllocateTemp(table->key_type(), {n}));
  TENON_ASSIGN_OR_RETURN(Tensor values, ctx.AllocateTemp(table->value_type(), {n}));
  for (int64_t i = 0; i < n; ++i) {
    Status status = ReadField(lines[i], format.key_index, i, format, &keys);
    if (status.ok()) status = ReadField(lines[i], format.value_index, i, format, &values);
    if (!status.ok()) return Annotate(status, path);
  }
  return table->Initialize(keys, values);
}

/// Immutable tables are made of those keys and values that TensorFlow makes them of.
template <typename K>
void AddTable(OpBuilder op, std::string_view table) {
  if (table != "HashTable") {
    op.Kernel<K>(kCpu);
    return;
  }
  const DTypeVector of_int32 = {DType::kFloat, DType::kDouble, DType::kInt32, DType::kString};
  DTypeVector of_int64 = of_int32, of_text = of_int32;
  of_int64.push_back(DType::kInt64);
  of_text.insert(of_text.end(), {DType::kInt64, DType::kBool});
  for (const auto& [key, values] :
       {std::pair(DType::kInt32, of_int32), {DType::kInt64, of_int64}, {DType::kString, of_text}}) {
    op.Kernel<K>(kCpu, {.types = {{"key_dtype", {key}}, {"value_dtype", values}}});
  }
}

}  // namespace

void RegisterLookupKernels(OpRegistry& ops) {
  const auto get = [&ops](std::string_view name, std::string_view version, ShapeFn shape) {
    return ops.Get(StrCat(name, version))
        .Shape(shape)
        .NoExample("needs a table; lookup_ops_test covers it");
  };
  // The ops of TensorFlow 1 give and take references, the others resource handles.
  for (const std::string_view version : {"", "V2"}) {
    for (const char* table :
         {"HashTable", "MutableHashTable", "MutableHashTableOfTensors", "MutableDenseHashTable"}) {
      AddTable<TableKernel>(get(table, version, version.empty() ? ReferenceShape : ScalarShape),
                            table);
    }
    get("InitializeTable", version, NoOutputShape).Kernel(kCpu, InitializeKernel);
    get("InitializeTableFromTextFile", version, NoOutputShape)
        .Kernel(kCpu, InitializeFromFileKernel);
    get("LookupTableInsert", version, NoOutputShape)
        .Kernel(kCpu, ChangeKernel<&LookupTable::Insert>);
    get("LookupTableImport", version, NoOutputShape)
        .Kernel(kCpu, ChangeKernel<&LookupTable::Import>);
    get("LookupTableFind", version, UnknownShape).Kernel(kCpu, FindKernel);
    get("LookupTableSize", version, ScalarShape).Kernel(kCpu, SizeKernel, {.cheap = true});
    get("LookupTableExport", version, UnknownShape).Kernel(kCpu, ExportKernel);
  }
  get("LookupTableRemoveV2", "", NoOutputShape).Kernel(kCpu, RemoveKernel);
  for (const char* table :
       {"HashTable", "MutableHashTable", "MutableHashTableOfTensors", "MutableDenseHashTable"}) {
    AddTable<AnonymousTableKernel>(get("Anonymous", table, ScalarShape), table);
  }
}

}  // namespace tenon
