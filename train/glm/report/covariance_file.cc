// SPDX-License-Identifier: Apache-2.0
#include "train/glm/report/covariance_file.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/strings.h"
#include "core/tensor/tensor.h"
#include "data/arrays/npy.h"
#include "data/files/path.h"

namespace tenon {
namespace {

using Blocks = GlmCovariance::Blocks;

std::vector<std::string> NamesOfEstimates(const GlmEquation& equation) {
  std::vector<std::string> names;
  for (size_t j = 0; j < equation.design_columns.size(); ++j) {
    if (equation.is_aliased[j]) continue;
    names.push_back(NameOfColumn(equation.formula, equation.variables, equation.design_columns[j]));
  }
  return names;
}

bool IsListOf(const Tensor& names, const std::vector<std::string>& wanted) {
  return names.dtype() == DType::kString &&
         names.num_elements() == static_cast<int64_t>(wanted.size()) &&
         std::equal(
             wanted.begin(), wanted.end(), names.data<TString>(),
             [](const std::string& a, const TString& b) { return std::string_view(b) == a; });
}

/// The arrays of a file whose numbers are wanted.
class NumbersReader {
 public:
  NumbersReader(const NpzReader& file, const std::string& path) : file_(file), path_(path) {}

  StatusOr<std::vector<double>> Read(const char* name, const Shape& shape) const {
    TENON_ASSIGN_OR_RETURN(const Tensor array, file_.Read(name));
    if (array.dtype() != DType::kDouble || array.shape() != shape) {
      return InvalidArgument("'", path_, "' has another model's covariance: its array '", name,
                             "' is of shape ", array.shape().ToString(), ", wanted ",
                             shape.ToString());
    }
    return std::vector<double>(array.data<double>(), array.data<double>() + array.num_elements());
  }

  StatusOr<Blocks> ReadBlocks(int64_t size) const {
    Blocks blocks;
    TENON_ASSIGN_OR_RETURN(const Tensor first, file_.Read("first_level"));
    TENON_ASSIGN_OR_RETURN(const Tensor own, file_.Read("own"));
    blocks.num_levels = own.num_elements();
    const int64_t others = size - blocks.num_levels;
    if (first.dtype() != DType::kInt64 || first.num_elements() != 1 || others < 0 ||
        first.data<int64_t>()[0] < 0 || first.data<int64_t>()[0] > others) {
      return InvalidArgument("'", path_, "' has another model's covariance: ", blocks.num_levels,
                             " levels among ", size, " estimates");
    }
    blocks.first_level = first.data<int64_t>()[0];
    const Shape by_level({blocks.num_levels, others});
    TENON_ASSIGN_OR_RETURN(blocks.own, Read("own", Shape({blocks.num_levels})));
    TENON_ASSIGN_OR_RETURN(blocks.others, Read("others", Shape({others, others})));
    TENON_ASSIGN_OR_RETURN(blocks.crossed, Read("crossed", by_level));
    TENON_ASSIGN_OR_RETURN(blocks.left, Read("left", by_level));
    TENON_ASSIGN_OR_RETURN(blocks.right, Read("right", by_level));
    return blocks;
  }

 private:
  const NpzReader& file_;
  const std::string& path_;
};

/// Arrays of an npz file that is made.
class NumbersWriter {
 public:
  Status Add(const char* name, const std::vector<double>& numbers, const Shape& shape) {
    TENON_ASSIGN_OR_RETURN(Tensor array, Tensor::Allocate(CpuAllocator(), DType::kDouble, shape));
    std::copy(numbers.begin(), numbers.end(), array.data<double>());
    arrays.emplace_back(name, std::move(array));
    return OkStatus();
  }

  std::vector<std::pair<std::string, Tensor>> arrays;
};

}  // namespace

Status WriteCovariance(const GlmResult& result, const std::string& path,
                       const FileContext& context) {
  const Blocks& blocks = result.covariance.blocks();
  const int64_t others = result.covariance.size() - blocks.num_levels;
  NumbersWriter writer;
  if (blocks.num_levels == 0) {
    TENON_RETURN_IF_ERROR(writer.Add("covariance", blocks.others, Shape({others, others})));
  } else {
    const Shape by_level({blocks.num_levels, others});
    TENON_RETURN_IF_ERROR(writer.Add("others", blocks.others, Shape({others, others})));
    TENON_RETURN_IF_ERROR(writer.Add("crossed", blocks.crossed, by_level));
    TENON_RETURN_IF_ERROR(writer.Add("left", blocks.left, by_level));
    TENON_RETURN_IF_ERROR(writer.Add("right", blocks.right, by_level));
    TENON_RETURN_IF_ERROR(writer.Add("own", blocks.own, Shape({blocks.num_levels})));
    writer.arrays.emplace_back("first_level", Tensor::Scalar(blocks.first_level));
  }
  std::vector<double> estimates;
  std::vector<std::string> names;
  for (const GlmCoefficient& c : result.coefficients) {
    if (c.status != CoefficientStatus::kOk) continue;
    estimates.push_back(c.estimate);
    names.push_back(c.name);
  }
  writer.arrays.emplace_back("estimates", Tensor::Vector(estimates));
  writer.arrays.emplace_back("names", Tensor::Vector(names));
  return WriteNpz(path, writer.arrays, /*compress=*/false, context);
}

StatusOr<GlmCovariance> LoadCovariance(const GlmEquation& equation, const std::string& folder,
                                       const FileContext& context) {
  const std::string path = JoinPath(folder, kCovarianceFile);
  if (!FileExists(path, context)) {
    return NotFound("the model in '", folder, "' has no standard errors, as under a penalty and ",
                    "by lbfgs: there is no '", path, "'");
  }
  TENON_ASSIGN_OR_RETURN(const NpzReader file, NpzReader::Open(path, context));
  TENON_ASSIGN_OR_RETURN(const Tensor names, file.Read("names"));
  const std::vector<std::string> wanted = NamesOfEstimates(equation);
  if (!IsListOf(names, wanted)) {
    return InvalidArgument("'", path, "' has another model's covariance");
  }
  const auto size = static_cast<int64_t>(wanted.size());
  const NumbersReader numbers(file, path);
  const std::vector<std::string> arrays = file.names();
  if (std::find(arrays.begin(), arrays.end(), "covariance") == arrays.end()) {
    TENON_ASSIGN_OR_RETURN(Blocks blocks, numbers.ReadBlocks(size));
    return GlmCovariance(std::move(blocks));
  }
  Blocks blocks;
  TENON_ASSIGN_OR_RETURN(blocks.others, numbers.Read("covariance", Shape({size, size})));
  return GlmCovariance(std::move(blocks));
}

}  // namespace tenon
