// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <unistd.h>

#include "core/op/function.h"
#include "core/proto/proto_io_function.h"
#include "data/files/file.h"
#include "data/records/record_file.h"
#include "ops/array/constants.h"
#include "ops/data/data_ops.h"
#include "ops/queues/queues_ops.h"
#include "ops/register.h"
#include "runtime/session/local_session.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;

const std::vector<DType> kInt64 = {DType::kInt64};
const std::vector<PartialShape> kScalar = {PartialShape(Shape{})};

/// Functions of an int64 x: its square; x + 1, of which a part is computed on CPU:1; what comes
/// out of the queue "slow". The sum of two. A dataset, after nodes that are slow enough to be
/// given to other threads. And what a dataset gives that calls the same function.
constexpr std::string_view kFunctions = R"(
function {
  signature { name: 'square' input_arg { name: 'x' type: DT_INT64 }
              output_arg { name: 'y' type: DT_INT64 } }
  node_def { name: 'm' op: 'Mul' input: 'x' input: 'x'
             attr { key: 'T' value { type: DT_INT64 } } }
  ret { key: 'y' value: 'm:z:0' }
}
function {
  signature { name: 'elsewhere' input_arg { name: 'x' type: DT_INT64 }
              output_arg { name: 'y' type: DT_INT64 } }
  node_def { name: 'twice' op: 'Add' input: 'x' input: 'x' device: '/device:CPU:1'
             attr { key: 'T' value { type: DT_INT64 } } }
  node_def { name: 'once' op: 'Sub' input: 'twice:z:0' input: 'x' device: '/device:CPU:0'
             attr { key: 'T' value { type: DT_INT64 } } }
  ret { key: 'y' value: 'once:z:0' }
}
function {
  signature { name: 'from_queue' input_arg { name: 'x' type: DT_INT64 }
              output_arg { name: 'y' type: DT_INT64 } is_stateful: true }
  node_def { name: 'q' op: 'FIFOQueueV2' attr { key: 'shared_name' value { s: 'slow' } }
             attr { key: 'component_types' value { list { type: DT_INT64 } } }
             attr { key: 'shapes' value { list { shape {} } } } }
  node_def { name: 'd' op: 'QueueDequeueV2' input: 'q:handle:0'
             attr { key: 'component_types' value { list { type: DT_INT64 } } } }
  ret { key: 'y' value: 'd:components:0' }
}
function {
  signature { name: 'squares' output_arg { name: 'd' type: DT_VARIANT } is_stateful: true }
  node_def { name: 'zero' op: 'Const' attr { key: 'dtype' value { type: DT_INT64 } }
             attr { key: 'value' value {
               tensor { dtype: DT_INT64 int64_val: 0 tensor_shape {} } } } }
  node_def { name: 'one' op: 'Const' attr { key: 'dtype' value { type: DT_INT64 } }
             attr { key: 'value' value {
               tensor { dtype: DT_INT64 int64_val: 1 tensor_shape {} } } } }
  node_def { name: 'nine' op: 'Const' attr { key: 'dtype' value { type: DT_INT64 } }
             attr { key: 'value' value {
               tensor { dtype: DT_INT64 int64_val: 9 tensor_shape {} } } } }
  node_def { name: 'many' op: 'Const' attr { key: 'dtype' value { type: DT_INT32 } }
             attr { key: 'value' value { tensor { dtype: DT_INT32 int_val: 100000
                                                  tensor_shape { dim { size: 1 } } } } } }
  node_def { name: 'slow' op: 'RandomUniform' input: 'many:output:0'
             attr { key: 'T' value { type: DT_INT32 } }
             attr { key: 'dtype' value { type: DT_DOUBLE } } }
  node_def { name: 'also_slow' op: 'RandomUniform' input: 'many:output:0'
             attr { key: 'T' value { type: DT_INT32 } }
             attr { key: 'dtype' value { type: DT_DOUBLE } } }
  node_def { name: 'r' op: 'RangeDataset'
             input: 'zero:output:0' input: 'nine:output:0' input: 'one:output:0'
             input: '^slow' input: '^also_slow'
             attr { key: 'output_types' value { list { type: DT_INT64 } } }
             attr { key: 'output_shapes' value { list { shape {} } } } }
  node_def { name: 'p' op: 'ParallelMapDatasetV2' input: 'r:handle:0' input: 'nine:output:0'
             attr { key: 'f' value { func { name: 'square' } } }
             attr { key: 'Targuments' value { list {} } }
             attr { key: 'output_types' value { list { type: DT_INT64 } } }
             attr { key: 'output_shapes' value { list { shape {} } } } }
  node_def { name: 's' op: 'RepeatDataset' input: 'r:handle:0' input: 'one:output:0'
             attr { key: 'output_types' value { list { type: DT_INT64 } } }
             attr { key: 'output_shapes' value { list { shape {} } } } }
  node_def { name: 'c' op: 'ConcatenateDataset' input: 'p:handle:0' input: 's:handle:0'
             attr { key: 'output_types' value { list { type: DT_INT64 } } }
             attr { key: 'output_shapes' value { list { shape {} } } } }
  ret { key: 'd' value: 'c:handle:0' }
}
function {
  signature { name: 'sum' input_arg { name: 'x' type: DT_INT64 }
              input_arg { name: 'y' type: DT_INT64 } output_arg { name: 'z' type: DT_INT64 } }
  node_def { name: 'a' op: 'Add' input: 'x' input: 'y'
             attr { key: 'T' value { type: DT_INT64 } } }
  ret { key: 'z' value: 'a:z:0' }
}
function {
  signature { name: 'again' input_arg { name: 'x' type: DT_INT64 }
              output_arg { name: 'y' type: DT_INT64 } }
  node_def { name: 'zero' op: 'Const' attr { key: 'dtype' value { type: DT_INT64 } }
             attr { key: 'value' value {
               tensor { dtype: DT_INT64 int64_val: 0 tensor_shape {} } } } }
  node_def { name: 'one' op: 'Const' attr { key: 'dtype' value { type: DT_INT64 } }
             attr { key: 'value' value {
               tensor { dtype: DT_INT64 int64_val: 1 tensor_shape {} } } } }
  node_def { name: 'r' op: 'RangeDataset'
             input: 'zero:output:0' input: 'one:output:0' input: 'one:output:0'
             attr { key: 'output_types' value { list { type: DT_INT64 } } }
             attr { key: 'output_shapes' value { list { shape {} } } } }
  node_def { name: 'm' op: 'MapDataset' input: 'r:handle:0'
             attr { key: 'f' value { func { name: 'again' } } }
             attr { key: 'Targuments' value { list {} } }
             attr { key: 'output_types' value { list { type: DT_INT64 } } }
             attr { key: 'output_shapes' value { list { shape {} } } } }
  node_def { name: 's' op: 'ReduceDataset' input: 'm:handle:0' input: 'x'
             attr { key: 'f' value { func { name: 'sum' } } }
             attr { key: 'Tstate' value { list { type: DT_INT64 } } }
             attr { key: 'Targuments' value { list {} } }
             attr { key: 'output_types' value { list { type: DT_INT64 } } }
             attr { key: 'output_shapes' value { list { shape {} } } } }
  ret { key: 'y' value: 's:components:0' }
})";

class DatasetsTest : public ::testing::Test {
 protected:
  DatasetsTest() {
    FunctionDefLibrary proto;
    TENON_CHECK(google::protobuf::TextFormat::ParseFromString(std::string(kFunctions), &proto));
    auto library = std::make_shared<FunctionLibrary>();
    TENON_CHECK(AddFunctionsFromProto(proto, AllOps(), library.get()).ok());
    graph_.set_functions(std::move(library));
    handle_ = IteratorV2("", "", kInt64, kScalar);
  }

  Output Range(int64_t count) {
    return RangeDataset(int64_t{0}, count, int64_t{1}, kInt64, kScalar);
  }
  Output Map(Output input, const std::string& function) {
    return MapDataset(input, {}, FunctionName{function, {}}, kInt64, kScalar);
  }
  Output MapInParallel(Output input, const std::string& function, int64_t calls) {
    return ParallelMapDatasetV2(input, {}, calls, FunctionName{function, {}}, kInt64, kScalar);
  }
  Output Prefetch(Output input) { return PrefetchDataset(input, int64_t{2}, kInt64, kScalar); }
  /// The next element of `dataset`.
  Output Next(Output dataset) {
    begin_ = MakeIterator(dataset, handle_);
    return IteratorGetNext(handle_, kInt64, kScalar)[0];
  }
  std::unique_ptr<Session> Open(const LocalSessionOptions& options = {}) {
    auto session = MakeLocalSession(graph_, options);
    EXPECT_OK(session.status());
    return *std::move(session);
  }
  /// The elements up to the end.
  static std::vector<int64_t> All(Session& session, Output next) {
    std::vector<int64_t> elements;
    while (true) {
      const auto values = session.Run({}, {next});
      if (!values.ok()) {
        EXPECT_THAT(values.status(), IsError(StatusCode::kOutOfRange, "End of sequence"));
        return elements;
      }
      elements.push_back((*values)[0].scalar<int64_t>());
    }
  }

  Graph graph_{AllOps()};
  GraphBuilding building_{graph_};
  Output handle_;
  Node* begin_ = nullptr;
};

TEST_F(DatasetsTest, AnIteratorWalksAgainWhenItBeginsAgain) {
  const Output next = Next(Prefetch(MapInParallel(Range(5), "square", 2)));
  const auto session = Open();
  EXPECT_THAT(session->Run({}, {next}).status(),
              IsError(StatusCode::kFailedPrecondition, "has not been initialized"));
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK(session->Run({}, {}, {begin_}).status());
    EXPECT_THAT(All(*session, next), ElementsAre(0, 1, 4, 9, 16));
  }
  // In the middle of a walk.
  ASSERT_OK(session->Run({}, {}, {begin_}).status());
  ASSERT_OK(session->Run({}, {next}).status());
  ASSERT_OK(session->Run({}, {}, {begin_}).status());
  EXPECT_THAT(All(*session, next), ElementsAre(0, 1, 4, 9, 16));
}

TEST_F(DatasetsTest, CallsOfABodyOnTwoDevicesDoNotMeet) {
  const Output next = Next(MapInParallel(Range(200), "elsewhere", 8));
  const auto session = Open({.devices = {.cpus = 2}});
  ASSERT_OK(session->Run({}, {}, {begin_}).status());
  const std::vector<int64_t> all = All(*session, next);
  ASSERT_EQ(all.size(), 200);
  for (int64_t i = 0; i < 200; ++i) EXPECT_EQ(all[i], i);
}

TEST_F(DatasetsTest, AStepThatIsCancelledLeavesItsElementToTheNext) {
  const Output next = Next(Map(Range(5), "from_queue"));
  const Output queue =
      FIFOQueueV2(kInt64, {.shapes = kScalar, .shared_name = "slow", .name = "queue"});
  Node* const put = QueueEnqueueV2(queue, {::tenon::Const(Tensor::Scalar<int64_t>(7))});
  const auto session = Open();
  ASSERT_OK(session->Run({}, {}, {begin_}).status());
  StepOptions hasty;
  hasty.timeout = std::chrono::milliseconds(30);
  EXPECT_THAT(session->Run({}, {next}, {}, hasty).status(),
              IsError(StatusCode::kDeadlineExceeded, "30 ms"));
  ASSERT_OK(session->Run({}, {}, {put}).status());
  const auto values = session->Run({}, {next});
  ASSERT_OK(values.status());
  EXPECT_EQ((*values)[0].scalar<int64_t>(), 7);
}

TEST_F(DatasetsTest, ASessionEndsWhileAWalkWaits) {
  for (const bool prefetched : {false, true}) {
    const Output waiting = MapInParallel(Range(5), "from_queue", 3);
    const Output next = Next(prefetched ? Prefetch(waiting) : waiting);
    const auto session = Open();
    ASSERT_OK(session->Run({}, {}, {begin_}).status());
    StepOptions hasty;
    hasty.timeout = std::chrono::milliseconds(30);
    EXPECT_FALSE(session->Run({}, {next}, {}, hasty).ok());
    EXPECT_OK(session->Close());
  }
}

TEST_F(DatasetsTest, AWalkOutlivesTheSessionWhoseFunctionsItCalls) {
  handle_ = IteratorV2("shared", "", kInt64, kScalar);
  const Output plain = Next(Range(3));
  Node* const begin_plain = begin_;
  const Output squares = Next(Map(Range(3), "square"));
  const auto resources = std::make_shared<ResourceStore>();
  const auto first = Open({.resources = resources}), second = Open({.resources = resources});
  ASSERT_OK(first->Run({}, {}, {begin_}).status());
  ASSERT_OK(second->Run({}, {squares}).status());
  ASSERT_OK(first->Close());
  EXPECT_THAT(second->Run({}, {squares}).status(),
              IsError(StatusCode::kFailedPrecondition, "Session is closed"));
  ASSERT_OK(second->Run({}, {}, {begin_plain}).status());
  EXPECT_THAT(All(*second, plain), ElementsAre(0, 1, 2));
}

TEST_F(DatasetsTest, OldOpsBatchAndShuffleToo) {
  handle_ = IteratorV2("", "", kInt64, {PartialShape({-1})});
  const auto batches = [&](Output dataset) {
    begin_ = MakeIterator(dataset, handle_);
    const Output next = IteratorGetNext(handle_, kInt64, {PartialShape({-1})})[0];
    const auto session = Open();
    EXPECT_OK(session->Run({}, {}, {begin_}).status());
    std::vector<std::vector<double>> found;
    for (auto values = session->Run({}, {next}); values.ok(); values = session->Run({}, {next})) {
      found.push_back(Numbers((*values)[0]));
    }
    return found;
  };
  const std::vector<PartialShape> rows = {PartialShape({-1})};
  EXPECT_THAT(batches(BatchDataset(Range(5), int64_t{2}, kInt64, rows)),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(4)));
  EXPECT_THAT(batches(PaddedBatchDataset(Range(3), int64_t{2}, {Tensor(DType::kInt64, {0})},
                                         {Tensor::Scalar<int64_t>(9)}, rows)),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2)));
  const auto generator = AnonymousRandomSeedGenerator(int64_t{1}, int64_t{8});
  const auto shuffled = batches(
      BatchDataset(ShuffleDatasetV2(Range(10), int64_t{6}, generator.handle, kInt64, kScalar),
                   int64_t{10}, kInt64, rows));
  ASSERT_EQ(shuffled.size(), 1);
  // TensorFlow's order for these seeds.
  EXPECT_THAT(shuffled[0], ElementsAre(3, 6, 2, 4, 1, 8, 9, 0, 5, 7));
}

TEST_F(DatasetsTest, RecordsBeginAtAnOffset) {
  const std::string records = StrCat(::testing::TempDir(), "datasets_test_records_", getpid());
  const std::string fixed = StrCat(::testing::TempDir(), "datasets_test_fixed_", getpid());
  {
    const auto writer = RecordWriter::Create(records);
    ASSERT_OK(writer.status());
    for (const char* record : {"first", "second"}) ASSERT_OK((*writer)->Write(record));
    ASSERT_OK((*writer)->Close());
    const auto file = OpenOutput(fixed);
    ASSERT_OK(file.status());
    ASSERT_OK((*file)->Append("HEabcdefF"));
    ASSERT_OK((*file)->Close());
  }
  handle_ = IteratorV2("", "", {DType::kString}, kScalar);
  const auto texts = [&](Output dataset) {
    begin_ = MakeIterator(dataset, handle_);
    const Output next = IteratorGetNext(handle_, {DType::kString}, kScalar)[0];
    const auto session = Open();
    EXPECT_OK(session->Run({}, {}, {begin_}).status());
    std::vector<std::string> found;
    for (auto values = session->Run({}, {next}); values.ok(); values = session->Run({}, {next})) {
      found.emplace_back((*values)[0].scalar<TString>());
    }
    return found;
  };
  // A record is framed by 12 and 4 bytes.
  EXPECT_THAT(texts(TFRecordDatasetV2(Tensor::Vector<std::string>({records}), "", int64_t{0},
                                      Tensor::Vector<int64_t>({21}))),
              ElementsAre("second"));
  EXPECT_THAT(
      texts(FixedLengthRecordDataset(fixed, int64_t{2}, int64_t{3}, int64_t{1}, int64_t{0})),
      ElementsAre("abc", "def"));
}

TEST_F(DatasetsTest, AReductionWithoutEndEndsWithItsStep) {
  const auto reduce = [&](Output dataset) {
    return ReduceDataset(dataset, {::tenon::Const(Tensor::Scalar<int64_t>(5))}, {},
                         FunctionName{"sum", {}}, kInt64, kScalar)[0];
  };
  const Output sum = reduce(Range(4));
  const Output endless = reduce(RepeatDataset(Range(4), int64_t{-1}, kInt64, kScalar));
  const Output ahead = reduce(Prefetch(MapInParallel(Range(4), "square", 2)));
  StepOptions hasty;
  hasty.timeout = std::chrono::milliseconds(30);
  // Also where no thread is left for its functions while it waits for them.
  for (const int threads : {0, 1}) {
    const auto session = Open({.threads = threads});
    const auto values = session->Run({}, {sum, ahead});
    ASSERT_OK(values.status());
    EXPECT_EQ((*values)[0].scalar<int64_t>(), 5 + 0 + 1 + 2 + 3);
    EXPECT_EQ((*values)[1].scalar<int64_t>(), 5 + 0 + 1 + 4 + 9);
    EXPECT_THAT(session->Run({}, {endless}, {}, hasty).status(),
                IsError(StatusCode::kDeadlineExceeded, "30 ms"));
  }
}

/// Their functions want the threads on which the nodes of the iterators run.
TEST_F(DatasetsTest, AStepMayMakeMoreIteratorsThanThereAreThreads) {
  std::vector<Output> nexts;
  for (int i = 0; i < 8; ++i) {
    const Output handle = OneShotIterator(FunctionName{"squares", {}}, kInt64, kScalar);
    nexts.push_back(IteratorGetNext(handle, kInt64, kScalar)[0]);
  }
  StepOptions patient;
  patient.timeout = std::chrono::seconds(20);
  for (const int threads : {0, 1, 2}) {
    const auto session = Open({.threads = threads});
    for (int64_t i = 0; i < 18; ++i) {
      const auto values = session->Run({}, StepTensors(nexts), {}, patient);
      ASSERT_OK(values.status());
      for (const Tensor& t : *values) EXPECT_EQ(t.scalar<int64_t>(), i < 9 ? i * i : i - 9);
    }
    EXPECT_THAT(session->Run({}, {nexts[3]}).status(), IsError(StatusCode::kOutOfRange, ""));
  }
}

/// What they end waits for its functions.
TEST_F(DatasetsTest, IteratorsBeginAgainWhileElementsAreMadeAhead) {
  std::vector<Output> nexts;
  std::vector<std::string> begins;
  for (int i = 0; i < 6; ++i) {
    handle_ = IteratorV2("", "", kInt64, kScalar);
    nexts.push_back(Next(Prefetch(MapInParallel(Range(100), "elsewhere", 4))));
    begins.push_back(begin_->name());
  }
  StepOptions patient;
  patient.timeout = std::chrono::seconds(20);
  for (const int threads : {1, 2}) {
    const auto session = Open({.threads = threads, .devices = {.cpus = 2}});
    for (int i = 0; i < 30; ++i) {
      ASSERT_OK(session->Run({}, {}, StepTensors(begins), patient).status());
      const auto values = session->Run({}, StepTensors(nexts), {}, patient);
      ASSERT_OK(values.status());
      for (const Tensor& t : *values) EXPECT_EQ(t.scalar<int64_t>(), 0);
    }
  }
}

/// TensorFlow 1.13 and 1.14 called many datasets so.
TEST_F(DatasetsTest, ExperimentalNamesAreThoseOfToday) {
  const Output squares = Map(Range(4), "square");
  AttributeMap attrs;
  attrs.Set("output_types", kInt64);
  attrs.Set("output_shapes", kScalar);
  const auto old = graph_.AddNode("old", "ExperimentalUniqueDataset", attrs, {squares});
  ASSERT_OK(old.status());
  const Output next = Next(Output(*old));
  const auto session = Open();
  ASSERT_OK(session->Run({}, {}, {begin_}).status());
  EXPECT_THAT(All(*session, next), ElementsAre(0, 1, 4, 9));
}

TEST_F(DatasetsTest, WrongPipelinesAreErrors) {
  const auto refuse = [&](Output next, StatusCode code, std::string_view text) {
    const auto session = Open();
    Status status = session->Run({}, {}, {begin_}).status();
    if (status.ok()) status = session->Run({}, {next}).status();
    EXPECT_THAT(status, IsError(code, text));
  };
  using enum StatusCode;
  refuse(Next(Map(Range(3), "nothing")), kInvalidArgument, "has no function 'nothing'");
  refuse(Next(PrefetchDataset(Range(3), int64_t{-5}, kInt64, kScalar)), kInvalidArgument,
         "buffer_size must be");
  refuse(Next(MapInParallel(Range(3), "square", 0)), kInvalidArgument,
         "num_parallel_calls must be greater than zero");
  refuse(Next(BatchDatasetV2(Range(3), int64_t{0}, false, kInt64, {PartialShape({-1})})),
         kInvalidArgument, "Batch size must be greater than zero");
  refuse(Next(BatchDatasetV2(Range(3), int64_t{2}, false, kInt64, {PartialShape({-1})})),
         kInvalidArgument, "Incompatible shapes at component 0");
  refuse(Next(RangeDataset(int64_t{0}, int64_t{3}, int64_t{1}, {DType::kInt32}, kScalar)),
         kInvalidArgument, "dtypes do not match");
  refuse(Next(FlatMapDataset(Range(3), {}, FunctionName{"square", {}}, kInt64, kScalar)),
         kInvalidArgument, "wanted a dataset");
  const Output two = RangeDataset(int64_t{2}, int64_t{3}, int64_t{1}, kInt64, kScalar);
  refuse(Next(RebatchDatasetV2(Range(3), Tensor::Vector<int64_t>({0, 0}), false, kInt64,
                               {PartialShape({-1})})),
         kInvalidArgument, "batch_sizes must be at least 0 and not all 0, found [0,0]");
  const Output floats = TensorSliceDataset({Tensor::Vector<float>({1, 2})}, kScalar);
  refuse(Next(UniqueDataset(floats, {DType::kFloat}, kScalar)), kInvalidArgument,
         "only supports inputs with a single `tf.int32`");
  const auto slices = [](std::vector<int64_t> rows) {
    const Tensor indices = Tensor::Of<int64_t>({2, 1}, rows);
    return SparseTensorSliceDataset(indices, Tensor::Vector<int64_t>({5, 6}),
                                    Tensor::Vector<int64_t>({3}));
  };
  refuse(Next(slices({2, 1})), kUnimplemented, "must be ordered in the batch dimension");
  refuse(Next(slices({1, 3})), kInvalidArgument, "indices[1,0] is 3, wanted less than 3");
  refuse(Next(DirectedInterleaveDataset(two, {Range(1), Range(3)}, kInt64, kScalar)),
         kInvalidArgument, "Selector index out of range: 2 >= 2");
  const FunctionName square{"square", {}};
  refuse(Next(GroupByWindowDataset(Range(3), {}, {}, {}, square, square, square, kInt64, kScalar)),
         kInvalidArgument, "Window size must be greater than zero, but got 0");
  refuse(Next(ScanDataset(Range(3), {::tenon::Const(Tensor::Scalar<int64_t>(0))}, {},
                          FunctionName{"sum", {}}, kInt64, kScalar)),
         kInvalidArgument, "the function gives int64, wanted int64, int64");
  refuse(Next(Map(Range(3), "again")), kUnimplemented,
         "function 'again': it is called by datasets within more than 32 functions");
}

}  // namespace
}  // namespace tenon::testing
