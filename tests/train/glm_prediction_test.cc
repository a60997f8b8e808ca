// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "core/base/strings.h"
#include "data/files/byte_stream.h"
#include "tests/data/sample_files.h"
#include "train/glm/fit_glm.h"
#include "train/glm/inference/inference.h"
#include "train/glm/predict/predict_table.h"

namespace tenon {
namespace {

using ::testing::HasSubstr;
using Lines = std::vector<std::string>;

/// The predictions of a model by R, as tests/data/glm/make_predictions.R writes them.
struct PredictionsOfR {
  std::string formula, family, link, weights;
  std::map<std::string, double> metrics;
  std::vector<std::array<double, 4>> rows;  // link, its error, response, its error
};

double NumberOfR(const std::string& text) { return text == "NA" ? NAN : std::stod(text); }

std::vector<PredictionsOfR> ReadPredictionsOfR() {
  std::ifstream file(SamplePath("glm/predictions.tsv"));
  std::vector<PredictionsOfR> models;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#")) continue;
    const std::vector<std::string> parts = absl::StrSplit(line, '\t');
    if (parts[0] == "model") models.push_back({parts[1], parts[2], parts[3], parts[4], {}, {}});
    if (parts[0] == "metric") {
      models.back().metrics[StrCat(parts[1], " ", parts[2])] = NumberOfR(parts[3]);
    }
    if (parts[0] == "row") {
      models.back().rows.push_back(
          {NumberOfR(parts[1]), NumberOfR(parts[2]), NumberOfR(parts[3]), NumberOfR(parts[4])});
    }
  }
  return models;
}

GlmOptions OptionsOfR(const PredictionsOfR& model) {
  return {.family = ParseGlmFamily(model.family).value(),
          .link = ParseGlmLink(model.link).value(),
          .weights = model.weights};
}

StatusOr<std::string> Predicted(const GlmEquation& equation, const Lines& files,
                                const PredictTableOptions& options,
                                std::string* summary = nullptr) {
  std::string out;
  TENON_ASSIGN_OR_RETURN(const PredictedTable table,
                         PredictTable(equation, files, options, [&](std::string_view text) {
                           out += text;
                           return OkStatus();
                         }));
  if (summary != nullptr) *summary = table.Text();
  return out;
}

Lines LinesOf(const std::string& text) {
  Lines lines = absl::StrSplit(text, '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

double FieldNumber(const std::string& text) { return text.empty() ? NAN : std::stod(text); }

void ExpectSameNumber(double found, double wanted, double tolerance) {
  EXPECT_EQ(std::isnan(found), std::isnan(wanted)) << found << " " << wanted;
  if (!std::isnan(wanted)) EXPECT_NEAR(found, wanted, tolerance * (1 + std::abs(wanted)));
}

TEST(GlmPredictionTest, PredictionsAndErrorsAreRsInOrderOfTheRows) {
  const Lines records = LinesOf(ContentOf(SamplePath("glm/predictions.csv")));
  const std::vector<PredictionsOfR> models = ReadPredictionsOfR();
  ASSERT_EQ(models.size(), 8);
  for (const PredictionsOfR& model : models) {
    SCOPED_TRACE(StrCat(model.formula, " ", model.family, " ", model.link));
    const auto fit = FitGlm(model.formula, {SamplePath("glm/models.csv")}, OptionsOfR(model));
    ASSERT_TRUE(fit.ok()) << fit.status();
    // Scoring ends farther from the maximum where the link is not the canonical one.
    const bool is_canonical = fit->equation->link == DefaultLink(fit->equation->family);
    const double tolerance = is_canonical ? 1e-9 : 1e-8;
    for (const bool is_link : {true, false}) {
      // Units of some hundred bytes, each of which is read by itself.
      const PredictTableOptions options = {
          .type = is_link ? PredictTableOptions::Type::kLink : PredictTableOptions::Type::kResponse,
          .covariance = fit->covariance,
          .keep = {"id", "note"},
          .unit_bytes = is_link ? 1 << 20 : 700};
      const auto found = Predicted(*fit->equation, {SamplePath("glm/predictions.csv")}, options);
      ASSERT_TRUE(found.ok()) << found.status();
      const Lines lines = LinesOf(*found);
      ASSERT_EQ(lines.size(), model.rows.size() + 1);
      EXPECT_EQ(lines[0], "id,note,prediction,se");
      for (size_t i = 0; i < model.rows.size(); ++i) {
        SCOPED_TRACE(lines[i + 1]);
        const std::string note = records[i + 1].substr(0, records[i + 1].find("\",") + 1);
        const std::string before = StrCat(1001 + i, ",", note, ",");
        ASSERT_TRUE(lines[i + 1].starts_with(before));
        const Lines fields = absl::StrSplit(lines[i + 1].substr(before.size()), ',');
        ASSERT_EQ(fields.size(), 2);
        ExpectSameNumber(FieldNumber(fields[0]), model.rows[i][is_link ? 0 : 2], tolerance);
        ExpectSameNumber(FieldNumber(fields[1]), model.rows[i][is_link ? 1 : 3], tolerance);
      }
    }
  }
}

TEST(GlmPredictionTest, MetricsAreThoseThatRComputes) {
  for (const PredictionsOfR& model : ReadPredictionsOfR()) {
    SCOPED_TRACE(StrCat(model.formula, " ", model.family, " ", model.link));
    GlmOptions options = OptionsOfR(model);
    options.evaluation = {SamplePath("glm/predictions.csv")};
    const auto fit = FitGlm(model.formula, {SamplePath("glm/models.csv")}, options);
    ASSERT_TRUE(fit.ok()) << fit.status();
    ASSERT_EQ(fit->metrics.size(), 2);
    for (const GlmMetrics& m : fit->metrics) {
      SCOPED_TRACE(m.data);
      const std::map<std::string, std::pair<double, double>> found = {
          {"rows", {static_cast<double>(m.rows), 0}},
          {"log_loss", {m.log_loss, 1e-9}},
          {"brier", {m.brier, 1e-9}},
          {"rmse", {m.rmse, 1e-9}},
          {"mae", {m.mae, 1e-9}},
          {"accuracy", {m.accuracy, 1e-12}},
          {"precision", {m.precision, 1e-12}},
          {"recall", {m.recall, 1e-12}},
          {"auc", {m.auc, 5e-4}},
          {"calibration_intercept", {m.calibration_intercept, 2e-3}},
          {"calibration_slope", {m.calibration_slope, 2e-3}}};
      for (const auto& [name, number] : found) {
        const auto wanted = model.metrics.find(StrCat(m.data, " ", name));
        EXPECT_EQ(wanted == model.metrics.end(), std::isnan(number.first)) << name;
        if (wanted != model.metrics.end()) {
          EXPECT_NEAR(number.first, wanted->second, number.second) << name;
        }
      }
    }
  }
}

TEST(GlmPredictionTest, RowsWithoutALevelAreMissingNotLeftOut) {
  const auto fit =
      FitGlm("y ~ x + f", {SamplePath("glm/models.csv")}, {.family = GlmFamily::kBinomial});
  ASSERT_TRUE(fit.ok()) << fit.status();
  EXPECT_EQ(fit->rows_missing, 24);
  EXPECT_EQ(fit->rows_separated, 0);
}

/// A model of which dest has the separated level "z".
GlmResult SmallFit(const TemporaryFolder& folder) {
  std::string text = "late,x,dest,code\n";
  for (int i = 0; i < 60; ++i) {
    StrAppend(&text, (i * 7) % 3 == 0 ? "yes," : "no,", i % 11, ",", i % 2 == 0 ? "a" : "b", ",",
              i % 5, "\n");
  }
  StrAppend(&text, "no,3,z,1\n");
  const auto fit = FitGlm("late ~ x + dest + C(code)", {folder.Write("small.csv", text)},
                          {.family = GlmFamily::kBinomial});
  EXPECT_TRUE(fit.ok()) << fit.status();
  return *fit;
}

TEST(GlmPredictionTest, RowsWithoutPredictionAreEmptyCountedAndNamed) {
  const TemporaryFolder folder;
  const GlmResult fit = SmallFit(folder);
  const std::string a = folder.Write("a.csv", "code,dest,extra,x\n1,a,q,1\n\n1,z,q,2\n9,a,q,3\n");
  const std::string b =
      folder.Write("b.csv", "code,dest,extra,x\n8,\"a\",\"x\ny\",3\n2,b,q,NA\n,b,q,\n9,c,q,1\n");
  std::string summary;
  auto found = Predicted(*fit.equation, {a}, {.keep = {"x"}}, &summary);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(*found, ::testing::MatchesRegex("x,prediction\n1,0\\.[0-9]+\n2,\n3,\n"));
  EXPECT_EQ(summary,
            "3 rows; 2 without prediction: 1 unseen level of code (9, line 5); 1 row with 1 "
            "separated level of dest, which the fit left out (z, line 4)");
  found = Predicted(*fit.equation, {a, b}, {.unit_bytes = 20}, &summary);
  ASSERT_TRUE(found.ok()) << found.status();
  const std::string wanted_end = "\"\"\n\"\"\n\"\"\n\"\"\n\"\"\n\"\"\n";
  EXPECT_TRUE(found->ends_with(wanted_end)) << *found;
  EXPECT_EQ(LinesOf(*found).size(), 8);
  EXPECT_EQ(summary,
            StrCat("7 rows; 6 without prediction: 2 unseen levels of code (first: 9, ", a,
                   ":5); 1 unseen level of dest (c, ", b, ":6); 1 row with 1 separated level of ",
                   "dest, which the fit left out (z, ", a, ":4); code is missing in 1 row; x is ",
                   "missing in 2 rows"));
}

TEST(GlmPredictionTest, ClassesAreTheTextsOfTheResponse) {
  const TemporaryFolder folder;
  const GlmResult fit = SmallFit(folder);
  const std::string path = folder.Write("a.csv", "x,dest,code\n1,a,1\n2,b,3\n");
  const auto type = PredictTableOptions::Type::kClass;
  EXPECT_EQ(Predicted(*fit.equation, {path}, {.type = type, .threshold = 0.01}).value(),
            "prediction\nyes\nyes\n");
  EXPECT_EQ(Predicted(*fit.equation, {path}, {.type = type, .threshold = 0.99}).value(),
            "prediction\nno\nno\n");
  EXPECT_THAT(Predicted(*fit.equation, {path}, {.type = type, .covariance = fit.covariance})
                  .status()
                  .message(),
              HasSubstr("a class has no standard error"));
}

TEST(GlmPredictionTest, ErrorsNameMissingColumnsAndThePlaceOfATextAmongNumbers) {
  const TemporaryFolder folder;
  const GlmResult fit = SmallFit(folder);
  auto found = Predicted(*fit.equation, {folder.Write("a.csv", "X,dest\n1,a\n")}, {});
  EXPECT_THAT(found.status().message(), HasSubstr("has no columns 'x', 'code'"));
  found = Predicted(*fit.equation, {folder.Write("b.csv", "x,Dest,code\n1,a,1\n")}, {});
  EXPECT_THAT(found.status().message(), HasSubstr("there is no column 'dest'"));
  std::string text = "x,dest,code\n";
  for (int i = 0; i < 50; ++i) text += "1,a,1\n";
  const std::string bad = folder.Write("c.csv", StrCat(text, "warm,a,1\n2,b,1\n"));
  found = Predicted(*fit.equation, {bad}, {.unit_bytes = 30});
  EXPECT_THAT(found.status().message(),
              HasSubstr("c.csv:52: column 1 (x): 'warm' is not a number, which the model wants"));
  found = Predicted(*fit.equation, {folder.Write("d.csv", "x,dest,code\n1,a\n1,a,1\n")}, {});
  EXPECT_THAT(found.status().message(), HasSubstr("d.csv:2: found 2 fields, wanted 3"));
  std::string summary;
  found = Predicted(*fit.equation, {folder / "d.csv"}, {.max_rejects = 1}, &summary);
  EXPECT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(summary, "1 row; 1 bad record was left out");
}

TEST(GlmPredictionTest, QuotesAcrossUnitsAndCompressionChangeNothing) {
  const TemporaryFolder folder;
  const GlmResult fit = SmallFit(folder);
  std::string text = "x,dest,note,code\n";
  for (int i = 0; i < 300; ++i) {
    StrAppend(&text, i % 11, i % 3 == 0 ? ",\"a\",\"one\n\n\"\"two\"\",\n3,a,b,1\n\"," : ",b,,",
              i % 5, "\n");
  }
  const std::string path = folder.Write("a.csv", text);
  const std::string gz = folder / "a.csv.gz";
  const auto file = MakeCompressor(OpenOutput(gz).value(), Compression::kGzip);
  ASSERT_TRUE(file->Append(text).ok() && file->Close().ok());
  const auto whole = Predicted(*fit.equation, {path}, {.keep = {"note", "x"}});
  ASSERT_TRUE(whole.ok()) << whole.status();
  for (const int64_t bytes : {17, 64, 1000}) {
    EXPECT_EQ(
        Predicted(*fit.equation, {path}, {.keep = {"note", "x"}, .unit_bytes = bytes}).value(),
        *whole);
  }
  EXPECT_EQ(Predicted(*fit.equation, {gz}, {.keep = {"note", "x"}}).value(), *whole);
}

}  // namespace
}  // namespace tenon
