// SPDX-License-Identifier: Apache-2.0
// gloo::allreduce of floats by itself, for allreduce.py: allreduce_by_gloo FOLDER RANK SIZE. Rank 0
// prints BYTES MICROSECONDS, of a call in the median round of calls in a row.
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <tuple>
#include <vector>

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const int rank = std::atoi(argv[2]);
  gloo::rendezvous::FileStore store(argv[1]);
  auto device = gloo::transport::tcp::CreateDevice("127.0.0.1");
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, std::atoi(argv[3]));
  context->connectFullMesh(store, device);
  using Reduce = void (*)(void*, const void*, const void*, size_t);
  for (const auto& [count, rounds, calls] : {std::tuple<size_t, int, int>{1, 50, 100},
                                             {100000, 20, 10},
                                             {3274634, 10, 1},
                                             {25000000, 5, 1}}) {
    std::vector<float> data(count);
    std::vector<double> times;
    for (int i = -2; i < rounds; ++i) {
      gloo::BarrierOptions all(context);
      gloo::barrier(all);
      const auto begin = std::chrono::steady_clock::now();
      for (int c = 0; c < calls; ++c) {
        gloo::AllreduceOptions options(context);
        options.setOutput(data.data(), count);
        options.setReduceFunction(static_cast<Reduce>(&gloo::sum<float>));
        gloo::allreduce(options);
      }
      const std::chrono::duration<double, std::micro> took =
          std::chrono::steady_clock::now() - begin;
      if (i >= 0) times.push_back(took.count() / calls);
    }
    std::sort(times.begin(), times.end());
    if (rank == 0) std::printf("%zu %.2f\n", count * 4, times[times.size() / 2]);
  }
  return 0;
}
