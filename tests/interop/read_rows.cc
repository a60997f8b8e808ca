// SPDX-License-Identifier: Apache-2.0
// Reads files as an input pipeline does and writes all rows to an .npz file, for
// input_files_test.py: read_rows OUTPUT.npz csv FILE NAME:DTYPE..., read_rows OUTPUT.npz text FILE,
// read_rows OUTPUT.npz records FILE, read_rows OUTPUT.npz images FOLDER.
#include <cstdio>

#include "core/tensor/dtype.h"
#include "data/arrays/npy.h"
#include "train/input/input_pipeline.h"

namespace tenon {
namespace {

using Arguments = std::vector<std::string>;

StatusOr<InputPipeline> Open(const Arguments& arguments, std::vector<std::string>* names) {
  const std::string& kind = arguments[1];
  const std::vector<std::string> paths = {arguments[2]};
  *names = {kind};
  if (kind == "text") return InputPipeline::FromText(paths);
  if (kind == "records") return InputPipeline::FromRecords(paths);
  if (kind == "images") {
    *names = {"images", "folders"};
    return InputPipeline::FromImages(paths);
  }
  if (kind != "csv") return InvalidArgument("no such kind of file: ", kind);
  names->clear();
  std::vector<CsvColumn> columns;
  for (size_t i = 3; i < arguments.size(); ++i) {
    const size_t colon = arguments[i].rfind(':');
    const auto dtype = ParseDType(arguments[i].substr(colon + 1));
    if (!dtype) return InvalidArgument("no such dtype: ", arguments[i]);
    columns.push_back({arguments[i].substr(0, colon), *dtype});
    names->push_back(columns.back().name);
  }
  return InputPipeline::FromCsv(paths, columns);
}

Status Read(const Arguments& arguments) {
  std::vector<std::string> names;
  TENON_ASSIGN_OR_RETURN(const InputPipeline rows, Open(arguments, &names));
  std::vector<std::pair<std::string, Tensor>> arrays;
  InputPipeline all = rows.Batch(int64_t{1} << 30);
  for (const InputElement& element : all) {
    for (size_t i = 0; i < element.size(); ++i) arrays.emplace_back(names[i], element[i]);
  }
  TENON_RETURN_IF_ERROR(all.status());
  return WriteNpz(arguments[0], arrays);
}

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) {
  const tenon::Arguments arguments(argv + 1, argv + argc);
  if (arguments.size() < 3) {
    std::fprintf(stderr, "usage: read_rows OUTPUT.npz csv|text|records|images PATH [COLUMN...]\n");
    return 2;
  }
  const tenon::Status status = tenon::Read(arguments);
  if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(tenon::Message(status)).c_str());
  return status.ok() ? 0 : 1;
}
