// SPDX-License-Identifier: Apache-2.0
#include "train/glm/report/model_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/strings.h"
#include "tests/data/sample_files.h"
#include "train/glm/fit_glm.h"
#include "train/glm/predict/predict_table.h"
#include "train/glm/report/covariance_file.h"
#include "train/glm/report/write_glm.h"
#include "train/saver/saved_model.h"

namespace tenon {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

StatusOr<GlmResult> FitOfR(const std::string& formula, GlmFamily family,
                           const std::string& weights = "") {
  return FitGlm(formula, {SamplePath("glm/models.csv")}, {.family = family, .weights = weights});
}

std::string PredictionsOf(const GlmEquation& equation, const GlmCovariance& covariance) {
  std::string out;
  const auto table = PredictTable(equation, {SamplePath("glm/predictions.csv")},
                                  {.covariance = covariance}, [&](std::string_view text) {
                                    out += text;
                                    return OkStatus();
                                  });
  EXPECT_TRUE(table.ok()) << table.status();
  return out;
}

TEST(ModelFileTest, AModelThatWasWrittenAndReadPredictsTheSameBits) {
  const TemporaryFolder folder;
  struct Model {
    std::string formula;
    GlmFamily family;
    std::string weights = "";
  };
  const std::vector<Model> models = {
      {"y ~ x * f + z + C(g, ref=frequent)", GlmFamily::kBinomial},
      {"late ~ x + f + hash(g, 3)", GlmFamily::kBinomial},
      {"level ~ 0 + f:x + cut(z, 0, 0.5, 1, 20) + log1p(z)", GlmFamily::kGaussian},
      {"level ~ z + km + I(x^2)", GlmFamily::kGaussian, "w"},
      {"cbind(hits, misses) ~ x + C(f, ref=\"c\")", GlmFamily::kBinomial},
      {"late == \"no\" ~ . - y - late - count - hits - misses - level", GlmFamily::kBinomial, "w"},
      {"count ~ x + offset(log(trials))", GlmFamily::kPoisson}};
  for (const Model& model : models) {
    SCOPED_TRACE(model.formula);
    const auto fit = FitOfR(model.formula, model.family, model.weights);
    ASSERT_TRUE(fit.ok()) << fit.status();
    const std::string path = folder / "model";
    const auto written = WriteGlm(*fit, path);
    ASSERT_TRUE(written.ok()) << written.status();
    EXPECT_THAT(*written, Contains("model.json"));
    const auto equation = LoadGlm(path);
    ASSERT_TRUE(equation.ok()) << equation.status();
    const auto covariance = LoadCovariance(*equation, path);
    ASSERT_TRUE(covariance.ok()) << covariance.status();
    EXPECT_EQ(PredictionsOf(*equation, *covariance),
              PredictionsOf(*fit->equation, fit->covariance));
    // A model that was read is written as it was.
    GlmResult again = *fit;
    again.equation = *equation;
    again.equation->formula = fit->equation->formula;
    EXPECT_EQ(ModelJson(again).value(), ContentOf(path + "/model.json"));
  }
}

TEST(ModelFileTest, ABadFileIsAnErrorThatSaysWhatIsWrong) {
  const auto fit = FitOfR("y ~ x + f", GlmFamily::kBinomial);
  ASSERT_TRUE(fit.ok()) << fit.status();
  const std::string json = ModelJson(*fit).value();
  ASSERT_TRUE(ParseModel(json).ok()) << ParseModel(json).status();
  const auto message_with = [&](const std::string& what, const std::string& other) {
    std::string changed = json;
    const size_t at = changed.find(what);
    EXPECT_NE(at, std::string::npos) << what;
    changed.replace(at, what.size(), other);
    return std::string(Message(ParseModel(changed).status()));
  };
  EXPECT_THAT(std::string(Message(ParseModel("{").status())), HasSubstr("no JSON of a model"));
  EXPECT_THAT(std::string(Message(ParseModel("{}").status())), HasSubstr("its format is ''"));
  EXPECT_THAT(message_with("\"version\": 1", "\"version\": 2"),
              HasSubstr("it is of version 2, this program reads version 1"));
  EXPECT_THAT(message_with("\"y ~ x + f\"", "\"y ~ x + z\""),
              HasSubstr("variable 2 is 'f', its formula has 'z' there"));
  EXPECT_THAT(message_with("\"binomial\"", "\"gamma\""), HasSubstr("found 'gamma'"));
  EXPECT_THAT(message_with("\"logit\"", "\"log\""), HasSubstr("found log"));
  EXPECT_THAT(message_with("\"reference\": \"a\"", "\"reference\": \"q\""),
              HasSubstr("has no level 'q' for its reference"));
  EXPECT_THAT(message_with("[\"a\", \"b\", \"c\"]", "[\"a\", \"b\", \"b\"]"),
              HasSubstr("has the level 'b' twice"));
  EXPECT_THAT(message_with("[\"a\", \"b\", \"c\"]", "[\"a\", \"b\"]"),
              HasSubstr("found 4 coefficients, the formula has 3"));
  EXPECT_THAT(message_with("\"name\": \"fc\"", "\"name\": \"fd\""),
              HasSubstr("coefficient 4 is 'fd', the formula has 'fc' there"));
  EXPECT_THAT(message_with("\"estimate\"", "\"guess\""), HasSubstr("has no estimate"));
  EXPECT_THAT(message_with("\"kind\": \"number\"", "\"kind\": \"cut\""),
              HasSubstr("cannot be of kind 'cut'"));
  EXPECT_THAT(message_with("\"delimiter\": \",\"", "\"delimiter\": \"\""),
              HasSubstr("its delimiter is ''"));
  const TemporaryFolder folder;
  EXPECT_THAT(std::string(Message(LoadGlm(folder.path()).status())), HasSubstr("model.json"));
  folder.Write("model.json", "[");
  EXPECT_THAT(std::string(Message(LoadGlm(folder.path()).status())),
              HasSubstr("model.json': it is no JSON"));
}

TEST(ModelFileTest, CovariancesOfOtherModelsAreRefused) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteGlm(FitOfR("y ~ x + z", GlmFamily::kBinomial).value(), folder.path()).ok());
  const auto fit = FitOfR("y ~ x + big", GlmFamily::kBinomial);
  EXPECT_THAT(std::string(Message(LoadCovariance(*fit->equation, folder.path()).status())),
              HasSubstr("another model's covariance"));
  EXPECT_EQ(LoadCovariance(*fit->equation, folder / "none").status().code(), StatusCode::kNotFound);
}

TEST(ModelFileTest, PenalisedModelsPredictWithoutStandardErrors) {
  const TemporaryFolder folder;
  const auto fit = FitGlm("y ~ x + z + f", {SamplePath("glm/models.csv")},
                          {.family = GlmFamily::kBinomial, .penalty = {.lambda = 0.05}});
  ASSERT_TRUE(fit.ok()) << fit.status();
  EXPECT_GT(fit->metrics.at(0).auc, 0.5);
  ASSERT_TRUE(WriteGlm(*fit, folder.path()).ok());
  const auto equation = LoadGlm(folder.path());
  ASSERT_TRUE(equation.ok()) << equation.status();
  EXPECT_THAT(equation->coefficients, Contains(0.0));
  EXPECT_EQ(PredictionsOf(*equation, {}), PredictionsOf(*fit->equation, {}));
  EXPECT_EQ(LoadCovariance(*equation, folder.path()).status().code(), StatusCode::kNotFound);
}

TEST(ModelFileTest, LevelsThatAreNoUtf8AreAnErrorOnceTheOtherFilesAreThere) {
  const TemporaryFolder folder;
  std::string text = "y,f\n";
  for (int i = 0; i < 20; ++i) StrAppend(&text, i % 7, i % 2 == 0 ? ",a\n" : ",\xE9\n");
  const auto fit = FitGlm("y ~ f", {folder.Write("t.csv", text)}, {});
  ASSERT_TRUE(fit.ok()) << fit.status();
  const auto written = WriteGlm(*fit, folder / "m");
  EXPECT_THAT(std::string(Message(written.status())), HasSubstr("which is no UTF-8"));
  EXPECT_TRUE(FileExists(folder / "m/coefficients.csv"));
  EXPECT_FALSE(FileExists(folder / "m/model.json"));
}

TEST(ModelFileTest, TheSavedModelGivesThePredictionsOfRawColumns) {
  const TemporaryFolder folder;
  const auto fit =
      FitOfR("late ~ x * f + cut(z, 0, 0.5, 1, 20) + log(big) + hash(g, 3)", GlmFamily::kBinomial);
  ASSERT_TRUE(fit.ok()) << fit.status();
  const auto written = WriteGlm(*fit, folder.path());
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_THAT(*written, Contains("saved_model/"));
  const auto model = LoadSavedModel(folder / "saved_model");
  ASSERT_TRUE(model.ok()) << model.status();
  const std::string table =
      folder.Write("t.csv",
                   "x,f,z,big,g\n0.5,a,0.2,1010,9\n-1,b,0.5,1020,1\n2,d,1.5,1000,2\n0,c,30,1000,2\n"
                   "1,c,0.50001,1015.5,10\n0,c,1,-1,2\n");
  std::string predictions;
  const auto predicted = PredictTable(*fit->equation, {table}, {}, [&](std::string_view more) {
    predictions += more;
    return OkStatus();
  });
  ASSERT_TRUE(predicted.ok()) << predicted.status();
  const auto outputs =
      model->Run({{"x", Tensor::Vector<double>({0.5, -1, 2, 0, 1, 0})},
                  {"f", Tensor::Vector<TString>({"a", "b", "d", "c", "c", "c"})},
                  {"z", Tensor::Vector<double>({0.2, 0.5, 1.5, 30, 0.50001, 1})},
                  {"big", Tensor::Vector<double>({1010, 1020, 1000, 1000, 1015.5, -1})},
                  {"g", Tensor::Vector<TString>({"9", "1", "2", "2", "10", "2"})}});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  const Tensor& found = outputs->at("predictions");
  std::string texts = "prediction\n";
  for (int64_t i = 0; i < 6; ++i) {
    const double value = found.data<double>()[i];
    StrAppend(&texts, std::isnan(value) ? "\"\"" : "number", "\n");
    if (std::isnan(value)) continue;
    const size_t line = i == 0 ? 1 : i == 1 ? 2 : 5;
    size_t at = 0;
    for (size_t l = 0; l < line; ++l) at = predictions.find('\n', at) + 1;
    EXPECT_NEAR(value, std::stod(predictions.substr(at)), 1e-12);
  }
  EXPECT_EQ(texts, "prediction\nnumber\nnumber\n\"\"\n\"\"\nnumber\n\"\"\n") << predictions;
}

TEST(ModelFileTest, AModelWithoutColumnsOrWithTwoUsesOfOneHasNoSavedModel) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteGlm(FitOfR("y ~ x", GlmFamily::kBinomial).value(), folder.path()).ok());
  EXPECT_TRUE(FileExists(folder / "saved_model"));
  for (const char* formula : {"y ~ 1", "y ~ trials + C(trials)"}) {
    const auto written = WriteGlm(FitOfR(formula, GlmFamily::kBinomial).value(), folder.path());
    ASSERT_TRUE(written.ok()) << written.status();
    EXPECT_THAT(*written, Not(Contains("saved_model/")));
    EXPECT_FALSE(FileExists(folder / "saved_model")) << "of the fit before";
  }
}

}  // namespace
}  // namespace tenon
