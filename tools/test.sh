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
# Quiet while things go well: one line a stage and ctest's closing summary.
set -euo pipefail
cd "$(dirname "$0")/.."

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

# test_preset PRESET LABELS: configures, builds and tests one build tree.
test_preset() {
  local preset=$1 labels=$2 log
  mkdir -p "build/$preset"
  log=build/$preset/test.log
  quietly "$log" cmake --preset "$preset" || { echo "$preset: configuring failed" >&2; return 1; }
  quietly "$log" cmake --build --preset "$preset" || { echo "$preset: build failed" >&2; return 1; }
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
if [[ $label == . || $label == interop ]]; then
  tools/install_tensorflow.sh || echo "without TensorFlow the interop tests are skipped" >&2
fi
test_preset release "$label"
if $sanitizers; then
  # As in TenonTests.cmake, whose environment does not reach the discovered C++ tests.
  export UBSAN_OPTIONS=print_stacktrace=1 OMP_TOOL_LIBRARIES=/usr/lib/llvm-19/lib/libarcher.so
  export TSAN_OPTIONS="suppressions=$PWD/cmake/tsan.supp history_size=7 ignore_noninstrumented_modules=1"
  test_preset asan-ubsan '^(fast|dist)$'
  test_preset tsan '^(fast|dist)$'
fi
if (( fuzz_seconds > 0 )); then
  quietly build/fuzz.log tools/fuzz.sh --each "$fuzz_seconds" || { echo "fuzz: found something" >&2; exit 1; }
  echo "fuzz: $(grep -c ' runs ' build/fuzz.log) targets found nothing in $fuzz_seconds s each"
fi
