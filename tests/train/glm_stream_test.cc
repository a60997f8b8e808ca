// SPDX-License-Identifier: Apache-2.0
#include "ops/glm/glm_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "core/base/strings.h"
#include "ops/glm/glm_sums.h"
#include "tests/data/sample_files.h"
#include "tests/data/whole_schema.h"
#include "tests/train/stream_rows.h"

namespace tenon {
namespace {

using ::testing::UnorderedElementsAreArray;

GlmNumber NumberOfColumn(int64_t column) {
  GlmNumber number;
  number.expression.steps = {{NumericExpression::Op::kColumn, 0}};
  number.expression.columns = {"x"};
  number.columns = {column};
  return number;
}

/// A table in memory as far as `memory` goes; 0: all of it.
std::shared_ptr<TableShard> ShardOf(const std::string& path, int64_t unit_bytes, int64_t memory) {
  const auto files = FindTableFiles({path}).value();
  auto shard =
      std::make_shared<TableShard>(files, WholeSchema(files), CutIntoUnits(files, unit_bytes));
  if (memory > 0) shard->LimitMemory(memory);
  std::vector<TableShard::ReadUnit> units;
  for (int64_t u = 0; u < shard->num_units(); ++u) units.push_back({u, std::nullopt});
  EXPECT_TRUE(shard->Read(units).ok());
  for (const int64_t column : {3, 4}) {
    std::vector<std::string> texts;
    const ColumnLevels levels = shard->LevelsOf(column);
    for (int32_t i = 0; i < levels.levels.size(); ++i) {
      texts.emplace_back(levels.levels.text(i));
    }
    std::sort(texts.begin(), texts.end());
    shard->Recode(column, texts);
  }
  return shard;
}

/// y by id alone.
GlmDesign DesignOfIds() {
  GlmDesign design;
  design.response.number = NumberOfColumn(0);
  design.numbers = {NumberOfColumn(1)};
  design.groups = {{}, {0, {}}};
  return design;
}

/// y by x, f, g, and x for each level of f.
GlmDesign WholeDesign(GlmFamily family) {
  GlmDesign design = DesignOfIds();
  design.family = family;
  design.link = DefaultLink(family);
  design.numbers = {NumberOfColumn(2)};
  design.factors.resize(2);
  design.factors[0].column = 3;
  design.factors[0].num_levels = 3;
  design.factors[1].column = 4;
  design.factors[1].num_levels = 50;
  design.groups = {{}, {0, {}}, {-1, {0}}, {-1, {1}}, {0, {0}}};
  return design;
}

CountedVector<int32_t> AllColumns(const GlmDesign& design) {
  CountedVector<int32_t> all(design.num_columns());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

/// The ids of each batch.
std::vector<std::vector<double>> BatchesOf(GlmStream* stream) {
  std::vector<std::vector<double>> batches;
  for (int64_t lane = 0; lane < stream->num_lanes(); ++lane) {
    for (bool more = true; more;) {
      const Status status = stream->Next(lane, {}, [&](const GlmBatch& batch) {
        more = batch.num_read > 0;
        if (more) batches.emplace_back(batch.numbers[0].begin(), batch.numbers[0].end());
        return OkStatus();
      });
      EXPECT_TRUE(status.ok()) << status;
      if (!status.ok()) break;
    }
  }
  return batches;
}

TEST(GlmStreamTest, EveryRowIsInOneBatchOfAnEpoch) {
  RandomSequence random(5);
  const TemporaryFolder folder;
  for (const int64_t count : {1, 7, 63, 511, 513, 4999}) {
    const std::string path = folder.Write("t.csv", StreamRowsOf(count, &random));
    std::vector<double> ids(count);
    std::iota(ids.begin(), ids.end(), 0);
    // All rows in memory; some of them; none.
    for (const int64_t memory : {0, 12000, 1}) {
      const auto shard = ShardOf(path, 2000, memory);
      const GlmDesign design = DesignOfIds();
      for (const int64_t lanes : {1, 2, 3}) {
        for (const int64_t rows : {1, 5, 64, 512}) {
          SCOPED_TRACE(StrCat(count, " rows, memory ", memory, ", ", lanes, " lanes, ", rows));
          GlmStream stream(shard, design, GlmCoefficientParts({0, 1}, 2),
                           {.seed = 3, .rows = rows, .lanes = lanes});
          std::vector<double> seen;
          int64_t short_ones = 0;
          for (const std::vector<double>& batch : BatchesOf(&stream)) {
            seen.insert(seen.end(), batch.begin(), batch.end());
            EXPECT_LT(batch.size(), rows + 8);
            short_ones += static_cast<int64_t>(batch.size()) < rows ? 1 : 0;
          }
          EXPECT_LE(short_ones, lanes);
          std::sort(seen.begin(), seen.end());
          EXPECT_EQ(seen, ids);
        }
      }
    }
  }
}

TEST(GlmStreamTest, TheSeedChoosesTheOrder) {
  RandomSequence random(5);
  const TemporaryFolder folder;
  const std::string path = folder.Write("t.csv", StreamRowsOf(3000, &random));
  for (const int64_t memory : {0, 1}) {
    const auto shard = ShardOf(path, 4000, memory);
    const auto batches = [&](int64_t seed) {
      GlmStream stream(shard, DesignOfIds(), GlmCoefficientParts({0, 1}, 2),
                       {.seed = seed, .rows = 100});
      return BatchesOf(&stream);
    };
    EXPECT_EQ(batches(1), batches(1));
    EXPECT_NE(batches(1), batches(2));
    // A batch has rows from everywhere, also of a file in order, as far as units are open at once.
    const std::vector<double> first = batches(1)[0];
    const auto [least, most] = std::minmax_element(first.begin(), first.end());
    EXPECT_GT(*most - *least, memory == 0 ? 2500 : 500);
  }
  const auto shard = ShardOf(path, 4000, 0);
  GlmStream in_order(shard, DesignOfIds(), GlmCoefficientParts({0, 1}, 2),
                     {.seed = -1, .rows = 100});
  double next = 0;
  for (const std::vector<double>& batch : BatchesOf(&in_order)) {
    for (const double id : batch) EXPECT_EQ(id, next++);
  }
}

TEST(GlmStreamTest, TheGradientOfABatchIsThatOfThePassOverItsRows) {
  RandomSequence random(7);
  const TemporaryFolder folder;
  const auto shard = ShardOf(folder.Write("t.csv", StreamRowsOf(2345, &random)), 5000, 0);
  for (const GlmFamily family : {GlmFamily::kGaussian, GlmFamily::kBinomial, GlmFamily::kPoisson}) {
    const GlmDesign design = WholeDesign(family);
    ASSERT_TRUE(design.Check(5).ok());
    std::vector<double> coefficients(design.num_columns());
    for (double& c : coefficients) c = static_cast<double>(random.Below(1000)) / 1000 - 0.5;
    const GlmSumsLayout layout(design, GlmPass::kGradient);
    const auto sums = AddGlmSums(layout, *shard, coefficients).value();
    for (const int64_t num_parts : {2, 4}) {
      const GlmCoefficientParts parts(AllColumns(design), num_parts);
      GlmStream stream(shard, design, parts, {.rows = 1 << 20});
      const Status status = stream.Next(0, {}, [&](const GlmBatch& batch) {
        EXPECT_EQ(batch.num_read, 2345);
        EXPECT_EQ(batch.count, 2345);
        // The columns in the order of parts, each once.
        std::vector<double> weights;
        std::vector<int64_t> columns;
        for (int64_t c = 0; c < design.num_columns(); ++c) {
          const auto& own = batch.columns[parts.PartOf(c)];
          EXPECT_EQ(std::count(own.begin(), own.end(), parts.PlaceOf(c)), 1) << c;
        }
        for (int64_t p = 0; p < num_parts; ++p) {
          for (const int64_t place : batch.columns[p]) {
            for (int64_t c = 0; c < design.num_columns(); ++c) {
              if (parts.PartOf(c) == p && parts.PlaceOf(c) == place) columns.push_back(c);
            }
          }
        }
        EXPECT_EQ(columns.size(), coefficients.size());
        for (const int64_t c : columns) weights.push_back(coefficients[c]);
        weights.push_back(0);
        std::vector<int32_t> places;
        std::vector<double> numbers, gradient(weights.size());
        for (const auto& own : batch.places) places.insert(places.end(), own.begin(), own.end());
        for (const auto& own : batch.numbers) {
          numbers.insert(numbers.end(), own.begin(), own.end());
        }
        const double deviance = AddBatchGradient(
            {family, design.link, static_cast<int64_t>(columns.size()),
             static_cast<int64_t>(batch.places.size()), static_cast<int64_t>(batch.numbers.size()),
             batch.count, places.data(), numbers.data(), batch.response.data(), batch.weight.data(),
             batch.offset.data()},
            weights.data(), gradient.data());
        EXPECT_NEAR(deviance, TotalsOf(sums).deviance, 1e-9 * std::abs(deviance));
        for (size_t i = 0; i < columns.size(); ++i) {
          const double wanted = -sums[GlmTotals::kNumbers + columns[i]];
          EXPECT_NEAR(gradient[i], wanted, 1e-9 * (1 + std::abs(wanted))) << columns[i];
        }
        return OkStatus();
      });
      EXPECT_TRUE(status.ok()) << status;
    }
  }
}

TEST(GlmStreamTest, ColumnsWithoutACoefficientCountFor0) {
  RandomSequence random(7);
  const TemporaryFolder folder;
  const auto shard = ShardOf(folder.Write("t.csv", StreamRowsOf(100, &random)), 5000, 0);
  const GlmDesign design = WholeDesign(GlmFamily::kBinomial);
  // Level 0 of f has none, and there is no intercept.
  CountedVector<int32_t> of_column(design.num_columns(), -1);
  of_column[1] = 0;
  of_column[3] = 1;
  of_column[4] = 2;
  GlmStream stream(shard, design, GlmCoefficientParts(of_column, 2), {.rows = 100});
  ASSERT_TRUE(stream
                  .Next(0, {},
                        [&](const GlmBatch& batch) {
                          EXPECT_TRUE(batch.columns[0].empty());
                          EXPECT_THAT(batch.columns[1],
                                      UnorderedElementsAreArray(std::vector<int64_t>{0, 1, 2}));
                          // The groups with a number are first: x, x by f; then the intercept, f.
                          for (int64_t i = 0; i < batch.count; ++i) {
                            EXPECT_LT(batch.places[0][i], 3);
                            EXPECT_EQ(batch.places[1][i], 3);
                            EXPECT_EQ(batch.places[2][i], 3);
                          }
                          return OkStatus();
                        })
                  .ok());
}

}  // namespace
}  // namespace tenon
