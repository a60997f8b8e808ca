// SPDX-License-Identifier: Apache-2.0
//
// The one target of a fuzzing program, as libFuzzer calls it. With --seeds=FOLDER the program
// writes the target's seeds there instead.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "core/base/status.h"
#include "core/base/strings.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace tenon::testing {
namespace {

FuzzTarget the_target;

void WriteSeeds(const std::string& folder) {
  const std::vector<std::string> seeds =
      the_target.seeds == nullptr ? std::vector<std::string>() : the_target.seeds();
  for (size_t i = 0; i < seeds.size(); ++i) {
    std::ofstream file(StrCat(folder, "/seed_", i), std::ios::binary);
    file << seeds[i];
    TENON_CHECK(file.good());
  }
}

}  // namespace

bool RegisterFuzzTarget(const FuzzTarget& target) {
  TENON_CHECK(the_target.run == nullptr);
  the_target = target;
  return true;
}

void MutateAsLibFuzzer(std::string* data, size_t max_size) {
  const size_t size = std::min(data->size(), max_size);
  data->resize(max_size);
  data->resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(data->data()), size, max_size));
}

}  // namespace tenon::testing

using tenon::testing::the_target;

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  constexpr char kSeeds[] = "--seeds=";
  for (int i = 1; i < *argc; ++i) {
    if (std::strncmp((*argv)[i], kSeeds, sizeof(kSeeds) - 1) != 0) continue;
    tenon::testing::WriteSeeds((*argv)[i] + sizeof(kSeeds) - 1);
    std::exit(0);
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  the_target.run({data, size});
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed) {
  if (the_target.mutate == nullptr) return LLVMFuzzerMutate(data, size, max_size);
  std::string changed(reinterpret_cast<const char*>(data), size);
  the_target.mutate(&changed, max_size, seed);
  if (changed.size() > max_size) changed.resize(max_size);
  std::copy(changed.begin(), changed.end(), data);
  return changed.size();
}
