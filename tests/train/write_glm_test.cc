// SPDX-License-Identifier: Apache-2.0
#include "train/glm/report/write_glm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "data/arrays/npy.h"
#include "data/csv/csv.h"
#include "tests/data/sample_files.h"
#include "tests/train/flights_fit.h"
#include "tests/train/r_fits.h"
#include "train/glm/report/glm_pictures.h"
#include "train/glm/text/json_text.h"

namespace tenon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

using Json = nlohmann::json;

/// The records of a CSV text, read by the reader of data/csv.
std::vector<std::vector<std::string>> RecordsOf(const std::string& csv, size_t columns) {
  CsvFormat format;
  format.wanted = columns;
  format.count_all = true;
  CsvLine line(format);
  std::vector<std::vector<std::string>> records;
  std::string record;
  for (const absl::string_view piece : absl::StrSplit(csv, '\n')) {
    record += std::string(piece);
    if (format.EndsWithinQuotes(record, false)) {
      record += '\n';
      continue;
    }
    if (!record.empty()) {
      std::vector<std::string_view> fields;
      EXPECT_EQ(line.Cut(record, &fields), CsvMistake::kNone) << record;
      EXPECT_EQ(line.num_columns(), static_cast<int64_t>(columns)) << record;
      records.emplace_back(fields.begin(), fields.end());
    }
    record.clear();
  }
  return records;
}

GlmResult FlightsWithHistograms() {
  GlmResult fit = FlightsFit();
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal(-1.4, 0.8);
  std::uniform_real_distribution<double> uniform;
  for (GlmMetrics& m : fit.metrics) {
    m.histogram.emplace();
    for (int i = 0; i < 20000; ++i) {
      const double logit = normal(random);
      m.histogram->Add(logit, uniform(random) < 1 / (1 + std::exp(-logit)));
    }
  }
  return fit;
}

TEST(WriteGlmTest, NumbersInCsvAreReadAsTheSame) {
  const GlmResult fit = FlightsFit();
  const auto records = RecordsOf(CoefficientsCsv(fit), 18);
  ASSERT_EQ(records.size(), fit.coefficients.size() + 1);
  EXPECT_THAT(records[0],
              ElementsAre("term", "level", "reference", "estimate", "std_error", "statistic",
                          "p_value", "conf_low", "conf_high", "standardised", "rows", "status",
                          "log10_p", "name", "sum_of", "ratio", "ratio_low", "ratio_high"));
  for (size_t i = 0; i < fit.coefficients.size(); ++i) {
    const GlmCoefficient& c = fit.coefficients[i];
    const std::vector<std::string>& record = records[i + 1];
    SCOPED_TRACE(c.name);
    EXPECT_EQ(record[0], c.term);
    EXPECT_EQ(record[1], c.level);
    EXPECT_EQ(record[2], c.term == "carrier" ? "9E" : c.level.empty() ? "" : record[2]);
    const double numbers[] = {c.estimate, c.standard_error, c.statistic,   c.p_value,
                              c.lower,    c.upper,          c.standardised};
    for (size_t k = 0; k < 7; ++k) {
      double value = 0;
      if (std::isnan(numbers[k])) {
        EXPECT_EQ(record[3 + k], "");
      } else {
        EXPECT_TRUE(absl::SimpleAtod(record[3 + k], &value)) << record[3 + k];
        EXPECT_EQ(value, numbers[k]);
      }
    }
    const double ratios[] = {c.estimate, c.lower, c.upper};
    for (size_t k = 0; k < 3; ++k) {
      double value = 0;
      if (std::isnan(ratios[k]) || c.is_intercept()) {
        EXPECT_EQ(record[15 + k], "");
      } else {
        EXPECT_TRUE(absl::SimpleAtod(record[15 + k], &value)) << record[15 + k];
        EXPECT_EQ(value, std::exp(ratios[k]));
      }
    }
    EXPECT_EQ(record[10], c.rows < 0 ? "" : StrCat(c.rows));
    EXPECT_EQ(record[11], c.status == CoefficientStatus::kReference ? "reference" : "ok");
  }
}

TEST(WriteGlmTest, NamesWithQuotesCommasAndNewlinesComeBack) {
  GlmResult fit;
  const std::vector<std::string> names = {"a,b", "say \"x\"", "two\nlines", "\"", "Zürich", " "};
  for (const std::string& name : names) {
    GlmCoefficient c = {.term = "f", .level = name, .name = "f" + name};
    c.status = CoefficientStatus::kAliased;
    c.sum_of = "2 x " + name;
    fit.coefficients.push_back(c);
    fit.terms.push_back({.label = name});
  }
  fit.coefficients[0].status = CoefficientStatus::kReference;
  const auto records = RecordsOf(CoefficientsCsv(fit), 18);
  ASSERT_EQ(records.size(), names.size() + 1);
  for (size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(records[i + 1][1], names[i]);
    EXPECT_EQ(records[i + 1][2], "a,b");
    EXPECT_EQ(records[i + 1][3], i == 0 ? "0" : "");
    EXPECT_EQ(records[i + 1][13], "f" + names[i]);
    EXPECT_EQ(records[i + 1][14], "2 x " + names[i]);
    EXPECT_EQ(RecordsOf(TermsCsv(fit), 5)[i + 1][0], names[i]);
  }
}

TEST(WriteGlmTest, DoublesAreShortest) {
  EXPECT_EQ(ShortestText(0.1), "0.1");
  EXPECT_EQ(ShortestText(-3), "-3");
  EXPECT_EQ(ShortestText(1e-300), "1e-300");
  EXPECT_EQ(ShortestText(1.0 / 3), "0.3333333333333333");
  EXPECT_EQ(ShortestText(-INFINITY), "-inf");
}

TEST(WriteGlmTest, MetricsAreJson) {
  GlmResult fit = FlightsFit();
  fit.formula = "y ~ `a \"b\"\\c`\n\x01\xFF";
  fit.missing_by_column = {{"temp", 3}};
  fit.rows_missing = 3;
  fit.ridge = 1;
  fit.sigma = INFINITY;
  const Json json = Json::parse(MetricsJson(fit));
  EXPECT_EQ(json["formula"], "y ~ `a \"b\"\\c`\n\x01\xEF\xBF\xBD");
  EXPECT_EQ(json["rows"]["used"], 261875);
  EXPECT_EQ(json["rows"]["missing_by_column"]["temp"], 3);
  EXPECT_EQ(json["fit"]["residual_deviance"], fit.residual_deviance);
  EXPECT_EQ(json["fit"]["residual_df"], 261730);
  EXPECT_FALSE(json["fit"].contains("r2"));
  EXPECT_FALSE(json["fit"].contains("sigma"));
  EXPECT_EQ(json["training"]["auc"], 0.7203);
  EXPECT_EQ(json["evaluation"]["rows"], 65470);
  EXPECT_FALSE(json["training"].contains("rmse"));
  EXPECT_EQ(json["penalty"]["ridge"], 1);
  EXPECT_EQ(json["converged"], true);
  EXPECT_EQ(json["warnings"].size(), 2u);
}

TEST(WriteGlmTest, AFolderHasAllThatThereIs) {
  TemporaryFolder folder;
  GlmResult fit = RFit("infert");
  fit.metrics = FlightsWithHistograms().metrics;
  fit.iterations = {{1, 300.25, 0.5, 0.25}, {2, 257.8, 1e-9, 0.5}};
  StatusOr<std::vector<std::string>> written = WriteGlm(fit, folder / "deep/er");
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_THAT(*written,
              ElementsAre("coefficients.csv", "terms.csv", "iterations.csv", "metrics.json",
                          "roc.svg", "calibration.svg", "coefficients.svg", "covariance.npz"));
  EXPECT_EQ(ContentOf(folder / "deep/er/coefficients.csv"), CoefficientsCsv(fit));
  EXPECT_EQ(ContentOf(folder / "deep/er/iterations.csv"),
            "pass,deviance,gradient_norm,seconds\n1,300.25,0.5,0.25\n2,257.8,1e-09,0.5\n");
  StatusOr<NpzReader> npz = NpzReader::Open(folder / "deep/er/covariance.npz");
  ASSERT_TRUE(npz.ok()) << npz.status();
  EXPECT_THAT(npz->names(), ElementsAre("covariance", "estimates", "names"));
  const Tensor covariance = *npz->Read("covariance");
  EXPECT_EQ(covariance.shape(), Shape({7, 7}));
  EXPECT_EQ(covariance.flat<double>()[7 * 2 + 5], fit.covariance(2, 5));
  EXPECT_EQ(npz->Read("estimates")->flat<double>()[1], fit.coefficients[1].estimate);
  EXPECT_EQ(npz->Read("names")->flat<TString>()[3], "education6-11yrs");

  // The files go that a later fit does not have.
  fit.covariance = {};
  fit.metrics.clear();
  written = WriteGlm(fit, folder / "deep/er");
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_EQ(written->size(), 5u);
  for (const char* gone : {"roc.svg", "calibration.svg", "covariance.npz"}) {
    EXPECT_FALSE(FileExists(folder / (StrCat("deep/er/", gone)))) << gone;
  }
}

TEST(WriteGlmTest, ErrorsNameTheFile) {
  TemporaryFolder folder;
  ASSERT_TRUE(MakeFolders(folder / "terms.csv").ok());
  const StatusOr<std::vector<std::string>> written = WriteGlm(RFit("infert"), folder.path());
  ASSERT_FALSE(written.ok());
  EXPECT_THAT(std::string(Message(written.status())), HasSubstr("terms.csv"));
  folder.Write("file", "");
  const StatusOr<std::vector<std::string>> below = WriteGlm(RFit("infert"), folder / "file/x");
  ASSERT_FALSE(below.ok());
  EXPECT_THAT(std::string(Message(below.status())), HasSubstr("file"));
}

int64_t CountOf(const std::string& text, const std::string& part) {
  int64_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(GlmPicturesTest, CurvesOfEachSetOfDataHaveItsAuc) {
  const GlmResult fit = FlightsWithHistograms();
  const std::string roc = RocSvg(fit);
  EXPECT_THAT(roc, HasSubstr("training: AUC 0.7203"));
  EXPECT_THAT(roc, HasSubstr("evaluation: AUC 0.7222"));
  EXPECT_EQ(CountOf(roc, "<polyline"), 2);
  EXPECT_THAT(roc, Not(HasSubstr("nan")));
  EXPECT_LT(roc.size(), 40'000u);
  const std::string calibration = CalibrationSvg(fit);
  EXPECT_THAT(calibration, HasSubstr("training: logit 0.000 + 1.000 x"));
  EXPECT_EQ(CountOf(calibration, "<circle"), 40);
  EXPECT_THAT(calibration, Not(HasSubstr("nan")));
}

TEST(GlmPicturesTest, AtMostFortyEstimatesAreDrawnWithTheirIntervals) {
  GlmResult fit = FlightsFit();
  fit.coefficients[2].level = "<&\x01>";
  const std::string svg = CoefficientsSvg(fit);
  EXPECT_EQ(CountOf(svg, "<circle"), 40);
  EXPECT_THAT(svg, HasSubstr("intervals of 95 %"));
  EXPECT_THAT(svg, HasSubstr(">carrier DL<"));
  EXPECT_THAT(svg, HasSubstr(">month &lt;&amp;"));
  EXPECT_THAT(svg, Not(HasSubstr("(Intercept)")));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  for (GlmCoefficient& c : fit.coefficients) c.statistic = c.lower = c.upper = kNotGiven;
  const std::string effects = CoefficientsSvg(fit);
  EXPECT_EQ(CountOf(effects, "<circle"), 40);
  EXPECT_THAT(effects, HasSubstr("Effects of one standard deviation"));
}

TEST(GlmPicturesTest, AResultWithoutNumbersHasNoPictures) {
  GlmResult fit;
  EXPECT_EQ(RocSvg(fit), "");
  EXPECT_EQ(CalibrationSvg(fit), "");
  EXPECT_EQ(CoefficientsSvg(fit), "");
  fit.metrics.emplace_back();
  fit.metrics[0].histogram.emplace();
  EXPECT_EQ(RocSvg(fit), "");
  EXPECT_EQ(CalibrationSvg(fit), "");
}

}  // namespace
}  // namespace tenon
