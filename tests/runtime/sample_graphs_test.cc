// SPDX-License-Identifier: Apache-2.0
//
// Graphs that TensorFlow built give what TensorFlow computed; see tests/data/graphs.
#include <gtest/gtest.h>

#include <cmath>

#include "core/proto/proto_io_graph.h"
#include "data/arrays/npy.h"
#include "data/checkpoint/meta_graph_file.h"
#include "ops/register.h"
#include "proto/summary.pb.h"
#include "runtime/session/local_session.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

constexpr double kRelative = 1e-4, kAbsolute = 1e-6;

/// Tensors of any real dtype, element by element.
void ExpectNear(const Tensor& found, const Tensor& wanted, const std::string& what) {
  ASSERT_EQ(found.dtype(), wanted.dtype()) << what;
  ASSERT_EQ(found.shape().ToString(), wanted.shape().ToString()) << what;
  Dispatch(found.dtype(), RealTypes(), [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < found.num_elements(); ++i) {
      const double a = found.data<T>()[i], b = wanted.data<T>()[i];
      ASSERT_LE(std::abs(a - b), kAbsolute + kRelative * std::abs(b)) << what << "[" << i << "]";
    }
  });
}

struct Sample {
  explicit Sample(const std::string& name, const LocalSessionOptions& options = {})
      : values(*NpzReader::Open(StrCat("tests/data/graphs/", name, ".npz"))) {
    const auto proto = LoadGraphDef(StrCat("tests/data/graphs/", name, ".pb"));
    EXPECT_OK(proto);
    const auto graph = GraphFromProto(*proto, AllOps());
    EXPECT_OK(graph);
    auto opened = MakeLocalSession(*graph, options);
    EXPECT_OK(opened);
    session = *std::move(opened);
  }
  Tensor Value(const std::string& key) const { return *values.Read(key); }

  NpzReader values;
  std::unique_ptr<Session> session;
};

class MnistSampleTest : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Variables, MnistSampleTest,
                         ::testing::Values("mnist_ref", "mnist_resource"),
                         [](const auto& info) { return info.param; });

TEST_P(MnistSampleTest, TenStepsHaveTensorFlowsLosses) {
  const Sample sample(GetParam());
  Session& session = *sample.session;
  ASSERT_OK(session.Run({}, {}, {"init"}));
  const Tensor x = sample.Value("x"), labels = sample.Value("y_");
  const auto logits = session.Run({{"x:0", x}}, {"logits:0"});
  ASSERT_OK(logits);
  ExpectNear((*logits)[0], sample.Value("logits_before"), "logits");
  const Tensor losses = sample.Value("loss");
  for (int i = 0; i < 10; ++i) {
    const auto loss = session.Run({{"x:0", x}, {"y_:0", labels}}, {"loss:0"}, {"train"});
    ASSERT_OK(loss);
    EXPECT_NEAR((*loss)[0].scalar<float>() / losses.data<float>()[i], 1, kRelative) << i;
  }
  const auto after = session.Run({{"x:0", x}, {"y_:0", labels}}, {"loss:0"});
  ASSERT_OK(after);
  ExpectNear((*after)[0], sample.Value("loss_after"), "loss_after");
  const std::string suffix = GetParam() == "mnist_ref" ? ":0" : "/Read/ReadVariableOp:0";
  for (const std::string name : {"b1", "b2", "W2", "global_step"}) {
    const auto value = session.Run({}, {name + suffix});
    ASSERT_OK(value);
    ExpectNear((*value)[0], sample.Value(name), name);
  }
}

TEST(SampleGraphsTest, CondTakesTheRightBranchAndHasItsGradient) {
  const Sample sample("cond_v1");
  for (int i = 0; i < 3; ++i) {
    const auto found = sample.session->Run(
        {{"p:0", sample.Value(StrCat("p", i))}, {"x:0", sample.Value(StrCat("x", i))}},
        {"result:0", "grad:0"});
    ASSERT_OK(found);
    ExpectNear((*found)[0], sample.Value(StrCat("result", i)), StrCat("result", i));
    ExpectNear((*found)[1], sample.Value(StrCat("grad", i)), StrCat("grad", i));
  }
}

TEST(SampleGraphsTest, WhileLoopsHaveTheirGradients) {
  for (const int threads : {1, 4}) {
    LocalSessionOptions options;
    options.threads = threads;
    const Sample sample("while_v1", options);
    const std::vector<std::string> outputs = {"count", "result", "grad_x", "grad_w", "squares"};
    for (int k = 0; k < 3; ++k) {
      std::vector<std::string> fetches;
      for (const std::string& o : outputs) fetches.push_back(o + ":0");
      const auto found = sample.session->Run(
          {{"x:0", sample.Value(StrCat("x", k))}, {"n:0", sample.Value(StrCat("n", k))}}, fetches);
      ASSERT_OK(found);
      for (size_t i = 0; i < outputs.size(); ++i) {
        ExpectNear((*found)[i], sample.Value(StrCat(outputs[i], k)), StrCat(outputs[i], k));
      }
    }
  }
}

TEST(SampleGraphsTest, SummariesAreTensorFlows) {
  const Sample sample("summary");
  const auto found = sample.session->Run({{"v:0", sample.Value("v")}}, {"merged:0"});
  ASSERT_OK(found);
  const Tensor golden = sample.Value("merged");
  Summary ours, theirs;
  ASSERT_TRUE(ours.ParseFromString(std::string((*found)[0].scalar<TString>())));
  ASSERT_TRUE(theirs.ParseFromArray(golden.raw_data(), static_cast<int>(golden.num_elements())));
  ASSERT_EQ(ours.value_size(), theirs.value_size());
  for (int i = 0; i < ours.value_size(); ++i) {
    EXPECT_EQ(ours.value(i).tag(), theirs.value(i).tag());
    EXPECT_NEAR(ours.value(i).simple_value(), theirs.value(i).simple_value(), 1e-3);
    const HistogramProto& a = ours.value(i).histo();
    const HistogramProto& b = theirs.value(i).histo();
    EXPECT_EQ(a.num(), b.num());
    ASSERT_EQ(a.bucket_size(), b.bucket_size());
    for (int k = 0; k < a.bucket_size(); ++k) {
      EXPECT_EQ(a.bucket(k), b.bucket(k));
      EXPECT_DOUBLE_EQ(a.bucket_limit(k), b.bucket_limit(k));
    }
  }
}

}  // namespace
}  // namespace tenon
