// SPDX-License-Identifier: Apache-2.0
#include "train/glm/report/write_glm.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "core/base/hash_map.h"
#include "data/files/path.h"
#include "train/glm/report/covariance_file.h"
#include "train/glm/report/glm_pictures.h"
#include "train/glm/report/glm_saved_model.h"
#include "train/glm/report/model_file.h"
#include "train/glm/report/path_picture.h"
#include "train/glm/text/csv_field.h"
#include "train/glm/text/json_text.h"

namespace tenon {
namespace {

std::string CsvNumber(double value) { return std::isnan(value) ? "" : ShortestText(value); }

std::string CsvLineOf(const std::vector<std::string>& fields) { return Join(fields, ",") + "\n"; }

JsonObject JsonOf(const GlmMetrics& m) {
  JsonObject json;
  json.Add("rows", m.rows);
  if (m.rows_without_prediction > 0) json.Add("rows_without_prediction", m.rows_without_prediction);
  json.Add("log_loss", m.log_loss);
  json.Add("auc", m.auc);
  json.Add("accuracy", m.accuracy);
  json.Add("precision", m.precision);
  json.Add("recall", m.recall);
  json.Add("brier", m.brier);
  json.Add("calibration_intercept", m.calibration_intercept);
  json.Add("calibration_slope", m.calibration_slope);
  json.Add("rmse", m.rmse);
  json.Add("mae", m.mae);
  return json;
}

JsonObject RowsJson(const GlmResult& result) {
  JsonObject rows, missing;
  rows.Add("used", result.rows_used);
  rows.Add("missing", result.rows_missing);
  for (const auto& [column, count] : result.missing_by_column) missing.Add(column, count);
  if (!result.missing_by_column.empty()) rows.Add("missing_by_column", missing);
  rows.Add("separated", result.rows_separated);
  return rows;
}

JsonObject FitJson(const GlmResult& result) {
  JsonObject fit;
  fit.Add("null_deviance", result.null_deviance);
  fit.Add("null_df", result.null_df);
  fit.Add("residual_deviance", result.residual_deviance);
  fit.Add("residual_df", result.residual_df);
  fit.Add("dispersion", result.dispersion);
  fit.Add("dispersion_is_estimated", result.dispersion_is_estimated);
  fit.Add("aic", result.aic);
  fit.Add("bic", result.bic);
  fit.Add("log_likelihood", result.log_likelihood);
  fit.Add("mcfadden_r2", result.mcfadden_r2);
  fit.Add("r2", result.r2);
  fit.Add("adjusted_r2", result.adjusted_r2);
  fit.Add("sigma", result.sigma);
  fit.Add("f_statistic", result.f_statistic);
  if (!std::isnan(result.f_statistic)) {
    fit.Add("f_df1", result.f_df1);
    fit.Add("f_df2", result.f_df2);
  }
  fit.Add("f_p_value", result.f_p_value);
  fit.Add("f_log10_p", result.f_log10_p);
  return fit;
}

}  // namespace

std::string CoefficientsCsv(const GlmResult& result) {
  StringMap<std::string> references;
  for (const GlmCoefficient& c : result.coefficients) {
    if (c.status == CoefficientStatus::kReference) references[c.term] = c.level;
  }
  std::string csv =
      "term,level,reference,estimate,std_error,statistic,p_value,conf_low,conf_high,standardised,"
      "rows,status,log10_p,name,sum_of,ratio,ratio_low,ratio_high\n";
  const bool has_ratios = result.link == "logit" || result.link == "log";
  const auto ratio = [&](const GlmCoefficient& c, double value) {
    return has_ratios && !c.is_intercept() ? CsvNumber(std::exp(value)) : "";
  };
  for (const GlmCoefficient& c : result.coefficients) {
    const auto reference = references.find(c.term);
    const bool has_estimate =
        c.status != CoefficientStatus::kAliased && c.status != CoefficientStatus::kSeparated;
    csv +=
        CsvLineOf({CsvField(c.term), CsvField(c.level),
                   reference == references.end() ? "" : CsvField(reference->second),
                   has_estimate ? CsvNumber(c.estimate) : "", CsvNumber(c.standard_error),
                   CsvNumber(c.statistic), CsvNumber(c.p_value), CsvNumber(c.lower),
                   CsvNumber(c.upper), CsvNumber(c.standardised), c.rows < 0 ? "" : StrCat(c.rows),
                   std::string(ToString(c.status)), CsvNumber(c.log10_p), CsvField(c.name),
                   CsvField(c.sum_of), has_estimate ? ratio(c, c.estimate) : "", ratio(c, c.lower),
                   ratio(c, c.upper)});
  }
  return csv;
}

std::string TermsCsv(const GlmResult& result) {
  std::string csv = "term,df,chi_squared,p_value,log10_p\n";
  for (const GlmTerm& term : result.terms) {
    csv += CsvLineOf({CsvField(term.label), StrCat(term.df), CsvNumber(term.chi_squared),
                      CsvNumber(term.p_value), CsvNumber(term.log10_p)});
  }
  return csv;
}

std::string IterationsCsv(const GlmResult& result) {
  std::string csv = "pass,deviance,gradient_norm,seconds\n";
  for (const GlmIteration& i : result.iterations) {
    csv += CsvLineOf(
        {StrCat(i.pass), CsvNumber(i.deviance), CsvNumber(i.gradient_norm), CsvNumber(i.seconds)});
  }
  return csv;
}

std::string MetricsJson(const GlmResult& result) {
  JsonObject json;
  json.Add("formula", result.formula);
  json.Add("family", result.family);
  json.Add("link", result.link);
  json.Add("rows", RowsJson(result));
  json.Add("method", result.method);
  json.Add("converged", result.converged);
  json.Add("coefficients", result.NumEstimated());
  json.Add("seconds", result.seconds);
  if (!result.objective.empty()) json.Add("objective", result.objective);
  if (result.is_penalised()) {
    JsonObject penalty;
    if (result.ridge > 0) penalty.Add("ridge", result.ridge);
    if (result.lasso > 0) penalty.Add("lasso", result.lasso);
    if (result.lambda > 0) {
      penalty.Add("alpha", result.alpha);
      penalty.Add("lambda", result.lambda);
    }
    penalty.Add("residual", result.penalty_residual);
    json.Add("penalty", penalty);
  }
  if (result.stream) {
    JsonObject stream;
    stream.Add("epochs", result.stream->epochs);
    stream.Add("batch", result.stream->batch_rows);
    stream.Add("learning_rate", result.stream->learning_rate);
    stream.Add("seed", result.stream->seed);
    stream.Add("rows_read", result.stream->rows_read);
    stream.Add("rows_missed", result.stream->rows_missed);
    stream.Add("seconds", result.stream->seconds);
    json.Add("stream", stream);
  }
  if (result.has_inference()) json.Add("standard_errors", result.robust ? "HC1" : "information");
  json.Add("fit", FitJson(result));
  for (const GlmMetrics& m : result.metrics) json.Add(m.data, JsonOf(m));
  json.Add("warnings", result.warnings);
  return json.Text() + "\n";
}

std::string CoefficientsPathCsv(const GlmResult& result) {
  if (result.path.empty()) return "";
  std::vector<std::string> header = {"lambda", "df", "deviance_ratio", "residual"};
  for (const GlmCoefficient& c : result.coefficients) {
    if (c.status == CoefficientStatus::kOk || c.status == CoefficientStatus::kZero) {
      header.push_back(CsvField(c.name));
    }
  }
  std::string csv = CsvLineOf(header);
  for (const GlmPathPoint& point : result.path) {
    std::vector<std::string> fields = {CsvNumber(point.lambda), StrCat(point.nonzero),
                                       CsvNumber(point.deviance_ratio), CsvNumber(point.residual)};
    for (const double c : point.coefficients) fields.push_back(CsvNumber(c));
    csv += CsvLineOf(fields);
  }
  return csv;
}

StatusOr<std::vector<std::string>> WriteGlm(const GlmResult& result, const std::string& folder,
                                            const FileContext& context) {
  TENON_RETURN_IF_ERROR(MakeFolders(folder, context));
  std::vector<std::string> written;
  // Names that JSON cannot have are an error after the other files are there.
  const StatusOr<std::string> model = result.equation ? ModelJson(result) : std::string();
  // A file of a fit before would be taken for one of this.
  const auto remove_old = [&](const std::string& path) {
    return FileExists(path, context) ? RemoveFile(path, context) : OkStatus();
  };
  const std::pair<const char*, std::string> texts[] = {
      {kModelFile, model.ok() ? *model : ""},
      {"coefficients.csv", CoefficientsCsv(result)},
      {"terms.csv", TermsCsv(result)},
      {"iterations.csv", IterationsCsv(result)},
      {"metrics.json", MetricsJson(result)},
      {"roc.svg", RocSvg(result)},
      {"calibration.svg", CalibrationSvg(result)},
      {"coefficients.svg", CoefficientsSvg(result)},
      {"coefficients_path.csv", CoefficientsPathCsv(result)},
      {"path.svg", PathSvg(result)}};
  for (const auto& [name, text] : texts) {
    const std::string path = JoinPath(folder, name);
    if (text.empty()) {
      TENON_RETURN_IF_ERROR(remove_old(path));
      continue;
    }
    TENON_RETURN_IF_ERROR(WriteStringToFile(path, text, context));
    written.emplace_back(name);
  }
  const std::string path = JoinPath(folder, kCovarianceFile);
  if (result.covariance.empty()) {
    TENON_RETURN_IF_ERROR(remove_old(path));
  } else {
    TENON_RETURN_IF_ERROR(WriteCovariance(result, path, context));
    written.emplace_back(kCovarianceFile);
  }
  TENON_RETURN_IF_ERROR(model.status());
  const std::string saved_model = JoinPath(folder, kSavedModelFolder);
  if (FileExists(saved_model, context)) {
    TENON_RETURN_IF_ERROR(RemoveTree(saved_model, context));
  }
  if (!result.equation) return written;
  TENON_ASSIGN_OR_RETURN(const bool is_there, WriteGlmSavedModel(*result.equation, saved_model));
  if (is_there) written.push_back(StrCat(kSavedModelFolder, "/"));
  return written;
}

}  // namespace tenon
