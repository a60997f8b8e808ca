// SPDX-License-Identifier: Apache-2.0
#include "core/proto/proto_io_graph.h"
#include "data/checkpoint/meta_graph_file.h"
#include "proto/graph.pb.h"
#include "runtime/session/local_session.h"
#include "tools/bench.h"
#include "tools/processes.h"

namespace tenon::tools {

StatusOr<Graph> BenchGraph(const std::string& name, const OpRegistry& ops) {
  TENON_ASSIGN_OR_RETURN(const std::string path,
                         FindShared(StrCat("bench/graphs/", name, ".pbtxt")));
  TENON_ASSIGN_OR_RETURN(const GraphDef proto, LoadGraphDef(path));
  return GraphFromProto(proto, ops);
}

StatusOr<double> GraphStep(Session& session, int steps) {
  constexpr int kWarmUp = 5;
  TENON_RETURN_IF_ERROR(session.Run({}, {}, {"prepare"}).status());
  TENON_ASSIGN_OR_RETURN(const auto step, session.Prepare({}, {"measured:0"}, {}));
  std::vector<Tensor> fetched;
  const auto run = [&] { return step->Run({}, &fetched); };
  TENON_RETURN_IF_ERROR(TimeCalls(kWarmUp, run).status());
  return MedianCall(steps, run);
}

namespace {

/// A row of such a graph; its figure is the step's time times `scale`.
BenchRow Row(const OpRegistry& ops, const std::string& name, const std::string& what,
             const std::string& unit, double scale) {
  return {name, what, unit, false, [&ops, name, scale]() -> StatusOr<double> {
            TENON_ASSIGN_OR_RETURN(const Graph graph, BenchGraph(name, ops));
            TENON_ASSIGN_OR_RETURN(const auto session, MakeLocalSession(graph));
            TENON_ASSIGN_OR_RETURN(const double seconds, GraphStep(*session, 50));
            return seconds * scale;
          }};
}

}  // namespace

std::vector<BenchRow> GraphBenchRows(const OpRegistry& ops) {
  return {
      Row(ops, "convolution", "conv 3x3, 32x28x28x32 to 64, with gradients", "ms", 1e3),
      Row(ops, "max_pooling", "max pooling 2x2 of 32x28x28x32 with gradient", "ms", 1e3),
      Row(ops, "overlapping_pooling", "the same 3x3, strides of 2", "ms", 1e3),
      Row(ops, "batch_norm", "batch normalisation of 32x28x28x32 with gradients", "ms", 1e3),
      Row(ops, "embedding", "embedding 100,000x64: 4,096 rows, Adagrad", "ms", 1e3),
      Row(ops, "top_k", "the top 100 of 64 x 50,000", "ms", 1e3),
      Row(ops, "sort", "sorting 2^20 floats", "ms", 1e3),
      Row(ops, "csv", "CSV: 10,000 lines of 10 floats, a line", "us", 1e6 / 10000),
      Row(ops, "queue", "queue: one in and out, of 50 in a step", "us", 1e6 / 50),
      Row(ops, "pipeline", "tf.data: map, shuffle, batch, prefetch, an element", "us", 1e6 / 256),
  };
}

}  // namespace tenon::tools
