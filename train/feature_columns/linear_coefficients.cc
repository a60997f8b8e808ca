// SPDX-License-Identifier: Apache-2.0
#include "train/feature_columns/linear_coefficients.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <tuple>

#include "train/glm/text/csv_field.h"
#include "train/glm/text/number_text.h"
#include "train/glm/text/text_table.h"

namespace tenon {
namespace {

constexpr std::string_view kBias = "(bias)";

/// The parts of "<scope>linear_model/<column>/weights" and "<scope>linear_model/bias_weights".
struct WeightsName {
  std::string scope, column;
};

std::optional<WeightsName> ParseWeightsName(std::string_view name) {
  constexpr std::string_view kModel = "linear_model/", kEnd = "/weights";
  const size_t at = name.find(kModel);
  if (at == std::string_view::npos || (at > 0 && name[at - 1] != '/')) return std::nullopt;
  const std::string scope(name.substr(0, at));
  std::string_view rest = name.substr(at + kModel.size());
  if (rest == "bias_weights") return WeightsName{scope, std::string(kBias)};
  if (!rest.ends_with(kEnd) || rest.size() == kEnd.size()) return std::nullopt;
  rest.remove_suffix(kEnd.size());
  return WeightsName{scope, std::string(rest)};
}

/// A vector is a column.
std::optional<std::pair<int64_t, int64_t>> SizesOf(const Shape& shape) {
  if (shape.rank() == 1) return std::pair(int64_t{1}, shape.dim(0));  // the bias
  if (shape.rank() == 2) return std::pair(shape.dim(0), shape.dim(1));
  return std::nullopt;
}

double ElementAt(const Tensor& value, int64_t i) {
  return value.dtype() == DType::kFloat ? value.data<float>()[i] : value.data<double>()[i];
}

template <typename T>
std::string Shortest(T value) {
  char text[64];
  const auto end = std::to_chars(std::begin(text), std::end(text), value);
  return std::string(text, end.ptr);
}

std::string WeightText(const LinearCoefficient& c) {
  return c.is_float ? Shortest(static_cast<float>(c.weight)) : Shortest(c.weight);
}

}  // namespace

bool IsLinearWeights(std::string_view name) { return ParseWeightsName(name).has_value(); }

bool HasLinearWeights(const BundleReader& checkpoint) {
  return std::any_of(checkpoint.names().begin(), checkpoint.names().end(), IsLinearWeights);
}

StatusOr<LinearCoefficients> ReadLinearCoefficients(const BundleReader& checkpoint,
                                                    const Graph* graph,
                                                    const std::string& why_no_graph,
                                                    const FindVocabulary& find) {
  struct Variable {
    std::string name;
    WeightsName parsed;
  };
  std::vector<Variable> variables;
  std::set<std::string> scopes;
  for (const std::string& name : checkpoint.names()) {
    const auto parsed = ParseWeightsName(name);
    if (!parsed) continue;
    variables.push_back({name, *parsed});
    scopes.insert(parsed->scope);
  }
  if (variables.empty()) {
    return NotFound("the checkpoint '", checkpoint.prefix(),
                    "' has no coefficients of a linear model: found no tensor "
                    ".../linear_model/COLUMN/weights, as feature columns name them");
  }
  std::sort(variables.begin(), variables.end(), [](const Variable& a, const Variable& b) {
    return std::tuple(a.parsed.scope, a.parsed.column != kBias, a.name) <
           std::tuple(b.parsed.scope, b.parsed.column != kBias, b.name);
  });
  LinearCoefficients model;
  if (graph == nullptr) model.notes.push_back(StrCat("Rows have no names: ", why_no_graph, "."));
  std::set<std::string> files;
  for (const auto& [name, parsed] : variables) {
    TENON_ASSIGN_OR_RETURN(const Tensor value, checkpoint.Read(name));
    const auto sizes = SizesOf(value.shape());
    if (!sizes || (value.dtype() != DType::kFloat && value.dtype() != DType::kDouble)) {
      model.notes.push_back(StrCat("'", name, "' is ", ToString(value.dtype()),
                                   value.shape().ToString(), " and left out."));
      continue;
    }
    const auto [rows, outputs] = *sizes;
    const std::string column =
        scopes.size() > 1 ? StrCat(parsed.scope, parsed.column) : parsed.column;
    WeightRows named;
    if (parsed.column == kBias) {
      named.rows.resize(rows);
    } else if (graph == nullptr) {
      named = UnnamedRows(rows, "");
    } else {
      named = NameWeightRows(*graph, name, rows, find);
    }
    if (!named.why_unnamed.empty()) {
      model.notes.push_back(StrCat("Rows of ", column, " have no names: ", named.why_unnamed, "."));
    }
    if (!named.file.empty() && files.insert(named.file).second) {
      model.notes.push_back(StrCat("Names of ", column, " are from '", named.file, "'."));
    }
    model.outputs = std::max(model.outputs, outputs);
    for (int64_t row = 0; row < rows; ++row) {
      const WeightRow& meaning = named.rows[row];
      for (int64_t output = 0; output < outputs; ++output) {
        model.coefficients.push_back(
            {.column = column,
             .level = meaning.level,
             .kind = std::string(parsed.column == kBias ? "bias" : ToString(meaning.kind)),
             .row = row,
             .output = output,
             .weight = ElementAt(value, row * outputs + output),
             .is_float = value.dtype() == DType::kFloat});
      }
    }
  }
  return model;
}

std::string CoefficientTable(const LinearCoefficients& model, size_t most) {
  constexpr int64_t kWidestLevel = 40;
  using Align = TextTable::Align;
  TextTable table({{"Column", Align::kLeft},
                   {"Level", Align::kLeft},
                   {"Output", Align::kRight},
                   {"Weight", Align::kPoint}});
  const size_t shown = std::min(most, model.coefficients.size());
  for (size_t i = 0; i < shown; ++i) {
    const LinearCoefficient& c = model.coefficients[i];
    table.AddRow({ShownText(c.column), CutInMiddle(ShownText(c.level), kWidestLevel),
                  StrCat(c.output), SignificantText(c.weight, 5, 6)});
  }
  if (model.outputs == 1) table.RemoveColumn(2);
  std::string text;
  for (const std::string& line : table.Lines(2)) StrAppend(&text, line, "\n");
  if (shown < model.coefficients.size()) {
    StrAppend(&text, "... ", CountText(static_cast<int64_t>(model.coefficients.size() - shown)),
              " more\n");
  }
  for (const std::string& note : model.notes) StrAppend(&text, ShownText(note), "\n");
  return text;
}

std::string CoefficientCsv(const LinearCoefficients& model) {
  const bool several = model.outputs > 1;
  std::string text =
      several ? "column,level,kind,row,output,weight\n" : "column,level,kind,row,weight\n";
  for (const LinearCoefficient& c : model.coefficients) {
    StrAppend(&text, CsvField(c.column), ",", CsvField(c.level), ",", c.kind, ",", c.row, ",");
    if (several) StrAppend(&text, c.output, ",");
    StrAppend(&text, WeightText(c), "\n");
  }
  return text;
}

}  // namespace tenon
