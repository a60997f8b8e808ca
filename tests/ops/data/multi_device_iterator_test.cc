// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>

#include <thread>

#include "core/op/function.h"
#include "core/proto/proto_io_function.h"
#include "ops/array/constants.h"
#include "ops/data/data_ops.h"
#include "ops/queues/queues_ops.h"
#include "ops/register.h"
#include "runtime/session/local_session.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using enum StatusCode;

const std::vector<DType> kNumbers = {DType::kInt64};
const std::vector<PartialShape> kScalars = {PartialShape(Shape{})};

/// 12 / (x - 1); what comes out of the queue "numbers". A walk whose state is a number: the
/// elements are the sum of that, a captured number and one of the queue's, and its end puts the
/// state into the queue "ended". And what TensorFlow takes a shard's elements by: `take` runs where
/// the captured text says.
constexpr std::string_view kCalled = R"(
function {
  signature { name: 'divide' input_arg { name: 'x' type: DT_INT64 }
              output_arg { name: 'y' type: DT_INT64 } }
  node_def { name: 'one' op: 'Const' attr { key: 'dtype' value { type: DT_INT64 } }
             attr { key: 'value' value { tensor { dtype: DT_INT64 int64_val: 1
                                                  tensor_shape {} } } } }
  node_def { name: 'twelve' op: 'Const' attr { key: 'dtype' value { type: DT_INT64 } }
             attr { key: 'value' value { tensor { dtype: DT_INT64 int64_val: 12
                                                  tensor_shape {} } } } }
  node_def { name: 'less' op: 'Sub' input: 'x' input: 'one:output:0'
             attr { key: 'T' value { type: DT_INT64 } } }
  node_def { name: 'part' op: 'FloorDiv' input: 'twelve:output:0' input: 'less:z:0'
             attr { key: 'T' value { type: DT_INT64 } } }
  ret { key: 'y' value: 'part:z:0' }
}
function {
  signature { name: 'number' input_arg { name: 'x' type: DT_INT64 }
              output_arg { name: 'y' type: DT_INT64 } is_stateful: true }
  node_def { name: 'q' op: 'FIFOQueueV2' attr { key: 'shared_name' value { s: 'numbers' } }
             attr { key: 'component_types' value { list { type: DT_INT64 } } }
             attr { key: 'shapes' value { list { shape {} } } } }
  node_def { name: 'd' op: 'QueueDequeueV2' input: 'q:handle:0'
             attr { key: 'component_types' value { list { type: DT_INT64 } } } }
  ret { key: 'y' value: 'd:components:0' }
}
function {
  signature { name: 'same' input_arg { name: 'x' type: DT_INT64 }
              output_arg { name: 'y' type: DT_INT64 } }
  ret { key: 'y' value: 'x' }
}
function {
  signature { name: 'next' input_arg { name: 'state' type: DT_INT64 }
              input_arg { name: 'captured' type: DT_INT64 }
              output_arg { name: 'y' type: DT_INT64 } is_stateful: true }
  node_def { name: 'n' op: 'PartitionedCall' input: 'state' attr { key: 'f' value { func {
             name: 'number' } } } attr { key: 'Tin' value { list { type: DT_INT64 } } }
             attr { key: 'Tout' value { list { type: DT_INT64 } } } }
  node_def { name: 'a' op: 'Add' input: 'state' input: 'n:output:0'
             attr { key: 'T' value { type: DT_INT64 } } }
  node_def { name: 'b' op: 'Add' input: 'a:z:0' input: 'captured'
             attr { key: 'T' value { type: DT_INT64 } } }
  ret { key: 'y' value: 'b:z:0' }
}
function {
  signature { name: 'finish' input_arg { name: 'state' type: DT_INT64 }
              output_arg { name: 'y' type: DT_INT64 } is_stateful: true }
  node_def { name: 'q' op: 'FIFOQueueV2' attr { key: 'shared_name' value { s: 'ended' } }
             attr { key: 'component_types' value { list { type: DT_INT64 } } }
             attr { key: 'shapes' value { list { shape {} } } } }
  node_def { name: 'e' op: 'QueueEnqueueV2' input: 'q:handle:0' input: 'state'
             attr { key: 'Tcomponents' value { list { type: DT_INT64 } } } }
  node_def { name: 'i' op: 'Identity' input: 'state' input: '^e'
             attr { key: 'T' value { type: DT_INT64 } } }
  ret { key: 'y' value: 'i:output:0' }
}
function {
  signature { name: 'take' input_arg { name: 'text' type: DT_STRING }
              input_arg { name: 'shard' type: DT_INT32 }
              input_arg { name: 'incarnation' type: DT_INT64 }
              output_arg { name: 'y' type: DT_INT64 } is_stateful: true }
  node_def { name: 'h' op: 'MultiDeviceIteratorFromStringHandle' input: 'text'
             attr { key: 'output_types' value { list { type: DT_INT64 } } }
             attr { key: 'output_shapes' value { list { shape {} } } } }
  node_def { name: 'g' op: 'MultiDeviceIteratorGetNextFromShard'
             input: 'h:multi_device_iterator:0' input: 'shard' input: 'incarnation'
             attr { key: 'output_types' value { list { type: DT_INT64 } } }
             attr { key: 'output_shapes' value { list { shape {} } } } }
  ret { key: 'y' value: 'g:components:0' }
}
function {
  signature { name: 'take_there' input_arg { name: 'text' type: DT_STRING }
              input_arg { name: 'target' type: DT_STRING }
              input_arg { name: 'shard' type: DT_INT32 }
              input_arg { name: 'incarnation' type: DT_INT64 }
              output_arg { name: 'y' type: DT_INT64 } is_stateful: true }
  node_def { name: 'r' op: 'RemoteCall'
             input: 'target' input: 'text' input: 'shard' input: 'incarnation'
             attr { key: 'f' value { func { name: 'take' } } }
             attr { key: 'Tin' value { list { type: [DT_STRING, DT_INT32, DT_INT64] } } }
             attr { key: 'Tout' value { list { type: DT_INT64 } } } }
  ret { key: 'y' value: 'r:output:0' }
}
function {
  signature { name: 'text' input_arg { name: 'x' type: DT_STRING }
              output_arg { name: 'y' type: DT_STRING } }
  ret { key: 'y' value: 'x' }
})";

class MultiDeviceIteratorTest : public ::testing::Test {
 protected:
  MultiDeviceIteratorTest() {
    FunctionDefLibrary proto;
    TENON_CHECK(google::protobuf::TextFormat::ParseFromString(std::string(kCalled), &proto));
    auto library = std::make_shared<FunctionLibrary>();
    TENON_CHECK(AddFunctionsFromProto(proto, AllOps(), library.get()).ok());
    graph_.set_functions(std::move(library));
    incarnation_ = NodeBuilder("Placeholder")
                       .Attr("dtype", DType::kInt64)
                       .Attr("shape", PartialShape(Shape{}))
                       .Output();
    Shards(3);
  }

  /// An iterator for so many devices.
  void Shards(int count) {
    handle_ = MultiDeviceIterator(std::vector<std::string>(count, "/device:CPU:0"), "", "",
                                  kNumbers, kScalars);
    shards_.clear();
    for (int i = 0; i < count; ++i) shards_.push_back(Shard(i));
  }
  Output Shard(int shard) {
    return MultiDeviceIteratorGetNextFromShard(handle_, shard, incarnation_, kNumbers, kScalars)[0];
  }
  Output Begin(const Output& dataset, int64_t max_buffer_size = 1) {
    return MultiDeviceIteratorInit(dataset, handle_, max_buffer_size);
  }
  static Output Range(int64_t count) {
    return RangeDataset(int64_t{0}, count, int64_t{1}, kNumbers, kScalars);
  }
  static Output Map(const std::string& function, int64_t count) {
    return MapDataset(Range(count), {}, FunctionName{function, {}}, kNumbers, kScalars);
  }
  static Output Queue(const std::string& name) {
    return FIFOQueueV2(kNumbers, {.shapes = kScalars, .shared_name = name});
  }
  static Node* Put(const std::string& queue, int64_t number) {
    return QueueEnqueueV2(Queue(queue), {Const(Tensor::Scalar(number))});
  }

  void Open(int cpus = 1) {
    ASSERT_OK(graph_.error());
    auto session = MakeLocalSession(graph_, {.devices = {.cpus = cpus}});
    ASSERT_OK(session.status());
    session_ = *std::move(session);
  }
  StatusOr<std::vector<int64_t>> Run(const std::vector<Output>& fetches, int64_t incarnation = 1,
                                     int timeout_ms = 20000) {
    StepOptions options;
    options.timeout = std::chrono::milliseconds(timeout_ms);
    TENON_ASSIGN_OR_RETURN(const std::vector<Tensor> values,
                           session_->Run({{incarnation_, Tensor::Scalar(incarnation)}},
                                         StepTensors(fetches), {}, options));
    std::vector<int64_t> numbers;
    for (const Tensor& t : values) numbers.push_back(t.scalar<int64_t>());
    return numbers;
  }
  int64_t Number(const Output& fetch, int64_t incarnation = 1) {
    const auto numbers = Run({fetch}, incarnation);
    EXPECT_OK(numbers.status());
    return numbers.ok() ? (*numbers)[0] : -1;
  }
  /// The elements of all shards together, up to the end of each.
  std::vector<std::vector<int64_t>> All(int64_t incarnation) {
    std::vector<std::vector<int64_t>> all(shards_.size());
    for (size_t open = shards_.size(), i = 0; open > 0; i = (i + 1) % shards_.size()) {
      const auto numbers = Run({shards_[i]}, incarnation);
      if (numbers.ok()) {
        all[i].push_back((*numbers)[0]);
        open = shards_.size();
      } else {
        EXPECT_THAT(numbers.status(), IsError(kOutOfRange, "End of sequence"));
        --open;
      }
    }
    return all;
  }

  Graph graph_{AllOps()};
  GraphBuilding building_{graph_};
  Output handle_, incarnation_;
  std::vector<Output> shards_;
  std::unique_ptr<Session> session_;
};

TEST_F(MultiDeviceIteratorTest, ElementsGoToTheShardsInTurn) {
  for (const int64_t ahead : {0, 1, 5}) {
    Shards(3);
    const Output begin = Begin(Range(7), ahead);
    Open();
    EXPECT_EQ(Number(begin), 1);
    const auto first = Run({shards_[2], shards_[0], shards_[1]});
    ASSERT_OK(first.status());
    EXPECT_THAT(*first, ElementsAre(2, 0, 1));
    EXPECT_THAT(All(1), ElementsAre(ElementsAre(3, 6), ElementsAre(4), ElementsAre(5)));
    EXPECT_EQ(Number(begin), 2);
    const auto again = Run(shards_, 2);
    ASSERT_OK(again.status());
    EXPECT_THAT(*again, ElementsAre(0, 1, 2));
  }
}

TEST_F(MultiDeviceIteratorTest, AShardWaitsUntilTheOthersHaveRoom) {
  const Output begin = Begin(Range(7), 1);
  Open();
  EXPECT_EQ(Number(begin), 1);
  EXPECT_EQ(Number(shards_[2]), 2);
  EXPECT_THAT(Run({shards_[2]}, 1, 30).status(), IsError(kDeadlineExceeded, "30 ms"));
  EXPECT_EQ(Number(shards_[0]), 0);
  EXPECT_THAT(Run({shards_[2]}, 1, 30).status(), IsError(kDeadlineExceeded, "30 ms"));
  EXPECT_EQ(Number(shards_[1]), 1);
  EXPECT_EQ(Number(shards_[2]), 5);
  EXPECT_THAT(All(1), ElementsAre(ElementsAre(3, 6), ElementsAre(4), IsEmpty()));
}

TEST_F(MultiDeviceIteratorTest, AnErrorGoesToTheShardWhoseTurnItIs) {
  Shards(2);
  const Output begin = Begin(Map("divide", 4), 2);
  Open();
  EXPECT_EQ(Number(begin), 1);
  EXPECT_EQ(Number(shards_[0]), -12);
  EXPECT_EQ(Number(shards_[0]), 12);
  EXPECT_THAT(Run({shards_[1]}).status(), IsError(kInvalidArgument, "ivision by zero"));
  EXPECT_THAT(All(1), ElementsAre(IsEmpty(), ElementsAre(6)));
}

TEST_F(MultiDeviceIteratorTest, OnlyTheLastWalkGivesElements) {
  const Output begin = Begin(Range(4));
  Open();
  EXPECT_THAT(Run({shards_[0]}).status(), IsError(kFailedPrecondition, "has no dataset"));
  EXPECT_EQ(Number(begin), 1);
  EXPECT_EQ(Number(shards_[0]), 0);
  EXPECT_EQ(Number(begin), 2);
  EXPECT_THAT(Run({shards_[0]}).status(),
              IsError(kInvalidArgument, "Invalid incarnation id. Provided: 1; Expected: 2"));
  EXPECT_THAT(All(2), ElementsAre(ElementsAre(0, 3), ElementsAre(1), ElementsAre(2)));
}

TEST_F(MultiDeviceIteratorTest, AStepThatWaitsIsCancelledByTheNextWalk) {
  const Output begin_waiting = Begin(Map("number", 9));
  const Output begin = Begin(Range(3));
  Node* const put = Put("numbers", 7);
  Open();
  EXPECT_EQ(Number(begin_waiting), 1);
  Status status;
  std::thread step([&] { status = Run({shards_[1]}).status(); });
  // The dataset is asked for its first element once the step waits.
  EXPECT_OK(session_->Run({}, {}, {put}).status());
  EXPECT_EQ(Number(shards_[0]), 7);
  EXPECT_EQ(Number(begin), 2);
  step.join();
  if (status.code() == kInvalidArgument) {  // it came later
    EXPECT_THAT(status, IsError(kInvalidArgument, "Invalid incarnation id"));
  } else {
    EXPECT_THAT(status, IsError(kCancelled, "begins another walk"));
  }
  EXPECT_THAT(All(2), ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(2)));
}

TEST_F(MultiDeviceIteratorTest, AStepThatIsCancelledLeavesItsElementToTheNext) {
  const Output begin = Begin(Map("number", 9));
  Node* const put = Put("numbers", 7);
  Open();
  EXPECT_EQ(Number(begin), 1);
  EXPECT_THAT(Run({shards_[0]}, 1, 30).status(), IsError(kDeadlineExceeded, "30 ms"));
  EXPECT_OK(session_->Run({}, {}, {put}).status());
  EXPECT_EQ(Number(shards_[0]), 7);
}

TEST_F(MultiDeviceIteratorTest, ASessionEndsWhileStepsWait) {
  const Output begin = Begin(Map("number", 9));
  Open();
  EXPECT_EQ(Number(begin), 1);
  EXPECT_THAT(Run({shards_[0]}, 1, 30).status(), IsError(kDeadlineExceeded, "30 ms"));
  Status status;
  std::thread step([&] { status = Run(shards_).status(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_OK(session_->Close());
  step.join();
  EXPECT_FALSE(status.ok());
}

TEST_F(MultiDeviceIteratorTest, MistakesAreErrors) {
  const Output begin = Begin(Range(3));
  const Output negative = Begin(Range(3), -1);
  const Output other = Begin(TensorSliceDataset({Const(Tensor::Vector<float>({1, 2}))}, kScalars));
  const Output before = Shard(-1), beyond = Shard(3);
  const auto shared = [&](int count) {
    return MultiDeviceIterator(std::vector<std::string>(count, "CPU"), "shared", "", kNumbers,
                               kScalars);
  };
  const Output two = MultiDeviceIteratorInit(Range(3), shared(2), int64_t{1});
  const Output four = MultiDeviceIteratorInit(Range(3), shared(4), int64_t{1});
  const Output queue = MultiDeviceIteratorInit(Range(3), Queue("numbers"), int64_t{1});
  const Output wrong =
      MultiDeviceIteratorGetNextFromShard(handle_, 0, incarnation_, {DType::kFloat}, kScalars)[0];
  const auto of_text = [](const Output& text, const DTypeVector& types) {
    return MultiDeviceIteratorFromStringHandle(text,
                                               {.output_types = types, .output_shapes = kScalars});
  };
  const Output garbage = of_text(Const("\xff"), kNumbers), empty = of_text(Const(""), kNumbers);
  const Output iterator =
      of_text(IteratorToStringHandle(IteratorV2("", "", kNumbers, kScalars)), kNumbers);
  const Output floats = of_text(MultiDeviceIteratorToStringHandle(handle_), {DType::kFloat});
  Open();
  for (const auto& [text, code, message] :
       {std::tuple(garbage, kInvalidArgument, "Could not parse string_handle"),
        std::tuple(empty, kInvalidArgument, "from handle defined on device \"\""),
        std::tuple(iterator, kNotFound, "does not exist"),
        std::tuple(floats, kInvalidArgument, "expected (float) but got (int64)")}) {
    EXPECT_THAT(session_->Run({}, {text}).status(), IsError(code, message));
  }
  EXPECT_THAT(Run({negative}).status(),
              IsError(kInvalidArgument, "max_buffer_size must not be negative, found -1"));
  EXPECT_THAT(Run({other}).status(), IsError(kInvalidArgument, "expected (int64) but got (float)"));
  EXPECT_THAT(Run({queue}).status(), IsError(kNotFound, "numbers"));
  EXPECT_EQ(Number(two), 1);
  EXPECT_THAT(Run({four}).status(), IsError(kInvalidArgument, "is for 2 devices, wanted 4"));
  EXPECT_EQ(Number(begin), 1);
  EXPECT_THAT(Run({before}).status(), IsError(kInvalidArgument, "shard_num = -1 is not in [0, 3)"));
  EXPECT_THAT(Run({beyond}).status(), IsError(kInvalidArgument, "shard_num = 3 is not in [0, 3)"));
  EXPECT_THAT(Run({wrong}).status(), IsError(kInvalidArgument, "multi-device iterator"));
  EXPECT_EQ(Number(shards_[0]), 0);
}

TEST_F(MultiDeviceIteratorTest, AnonymousOnesEndWhenTheyAreDeleted) {
  const auto made = AnonymousMultiDeviceIterator({"CPU"}, kNumbers, kScalars);
  const Output last = AnonymousMultiDeviceIteratorV3({"CPU"}, kNumbers, kScalars);
  const auto first = [&](const Output& handle) {
    const Output begin = MultiDeviceIteratorInit(Range(3), handle, int64_t{1});
    return MultiDeviceIteratorGetNextFromShard(handle, 0, begin, kNumbers, kScalars)[0];
  };
  const Output number = first(made.handle), other = first(last);
  const Output text = MultiDeviceIteratorToStringHandle(made.handle);
  const Output no_text = MultiDeviceIteratorToStringHandle(last);
  const Output found = first(MultiDeviceIteratorFromStringHandle(text));
  Node* end = nullptr;
  {
    const ControlDependencies after({number.node});
    end = DeleteMultiDeviceIterator(made.handle, {}, made.deleter);
  }
  Node* again = nullptr;
  {
    const ControlDependencies after({end});
    again = DeleteMultiDeviceIterator(made.handle, {}, made.deleter);
  }
  Node* const nothing = DeleteMultiDeviceIterator(last, {last}, made.deleter);
  Open();
  EXPECT_EQ(Number(number), 0);
  EXPECT_EQ(Number(found), 0);
  EXPECT_EQ(Number(other), 0);
  EXPECT_OK(session_->Run({}, {}, {end, nothing}).status());
  EXPECT_THAT(session_->Run({}, {}, {again}).status(), IsError(kNotFound, "does not exist"));
  EXPECT_THAT(session_->Run({}, {no_text}).status(), IsError(kInvalidArgument, "its last handle"));
}

/// TensorFlow's distribution strategies take elements so.
TEST_F(MultiDeviceIteratorTest, ADeviceTakesItsShardByCallsToWhereTheIteratorIs) {
  {
    const DeviceScope there("/device:CPU:1");
    handle_ = MultiDeviceIterator({"0", "1"}, "", "", kNumbers, kScalars);
  }
  const Output begin = Begin(Range(5));
  const Output text = MultiDeviceIteratorToStringHandle(handle_);
  std::vector<Output> nexts;
  std::vector<std::string> begins;
  for (const std::string target : {"/device:CPU:1", "/cpu:1"}) {
    const Output shard = Const(static_cast<int32_t>(nexts.size()));
    const Output dataset = GeneratorDataset(
        {text}, {Const(target), shard, begin}, {}, FunctionName{"text", {}},
        FunctionName{"take_there", {}}, FunctionName{"text", {}}, kNumbers, kScalars);
    const Output iterator = IteratorV2("", "", kNumbers, kScalars);
    const Output ahead = PrefetchDataset(dataset, int64_t{1}, kNumbers, kScalars);
    begins.push_back(MakeIterator(ahead, iterator)->name());
    nexts.push_back(IteratorGetNext(iterator, kNumbers, kScalars)[0]);
  }
  Open(2);
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK(session_->Run({}, {}, begins).status());
    for (const auto& [first, second] : {std::pair(0, 1), std::pair(2, 3)}) {
      const auto numbers = Run(nexts);
      ASSERT_OK(numbers.status());
      EXPECT_THAT(*numbers, ElementsAre(first, second));
    }
    EXPECT_EQ(Number(nexts[0]), 4);
    for (const Output& next : nexts) {
      EXPECT_THAT(Run({next}).status(), IsError(kOutOfRange, "End of sequence"));
    }
  }
}

class GeneratorDatasetTest : public MultiDeviceIteratorTest {
 protected:
  /// A walk whose state is 100.
  void Generate(const std::string& next, const std::vector<DType>& types = kNumbers) {
    const auto number = [](int64_t n) { return Const(Tensor::Scalar(n)); };
    const Output dataset =
        GeneratorDataset({number(100)}, {number(1000)}, {}, FunctionName{"same", {}},
                         FunctionName{next, {}}, FunctionName{"finish", {}}, types, kScalars);
    const Output iterator = IteratorV2("", "", types, kScalars);
    begin_ = MakeIterator(dataset, iterator);
    next_ = IteratorGetNext(iterator, types, kScalars)[0];
    ended_ = QueueDequeueV2(Queue("ended"), kNumbers)[0];
    num_ended_ = QueueSizeV2(Queue("ended"));
  }
  int32_t NumEnded() {
    const auto values = session_->Run({}, {num_ended_});
    EXPECT_OK(values.status());
    return values.ok() ? (*values)[0].scalar<int32_t>() : -1;
  }

  Node* begin_ = nullptr;
  Output next_, ended_, num_ended_;
};

TEST_F(GeneratorDatasetTest, FunctionsMakeItsElementsUntilTheEnd) {
  Generate("next");
  Node* const put = Put("numbers", 7);
  Node* const close = QueueCloseV2(Queue("numbers"));
  Open();
  ASSERT_OK(session_->Run({}, {}, {begin_}).status());
  for (int i = 0; i < 2; ++i) {
    EXPECT_OK(session_->Run({}, {}, {put}).status());
    EXPECT_EQ(Number(next_), 1107);
  }
  EXPECT_EQ(NumEnded(), 0);
  EXPECT_OK(session_->Run({}, {}, {close}).status());
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(Run({next_}).status(), IsError(kOutOfRange, "End of sequence"));
    EXPECT_EQ(NumEnded(), 1);
  }
  EXPECT_EQ(Number(ended_), 100);
  // What has ended already does not end again.
  ASSERT_OK(session_->Run({}, {}, {begin_}).status());
  EXPECT_THAT(Run({next_}).status(), IsError(kOutOfRange, "End of sequence"));
  EXPECT_EQ(Number(ended_), 100);
  EXPECT_EQ(NumEnded(), 0);
}

TEST_F(GeneratorDatasetTest, AWalkThatIsGivenUpIsFinalized) {
  Generate("next");
  Node* const put = Put("numbers", 7);
  Open();
  ASSERT_OK(session_->Run({}, {}, {begin_}).status());
  EXPECT_OK(session_->Run({}, {}, {put}).status());
  EXPECT_EQ(Number(next_), 1107);
  EXPECT_THAT(Run({next_}, 1, 30).status(), IsError(kDeadlineExceeded, "30 ms"));
  // In the middle of a call of next_func.
  ASSERT_OK(session_->Run({}, {}, {begin_}).status());
  EXPECT_EQ(Number(ended_), 100);
  EXPECT_OK(session_->Run({}, {}, {put}).status());
  EXPECT_EQ(Number(next_), 1107);
  EXPECT_OK(session_->Close());
}

TEST_F(GeneratorDatasetTest, FunctionsThatDoNotFitAreErrors) {
  const auto refuse = [&](const std::string& next, const std::vector<DType>& types,
                          std::string_view text) {
    Generate(next, types);
    Open();
    Status status = session_->Run({}, {}, {begin_}).status();
    if (status.ok()) status = session_->Run({}, {next_}).status();
    EXPECT_THAT(status, IsError(kInvalidArgument, text));
  };
  refuse("nothing", kNumbers, "has no function 'nothing'");
  refuse("next", {DType::kFloat}, "next_func 'next' gives int64, wanted float");
  refuse("same", kNumbers, "function 'same' takes (int64), found (int64, int64)");
}

}  // namespace
}  // namespace tenon::testing
