#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds and runs all tests, from nothing: installs the packages, configures, builds, runs ctest.
#
#   tools/test.sh                 everything, in the release build
#   tools/test.sh --sanitizers    also those labelled fast or dist under ASan + UBSan and under TSan
#   tools/test.sh --label fast    only the tests with this label
#   tools/test.sh --fuzz SECONDS  also every fuzzing target for so long (tools/fuzz.sh)
#
# The plugin for GPUs is built for one kind of GPU, unless TENON_CUDA_ARCHITECTURES names others.
# Quiet while things go well: one line a stage and ctest's closing summary.
set -euo pipefail
cd "$(dirname "$0")/.."

configure=(-D "TENON_CUDA_ARCHITECTURES=${TENON_CUDA_ARCHITECTURES:-90-real}")
sanitizers=false
label=.
fuzz_seconds=0
while (( $# )); do
  case $1 in
    --sanitizers) sanitizers=true ;;
    --label) label=${2:?--label needs a value}; shift ;;
    --fuzz) fuzz_seconds=${2:?--fuzz needs a number of seconds}; shift ;;
    *) echo "usage: tools/test.sh [--sanitizers] [--label LABEL] [--fuzz SECONDS]" >&2; exit 2 ;;
  esac
  shift
done

# Runs a command with its output in a file, which is shown only when the command fails.
quietly() {
  local log=$1
  shift
  if ! "$@" >"$log" 2>&1; then
    tail -n 200 "$log" >&2
    return 1
  fi
}

# build PRESET [TARGET]: configures and builds one build tree. Its programs give way to tests that run meanwhile.
build() {
  local preset=$1 log=build/$1/build.log
  mkdir -p "build/$preset"
  quietly "$log" cmake --preset "$preset" "${configure[@]}" ||
    { echo "$preset: configuring failed" >&2; return 1; }
  quietly "$log" nice -n 10 cmake --build --preset "$preset" ${2:+--target "$2"} ||
    { echo "$preset: build failed" >&2; return 1; }
}

# in_background COMMAND...: begins what `ready` waits for.
background=
in_background() { "$@" & background=$!; }
ready() {
  local status=0
  wait "$background" || status=$?
  background=
  return "$status"
}
trap '[[ -z $background ]] || kill -- -"$background" 2>/dev/null || true' EXIT

# run_tests PRESET LABELS: the tests of a build tree.
run_tests() {
  local preset=$1 labels=$2 log=build/$1/test.log
  # One more at a time than cores: some tests mostly wait.
  if ! ctest --preset "$preset" -L "$labels" -j $(($(nproc) + 1)) --no-tests=error >"$log" 2>&1; then
    # What ctest says of a failed test stands between its own progress lines, which are left out.
    grep -vE '^ *(Start +[0-9]+:|[0-9]+/[0-9]+ Test +#[0-9]+: .* Passed )' "$log" >&2
    echo "$preset: tests failed" >&2
    return 1
  fi
  grep -A 20 '^The following tests did not run' "$log" || true
  echo "$preset: $(grep -E '^[0-9]+% tests passed' "$log")"
}

tools/install_deps.sh
tools/check_layers.py
tools/check_sizes.py
tools/check_links.py
tools/check_format.sh
if [[ $label == . || $label == interop ]]; then
  tools/install_tensorflow.sh || echo "without TensorFlow the interop tests are skipped" >&2
  tools/install_s3_servers.sh || echo "without servers of S3's protocol their tests are skipped" >&2
  tools/install_hdfs_server.sh || echo "without a server of HDFS its tests are skipped" >&2
fi
if [[ $label == . || $label == slow ]]; then
  tools/install_kubernetes.sh || echo "without its schemas the test of manifests is skipped" >&2
fi
# Each tree is built while the tests of the one before run, many of which wait. What runs in the background has a
# process group of its own, by which it is ended.
set -m
build release
tools/check_tidy.py
if $sanitizers; then in_background build asan-ubsan; fi
run_tests release "$label"
if $sanitizers; then
  # As in TenonTests.cmake, whose environment does not reach the discovered C++ tests.
  export UBSAN_OPTIONS=print_stacktrace=1 OMP_TOOL_LIBRARIES=/usr/lib/llvm-19/lib/libarcher.so
  export TSAN_OPTIONS="suppressions=$PWD/cmake/tsan.supp history_size=7 ignore_noninstrumented_modules=1"
  ready
  in_background build tsan
  run_tests asan-ubsan '^(fast|dist)$'
  ready
  if (( fuzz_seconds > 0 )); then in_background build asan-ubsan fuzz_programs; fi
  run_tests tsan '^(fast|dist)$'
fi
if (( fuzz_seconds > 0 )); then
  if [[ -n $background ]]; then ready; fi
  quietly build/fuzz.log tools/fuzz.sh --each "$fuzz_seconds" || { echo "fuzz: found something" >&2; exit 1; }
  echo "fuzz: $(grep -c ' runs ' build/fuzz.log) targets found nothing in $fuzz_seconds s each"
fi
