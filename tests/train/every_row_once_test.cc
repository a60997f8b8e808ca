// SPDX-License-Identifier: Apache-2.0
// Every row of a table counts once, whatever the number of workers and of files, where a table is
// cut and how it is compressed. Cuts are so near to each other that they fall into quotes, into
// ends of lines and between fields. A column of ids, taken for a factor, has the account of each
// row.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "core/base/strings.h"
#include "data/files/byte_stream.h"
#include "tests/data/sample_files.h"
#include "tests/testing/test_cluster.h"
#include "train/glm/glm_cluster.h"

namespace tenon::testing {
namespace {

constexpr int64_t kRows = 150, kUnitBytes = 64;

/// Rows whose texts have quotes, commas, and ends of lines of both kinds.
std::vector<std::string> RowsWithQuotes() {
  const std::vector<std::string> texts = {
      "a", "\"b,c\"", "\"d \"\"e\"\"\"", "\"f\ng\"", "\"\r\n\"", "\"\n\n\"\"\n\"", "h"};
  std::mt19937 random(3);
  std::vector<std::string> rows;
  for (int64_t i = 0; i < kRows; ++i) {
    const std::string& text = texts[random() % texts.size()];
    rows.push_back(
        StrCat("id", i, ",", text, ",", random() % 100, random() % 3 == 0 ? "\r\n" : "\n"));
  }
  return rows;
}

std::vector<std::string> WriteFiles(const TemporaryFolder& folder, int64_t count, bool compressed) {
  const std::vector<std::string> rows = RowsWithQuotes();
  std::vector<std::string> paths;
  for (int64_t f = 0; f < count; ++f) {
    std::string text = "id,text,y\n";
    for (int64_t i = f * kRows / count; i < (f + 1) * kRows / count; ++i) text += rows[i];
    const std::string name = StrCat(f, "-of-", count, compressed ? ".csv.gz" : ".csv");
    if (compressed) {
      auto file = MakeCompressor(OpenOutput(folder / name).value(), Compression::kGzip);
      EXPECT_TRUE(file->Append(text).ok() && file->Close().ok());
    } else {
      folder.Write(name, text);
    }
    paths.push_back(folder / name);
  }
  return paths;
}

void ExpectEachRowOnce(const GlmResult& fit) {
  EXPECT_EQ(fit.rows_used, kRows);
  int64_t count = 0, sum = 0, combined = 0;
  for (const GlmCoefficient& c : fit.coefficients) {
    if (c.term != "id") continue;
    EXPECT_EQ(c.rows, 1) << c.level;
    int64_t id = 0;
    ASSERT_TRUE(c.level.starts_with("id") && absl::SimpleAtoi(c.level.substr(2), &id)) << c.level;
    ++count;
    sum += id;
    combined ^= id;
  }
  int64_t wanted = 0;
  for (int64_t i = 0; i < kRows; ++i) wanted ^= i;
  EXPECT_EQ(count, kRows);
  EXPECT_EQ(sum, kRows * (kRows - 1) / 2);
  EXPECT_EQ(combined, wanted);
}

TEST(EveryRowOnceTest, WhateverTheWorkersTheFilesAndTheCuts) {
  const TemporaryFolder folder;
  for (const auto& [workers, servers] : {std::pair(1, 1), {2, 2}, {3, 1}, {7, 2}}) {
    TestCluster cluster(servers, workers);
    cluster.StartAll();
    for (const int64_t files : {1, 5}) {
      for (const bool compressed : {false, true}) {
        SCOPED_TRACE(StrCat(workers, " workers, ", servers, " servers, ", files, " files"));
        GlmOptions options;
        options.unit_bytes = kUnitBytes;
        options.penalty.ridge = 1;
        const auto fit = FitGlmOnWorkers(cluster.at("worker", 0), "y ~ id + text",
                                         WriteFiles(folder, files, compressed), options,
                                         [](const std::string& line) { ADD_FAILURE() << line; });
        ASSERT_TRUE(fit.ok()) << fit.status();
        ExpectEachRowOnce(*fit);
      }
    }
  }
}

}  // namespace
}  // namespace tenon::testing
