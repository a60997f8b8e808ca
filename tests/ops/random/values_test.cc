// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iomanip>
#include <numeric>
#include <sstream>

#include "absl/strings/escaping.h"
#include "ops/array/constants.h"
#include "ops/register.h"
#include "tests/testing/graph_runner.h"
#include "tests/testing/op_runner.h"

namespace tenon::testing {
namespace {

/// One run of tests/data/tf/random_values.txt: the first 32 bytes and a hash of all of them.
struct Line {
  std::string op, dtype;
  int64_t seed, seed2;
  std::string arguments;
  int run;
  std::string bytes, hash;
};

std::vector<Line> ReadLines() {
  const char* root = std::getenv("TENON_SOURCE_DIR");
  std::ifstream file(StrCat(root == nullptr ? "." : root, "/tests/data/tf/random_values.txt"));
  std::vector<Line> lines;
  Line l;
  while (file >> l.op >> l.dtype >> l.seed >> l.seed2 >> l.arguments >> l.run >> l.bytes >>
         l.hash) {
    lines.push_back(l);
  }
  return lines;
}

std::string Hash(std::string_view bytes) {
  uint64_t h = 0xcbf29ce484222325;
  for (const char c : bytes) h = (h ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  std::ostringstream text;
  text << std::hex << std::setw(16) << std::setfill('0') << h;
  return text.str();
}

std::vector<int64_t> ParseNumbers(const std::string& text) {
  std::vector<int64_t> numbers;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ',');) numbers.push_back(std::stoll(part));
  return numbers;
}

Output Build(const Line& line) {
  const DType dtype = *ParseDType(line.dtype);
  const std::vector<int64_t> numbers = ParseNumbers(line.arguments);
  NodeBuilder builder(line.op);
  builder.Attr("seed", line.seed).Attr("seed2", line.seed2);
  if (line.op == "RandomShuffle") {
    const int64_t rows = numbers[0], columns = numbers[1];
    Tensor value(DType::kInt32, columns == 1 ? Shape{rows} : Shape{rows, columns});
    std::iota(value.data<int32_t>(), value.data<int32_t>() + value.num_elements(), 0);
    return builder.Input(Const(value)).Output();
  }
  builder.Input(Const(Tensor::Vector<int32_t>({static_cast<int32_t>(numbers[0])})));
  if (line.op != "RandomUniformInt") return builder.Attr("dtype", dtype).Output();
  for (const int i : {1, 2}) {
    builder.Input(Const(dtype == DType::kInt32 ? Tensor::Scalar(static_cast<int32_t>(numbers[i]))
                                               : Tensor::Scalar(numbers[i])));
  }
  return builder.Output();
}

TEST(RandomValues, EveryOpAndDtypeGivesTensorFlowsBitsInTwoRuns) {
  const std::vector<Line> lines = ReadLines();
  ASSERT_EQ(lines.size(), 168u);
  for (size_t i = 0; i < lines.size(); i += 2) {
    Graph graph(AllOps());
    GraphBuilding building(graph);
    const Output out = Build(lines[i]);
    ASSERT_TRUE(building.status().ok()) << building.status();
    GraphRunner runner(graph);
    for (const Line& line : {lines[i], lines[i + 1]}) {
      SCOPED_TRACE(StrCat(line.op, " ", line.dtype, " seeds ", line.seed, " ", line.seed2, " of ",
                          line.arguments, " run ", line.run));
      const auto result = runner.Run({out});
      ASSERT_TRUE(result.ok()) << result.status();
      const Tensor& t = (*result)[0];
      const std::string bytes(static_cast<const char*>(t.raw_data()), t.num_bytes());
      EXPECT_EQ(absl::BytesToHexString(bytes.substr(0, 32)), line.bytes);
      EXPECT_EQ(Hash(bytes), line.hash);
    }
  }
}

}  // namespace
}  // namespace tenon::testing
