// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "core/base/hash_map.h"
#include "core/base/interruption.h"
#include "core/memory/counted_memory.h"
#include "core/op/op_registry.h"
#include "data/checkpoint/tensor_bundle.h"
#include "ops/arguments.h"
#include "ops/io/files_for.h"

namespace tenon {
namespace {

/// The lines of a file, or the first `count` of them, which must then be there.
struct Vocabulary {
  std::string content;
  CountedVector<std::string_view> words;
};
Status ReadVocabulary(const KernelContext& ctx, int input, std::string_view what, int64_t count,
                      Vocabulary* vocabulary) {
  TENON_RETURN_IF_ERROR(CheckRank(ctx.input(input), 0, what));
  const std::string path(ctx.input(input).scalar<TString>());
  if (path.empty()) return InvalidArgument(what, " cannot be empty");
  TENON_ASSIGN_OR_RETURN(const FileContext files, FilesFor(ctx));
  TENON_ASSIGN_OR_RETURN(vocabulary->content, ReadFileToString(path, files));
  std::string_view rest = vocabulary->content;
  auto& words = vocabulary->words;
  while (!rest.empty() && (count < 0 || static_cast<int64_t>(words.size()) < count)) {
    const size_t end = rest.find('\n');
    std::string_view word = rest.substr(0, end);
    rest = end == std::string_view::npos ? "" : rest.substr(end + 1);
    if (word.ends_with('\r')) word.remove_suffix(1);
    if (word.empty()) return InvalidArgument(path, " has an empty line ", words.size());
    words.push_back(word);
  }
  if (count < 0 || static_cast<int64_t>(words.size()) == count) return OkStatus();
  return InvalidArgument(path, " has ", words.size(), " lines, wanted ", count);
}

Status VocabRemappingKernel(KernelContext& ctx, int64_t offset, int64_t count, int64_t old_size) {
  Vocabulary now, before;
  TENON_RETURN_IF_ERROR(ReadVocabulary(ctx, 0, "new_vocab_file", -1, &now));
  TENON_RETURN_IF_ERROR(ReadVocabulary(ctx, 1, "old_vocab_file", old_size, &before));
  TENON_ASSIGN_OR_RETURN(const int64_t end, AddSizes(offset, count));
  const auto size = static_cast<int64_t>(now.words.size());
  if (end > size) {
    return InvalidArgument("new_vocab_file has ", size, " lines, wanted ", count, " from line ",
                           offset, " on");
  }
  StringViewMap<int64_t> places;
  for (const std::string_view word : before.words) {
    const auto place = static_cast<int64_t>(places.size());
    if (places.emplace(word, place).second) continue;
    return FailedPrecondition("old_vocab_file has '", word, "' twice");
  }
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, {count}));
  int32_t present = 0;
  for (int64_t i = 0; i < count; ++i) {
    const auto found = places.find(now.words[offset + i]);
    out->data<int64_t>()[i] = found == places.end() ? -1 : found->second;
    present += found != places.end();
  }
  ctx.set_output(1, Tensor::Scalar(present));
  return OkStatus();
}

/// Checks that no two new rows or columns come from one old one, and that these are there.
Status CheckRemapping(const Tensor& remapping, std::string_view what, int64_t count,
                      int64_t limit) {
  if (remapping.shape() != Shape{count}) {
    return InvalidArgument(what, " must have ", count, " elements, found shape ",
                           remapping.shape());
  }
  flat_hash_set<int64_t> seen;
  for (const int64_t old : remapping.flat<int64_t>()) {
    if (old < 0) continue;
    if (old >= limit) return NotInRange(old, limit, "an element of ", what);
    if (!seen.insert(old).second) {
      return Unimplemented("Old ID ", old, " is mapped to two new ones, which is not supported");
    }
  }
  return OkStatus();
}

Status RemapMatrixKernel(KernelContext& ctx, int64_t rows, int64_t columns, int64_t max_rows) {
  if (ctx.input(0).num_elements() != 1) {
    return InvalidArgument("The `ckpt_path` tensor must have exactly one element, got tensor of ",
                           "shape ", ctx.input(0).shape());
  }
  const std::string name(ctx.input(1).scalar<TString>());
  const Tensor &row_map = ctx.input(2), &column_map = ctx.input(3), &fill = ctx.input(4);
  for (const auto& [map, what] :
       {std::pair(&row_map, "row_remapping"), std::pair(&column_map, "col_remapping")}) {
    if (map->rank() == 1) continue;
    return InvalidArgument(what, " tensor must be 1-D, found shape ", map->shape());
  }
  TENON_ASSIGN_OR_RETURN(const FileContext files, FilesFor(ctx));
  TENON_ASSIGN_OR_RETURN(const auto reader,
                         BundleReader::Open(std::string(ctx.input(0).scalar<TString>()), files));
  TENON_ASSIGN_OR_RETURN(const BundleEntry* entry, reader->Find(name));
  if (entry->dtype != DType::kFloat || entry->shape.rank() != 2) {
    return InvalidArgument("tensor ", name, " must be a matrix of float, found ", entry->dtype,
                           " of shape ", entry->shape);
  }
  const int64_t old_rows = entry->shape.dim(0), old_columns = entry->shape.dim(1);
  TENON_RETURN_IF_ERROR(CheckRemapping(row_map, "row_remapping", rows, old_rows));
  const bool all_columns = column_map.num_elements() == 0;
  if (!all_columns) {
    TENON_RETURN_IF_ERROR(CheckRemapping(column_map, "col_remapping", columns, old_columns));
  } else if (old_columns != columns) {
    return InvalidArgument("tensor ", name, " has ", old_columns, " columns, wanted ", columns);
  }
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, {rows, columns}));
  std::map<int64_t, int64_t> new_rows;  // by the old ones
  for (int64_t i = 0; i < rows; ++i) {
    if (row_map.data<int64_t>()[i] >= 0) new_rows[row_map.data<int64_t>()[i]] = i;
  }
  const auto old_column = [&](int64_t c) {
    return all_columns ? c : column_map.data<int64_t>()[c];
  };
  const int64_t block = max_rows > 0 ? max_rows : old_rows;
  for (auto it = new_rows.begin(); it != new_rows.end() && !Interrupted();) {
    const int64_t first = it->first, last = new_rows.rbegin()->first;
    const int64_t count = std::min(block, last - first + 1);
    TENON_ASSIGN_OR_RETURN(
        const Tensor part,
        reader->ReadSlice(name, TensorSlice({{first, count}, {0, old_columns}})));
    for (; it != new_rows.end() && it->first < first + count; ++it) {
      const float* const from = part.data<float>() + (it->first - first) * old_columns;
      float* const to = out->data<float>() + it->second * columns;
      for (int64_t c = 0; c < columns; ++c) to[c] = old_column(c) >= 0 ? from[old_column(c)] : 0;
    }
  }
  int64_t used = 0;
  for (int64_t i = 0; i < rows * columns; ++i) {
    if (row_map.data<int64_t>()[i / columns] >= 0 && old_column(i % columns) >= 0) continue;
    if (used < fill.num_elements()) out->data<float>()[i] = fill.data<float>()[used];
    ++used;
  }
  if (used == fill.num_elements()) return OkStatus();
  return InvalidArgument("initializing_values has ", fill.num_elements(), " elements, wanted ",
                         used);
}

Status VocabRemappingShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const int64_t count, c.Attr<int64_t>("num_new_vocab"));
  c.set_output(0, {count});
  c.set_output(1, Shape());
  return OkStatus();
}

Status RemapMatrixShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const int64_t rows, c.Attr<int64_t>("num_rows"));
  TENON_ASSIGN_OR_RETURN(const int64_t columns, c.Attr<int64_t>("num_cols"));
  return c.Return(PartialShape{rows, columns});
}

}  // namespace

void RegisterRemapOps(OpRegistry& ops) {
  const char* const why = "reads files; remap_ops_test covers it";
  ops.Add("GenerateVocabRemapping", VocabRemappingShape, VocabRemappingKernel,
          {.attrs = {"new_vocab_offset", "num_new_vocab", "old_vocab_size"}})
      .NoExample(why);
  ops.Add("LoadAndRemapMatrix", RemapMatrixShape, RemapMatrixKernel,
          {.attrs = {"num_rows", "num_cols", "max_rows_in_memory"}})
      .NoExample(why);
}

}  // namespace tenon
