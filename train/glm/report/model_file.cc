// SPDX-License-Identifier: Apache-2.0
#include "train/glm/report/model_file.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/program_version.h"
#include "core/base/strings.h"
#include "data/files/path.h"
#include "proto/table.pb.h"
#include "train/glm/inference/equation_of_fit.h"
#include "train/glm/text/json_text.h"

namespace tenon {
namespace {

constexpr char kModelFormat[] = "tenon linear model";
constexpr int kModelVersion = 1;

constexpr std::pair<FormulaVariable::Kind, const char*> kFactorKinds[] = {
    {FormulaVariable::Kind::kCategory, "category"},
    {FormulaVariable::Kind::kCut, "cut"},
    {FormulaVariable::Kind::kHash, "hash"}};

Status CheckUtf8(const std::string& what, const std::vector<std::string>& texts) {
  for (const std::string& text : texts) {
    if (IsUtf8(text)) continue;
    return InvalidArgument("model.json cannot have ", what, " ", JsonText(text),
                           ", which is no UTF-8");
  }
  return OkStatus();
}

StatusOr<JsonObject> JsonOfVariable(const GlmEquation& equation, size_t v) {
  const FormulaVariable& variable = equation.formula.variables[v];
  const DesignVariable& design = equation.variables[v];
  JsonObject json;
  json.Add("label", variable.label);
  if (!variable.column.empty()) json.Add("column", variable.column);
  if (!design.is_factor) {
    json.Add("kind", "number");
    return json;
  }
  const auto kind = std::find_if(std::begin(kFactorKinds), std::end(kFactorKinds),
                                 [&](const auto& named) { return named.first == variable.kind; });
  json.Add("kind", kind->second);
  if (variable.kind == FormulaVariable::Kind::kHash) json.Add("buckets", variable.num_buckets);
  if (variable.kind == FormulaVariable::Kind::kCut) json.Add("breaks", variable.breaks);
  TENON_RETURN_IF_ERROR(CheckUtf8(StrCat("the level of ", variable.label), design.levels));
  json.Add("levels", design.levels);
  json.Add("reference", design.levels[design.reference]);
  if (!equation.separated[v].empty()) json.Add("separated", equation.separated[v]);
  return json;
}

/// Sets the levels of a variable as the file has them.
Status ReadVariable(const table::ModelVariable& from, size_t v, GlmEquation* equation) {
  const FormulaVariable& variable = equation->formula.variables[v];
  if (from.label() != variable.label) {
    return InvalidArgument("variable ", v + 1, " is '", from.label(), "', its formula has '",
                           variable.label, "' there");
  }
  DesignVariable& design = equation->variables[v];
  equation->separated[v] = {from.separated().begin(), from.separated().end()};
  const bool may_be_either = variable.kind == FormulaVariable::Kind::kColumn;
  const auto wanted =
      std::find_if(std::begin(kFactorKinds), std::end(kFactorKinds), [&](const auto& named) {
        return named.first == (may_be_either ? FormulaVariable::Kind::kCategory : variable.kind);
      });
  design.is_factor = from.kind() != "number";
  const bool is_known = design.is_factor
                            ? wanted != std::end(kFactorKinds) && from.kind() == wanted->second
                            : may_be_either || variable.kind == FormulaVariable::Kind::kNumber;
  if (!is_known) {
    return InvalidArgument("variable '", from.label(), "' cannot be of kind '", from.kind(), "'");
  }
  if (!design.is_factor) return OkStatus();
  design.levels = {from.levels().begin(), from.levels().end()};
  std::vector<std::string> sorted = design.levels;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) {
    return InvalidArgument("variable '", from.label(), "' has the level '", *twice, "' twice");
  }
  const auto reference = std::find(design.levels.begin(), design.levels.end(), from.reference());
  if (reference == design.levels.end()) {
    return InvalidArgument("variable '", from.label(), "' has no level '", from.reference(),
                           "' for its reference");
  }
  design.reference = reference - design.levels.begin();
  return OkStatus();
}

/// InvalidArgument where the levels would make more columns than there are coefficients: their
/// product is not to be taken at its word.
Status CheckSize(const GlmEquation& equation, int64_t num_coefficients) {
  for (const FormulaTerm& term : equation.formula.terms) {
    int64_t least = 1;
    for (const int64_t v : term.variables) {
      const DesignVariable& design = equation.variables[v];
      if (!design.is_factor) continue;
      least *= std::max<int64_t>(static_cast<int64_t>(design.levels.size()) - 1, 1);
      if (least > num_coefficients + 1) {
        return InvalidArgument("term '", term.label, "' has more than ", num_coefficients,
                               " coefficients, which are all");
      }
    }
  }
  return OkStatus();
}

Status ReadCoefficients(const table::ModelFile& file, GlmEquation* equation) {
  TENON_RETURN_IF_ERROR(CheckSize(*equation, file.coefficients_size()));
  equation->design_columns = ListDesignColumns(equation->formula, equation->variables);
  const auto count = static_cast<int>(equation->design_columns.size());
  if (file.coefficients_size() != count) {
    return InvalidArgument("found ", file.coefficients_size(), " coefficients, the formula has ",
                           count);
  }
  for (int j = 0; j < count; ++j) {
    const table::ModelCoefficient& from = file.coefficients(j);
    const std::string name =
        NameOfColumn(equation->formula, equation->variables, equation->design_columns[j]);
    if (from.name() != name) {
      return InvalidArgument("coefficient ", j + 1, " is '", from.name(), "', the formula has '",
                             name, "' there");
    }
    const bool has_estimate = from.has_estimate() && std::isfinite(from.estimate());
    if (!has_estimate && !from.aliased()) {
      return InvalidArgument("coefficient '", name, "' has no estimate");
    }
    equation->coefficients.push_back(from.aliased() ? 0 : from.estimate());
    equation->is_aliased.push_back(from.aliased());
  }
  return OkStatus();
}

StatusOr<GlmEquation> EquationIn(const table::ModelFile& file) {
  if (file.format() != kModelFormat) {
    return InvalidArgument("its format is '", file.format(), "', wanted '", kModelFormat, "'");
  }
  if (file.version() != kModelVersion) {
    return InvalidArgument("it is of version ", file.version(), ", this program reads version ",
                           kModelVersion);
  }
  GlmEquation equation;
  equation.text = file.formula();
  equation.columns = {file.table().columns().begin(), file.table().columns().end()};
  equation.weights = file.weights();
  TENON_ASSIGN_OR_RETURN(equation.family, ParseGlmFamily(file.family()));
  TENON_ASSIGN_OR_RETURN(equation.link, ParseGlmLink(file.link()));
  TENON_RETURN_IF_ERROR(CheckLink(equation.family, equation.link));
  if (file.table().delimiter().size() != 1) {
    return InvalidArgument("its delimiter is '", file.table().delimiter(), "', wanted one byte");
  }
  equation.format = {file.table().delimiter()[0],
                     file.table().quotes(),
                     {file.table().missing().begin(), file.table().missing().end()}};
  const std::vector<std::string> reserved =
      equation.weights.empty() ? std::vector<std::string>() : std::vector{equation.weights};
  TENON_ASSIGN_OR_RETURN(equation.formula, ParseFormula(equation.text, equation.columns, reserved));
  equation.response_levels = {file.response_levels().begin(), file.response_levels().end()};
  const FormulaResponse& response = equation.formula.response;
  if (!equation.response_levels.empty() &&
      (equation.response_levels.size() != 2 || response.number.columns.size() != 1)) {
    return InvalidArgument("its response '", response.label, "' has ",
                           equation.response_levels.size(), " levels");
  }
  const size_t num_variables = equation.formula.variables.size();
  if (static_cast<size_t>(file.variables_size()) != num_variables) {
    return InvalidArgument("found ", file.variables_size(), " variables, the formula has ",
                           num_variables);
  }
  equation.variables.resize(num_variables);
  equation.separated.resize(num_variables);
  for (size_t v = 0; v < num_variables; ++v) {
    TENON_RETURN_IF_ERROR(ReadVariable(file.variables(static_cast<int>(v)), v, &equation));
  }
  SettleFormula(equation.variables, equation.response_levels, &equation.formula);
  TENON_RETURN_IF_ERROR(ReadCoefficients(file, &equation));
  return equation;
}

}  // namespace

StatusOr<std::string> ModelJson(const GlmResult& result) {
  const GlmEquation& equation = *result.equation;
  JsonObject json, table;
  json.Add("format", kModelFormat);
  json.Add("version", int64_t{kModelVersion});
  json.Add("program", StrCat("tenon ", kProgramVersion));
  json.Add("formula", equation.text);
  json.Add("family", NameOf(equation.family));
  json.Add("link", NameOf(equation.link));
  if (!equation.weights.empty()) json.Add("weights", equation.weights);
  if (!equation.response_levels.empty()) json.Add("response_levels", equation.response_levels);
  json.Add("objective", result.objective);
  json.Add("method", result.method);
  json.Add("converged", result.converged);
  TENON_RETURN_IF_ERROR(CheckUtf8("the column", equation.columns));
  TENON_RETURN_IF_ERROR(CheckUtf8("the level of the response", equation.response_levels));
  std::vector<JsonObject> variables, coefficients, files;
  for (size_t v = 0; v < equation.variables.size(); ++v) {
    TENON_ASSIGN_OR_RETURN(JsonObject variable, JsonOfVariable(equation, v));
    variables.push_back(std::move(variable));
  }
  for (size_t j = 0; j < equation.design_columns.size(); ++j) {
    JsonObject coefficient;
    coefficient.Add("name",
                    NameOfColumn(equation.formula, equation.variables, equation.design_columns[j]));
    if (equation.is_aliased[j]) {
      coefficient.Add("aliased", true);
    } else {
      coefficient.Add("estimate", equation.coefficients[j]);
    }
    coefficients.push_back(std::move(coefficient));
  }
  json.Add("variables", variables);
  json.Add("coefficients", coefficients);
  table.Add("delimiter", std::string(1, equation.format.delimiter));
  table.Add("quotes", equation.format.quotes);
  table.Add("missing", equation.format.missing);
  table.Add("columns", equation.columns);
  json.Add("table", table);
  for (const GlmResult::File& file : result.files) {
    files.emplace_back();
    files.back().Add("path", file.path);
    files.back().Add("size", file.size);
  }
  json.Add("files", files);
  return json.Text() + "\n";
}

StatusOr<GlmEquation> ParseModel(std::string_view json) {
  table::ModelFile file;
  // What a later version has more of is passed over, as long as it says that it is of this one.
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  const auto status = google::protobuf::util::JsonStringToMessage(
      google::protobuf::StringPiece(json.data(), json.size()), &file, options);
  if (!status.ok()) {
    return InvalidArgument("it is no JSON of a model: ", std::string(status.message()));
  }
  return EquationIn(file);
}

StatusOr<GlmEquation> LoadGlm(const std::string& folder, const FileContext& context) {
  const std::string path = JoinPath(folder, kModelFile);
  TENON_ASSIGN_OR_RETURN(const std::string json, ReadFileToString(path, context));
  auto equation = ParseModel(json);
  if (!equation.ok()) return Annotate(equation.status(), StrCat("the model in '", path, "'"));
  return equation;
}

}  // namespace tenon
