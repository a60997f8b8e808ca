// SPDX-License-Identifier: Apache-2.0
//
// Wrong graphs of datasets that are divided, and many ways through one; what right graphs give is
// divided_pipelines_test.py's.
#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>

#include "core/op/function.h"
#include "core/proto/proto_io_function.h"
#include "ops/array/constants.h"
#include "ops/data/data_ops.h"
#include "ops/register.h"
#include "runtime/session/local_session.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using ::testing::HasSubstr;

const std::vector<DType> kNumber = {DType::kInt64};
const std::vector<PartialShape> kRow = {PartialShape(Shape{})};

Status RunOne(const Graph& graph, const Output& output) {
  TENON_ASSIGN_OR_RETURN(const auto session, MakeLocalSession(graph));
  return session->Run({}, {}, {output}, {}).status();
}

Output Numbers() { return RangeDataset(int64_t{0}, int64_t{4}, int64_t{1}, kNumber, kRow); }

/// The numbers 2^60 times over.
Output ManyNumbers() {
  Output dataset = Numbers();
  for (int i = 0; i < 60; ++i) dataset = ConcatenateDataset(dataset, dataset, kNumber, kRow);
  return dataset;
}

TEST(DividedDatasetsTest, ElementsAreCountedOnceWhateverTheWaysThroughADataset) {
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  const Output count = DatasetCardinality(ManyNumbers());
  ASSERT_OK(building.status());
  const auto session = MakeLocalSession(graph);
  ASSERT_OK(session);
  const auto found = (*session)->Run({}, {count}, {}, {});
  ASSERT_OK(found);
  EXPECT_EQ((*found)[0].data<int64_t>()[0], int64_t{1} << 62);
}

TEST(DividedDatasetsTest, TooManyWaysThroughADatasetAreAnError) {
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  const Output dataset = ManyNumbers();
  const Output size = ComputeBatchSize(dataset);
  const Output share = AutoShardDataset(dataset, int64_t{2}, int64_t{0}, kNumber, kRow);
  ASSERT_OK(building.status());
  for (const Output& output : {size, share}) {
    const Status status = RunOne(graph, output);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(Message(status)), HasSubstr("in 65536 ways or more"));
  }
}

TEST(DividedDatasetsTest, AFunctionThatMakesDatasetsByItselfOpensNoFiles) {
  FunctionDefLibrary proto;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(R"(
    function {
      signature { name: 'again' input_arg { name: 'x' type: DT_INT64 }
                  output_arg { name: 'y' type: DT_VARIANT } }
      node_def { name: 't' op: 'TensorDataset' input: 'x'
                 attr { key: 'Toutput_types' value { list { type: DT_INT64 } } }
                 attr { key: 'output_shapes' value { list { shape {} } } } }
      node_def { name: 'm' op: 'FlatMapDataset' input: 't:handle:0'
                 attr { key: 'f' value { func { name: 'again' } } }
                 attr { key: 'Targuments' value { list {} } }
                 attr { key: 'output_types' value { list { type: DT_INT64 } } }
                 attr { key: 'output_shapes' value { list { shape {} } } } }
      ret { key: 'y' value: 'm:handle:0' }
    })",
                                                            &proto));
  auto library = std::make_shared<FunctionLibrary>();
  ASSERT_OK(AddFunctionsFromProto(proto, AllOps(), library.get()));
  Graph graph(AllOps());
  graph.set_functions(std::move(library));
  const GraphBuilding building(graph);
  const Output made = FlatMapDataset(Numbers(), {}, FunctionName{"again", {}}, kNumber, kRow);
  const Output share =
      AutoShardDataset(made, int64_t{2}, int64_t{0}, kNumber, kRow, {.auto_shard_policy = 1});
  ASSERT_OK(building.status());
  EXPECT_EQ(RunOne(graph, share).code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace tenon
