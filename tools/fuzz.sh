#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the fuzzing programs and runs them, two at a time, for so many minutes in total.
#
#   tools/fuzz.sh 10             all targets, those of tests/fuzz/*_fuzz.cc
#   tools/fuzz.sh 60 op graph    these
#   tools/fuzz.sh --each 5       each for so many seconds
#
# Prints a line a target: executions, a second, coverage (edges/features) at nine tenths of the time
# and at the end, how much it grew in the last tenth, peak memory, and how it ended. Ends with 1 when
# a target found something: the input is kept, and how to run it again is printed. What a run learns
# stays in build/fuzz/corpus/<target>, where the next one goes on.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=0
if [[ ${1-} == --each ]]; then
  seconds=${2-}
  shift
fi
[[ ${1-} =~ ^[0-9]+$ ]] || { echo "usage: tools/fuzz.sh (MINUTES|--each SECONDS) [TARGET...]" >&2; exit 2; }
minutes=$1
shift
targets=("$@")
if (( ${#targets[@]} == 0 )); then
  for file in tests/fuzz/*_fuzz.cc; do targets+=("$(basename "$file" _fuzz.cc)"); done
fi
for target in "${targets[@]}"; do
  [[ -f tests/fuzz/${target}_fuzz.cc ]] || { echo "no tests/fuzz/${target}_fuzz.cc" >&2; exit 2; }
done

build=build/fuzz
mkdir -p "$build"
if ! { cmake --preset fuzz && cmake --build --preset fuzz --target "${targets[@]/#/fuzz_}"; } \
    >"$build/build.log" 2>&1; then
  tail -n 100 "$build/build.log" >&2
  exit 1
fi

# Two at a time: each target gets this many seconds of its slot.
rounds=$(( (${#targets[@]} + 1) / 2 ))
if (( seconds == 0 )); then seconds=$(( minutes * 60 / rounds )); fi
export UBSAN_OPTIONS=print_stacktrace=1
export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1:quarantine_size_mb=64

# fuzz TARGET: runs it; its log is $build/TARGET.log.
fuzz() {
  local target=$1 program=$build/fuzz_$1 corpus=$build/corpus/$1 found=$build/found/$1
  local seeds=$build/seeds/$1
  mkdir -p "$corpus" "$found" "$seeds"
  "$program" "--seeds=$seeds" 2>/dev/null
  local folders=("$corpus" "$seeds")
  for kept in "tests/fuzz/inputs/$target" "tests/fuzz/seeds/$target"; do
    if [[ -d $kept ]]; then folders+=("$kept"); fi
  done
  # -max_total_time ends well; the limit outside it is for a program that does not end.
  timeout -k 10 $((seconds + 120)) "$program" "${folders[@]}" -max_total_time="$seconds" \
    -timeout=10 -rss_limit_mb=2048 -malloc_limit_mb=1024 -detect_leaks=1 -print_final_stats=1 \
    -artifact_prefix="$found/" 2>&1 |
    awk -v start="$(date +%s)" '/cov: [0-9]+ ft: / { print systime() - start, $0; fflush(); next }
                                { print; fflush() }' >"$build/$target.log" || true
}

# stat TARGET NAME: a number of libFuzzer's final statistics.
stat() { awk -v name="stat::$2:" '$1 == name { print $2 }' "$build/$1.log"; }

# report TARGET: its line; fails when it found something.
report() {
  local target=$1 log=$build/$1.log result=ok
  if grep -qE '^(==[0-9]+==|SUMMARY:)' "$log" || ! grep -q '^stat::peak_rss_mb' "$log"; then
    result=FAILED
  fi
  # The progress lines are "SECONDS #EXECUTIONS ... cov: EDGES ft: FEATURES ...".
  awk -v target="$target" -v seconds="$seconds" -v result="$result" \
      -v runs="$(stat "$target" number_of_executed_units)" \
      -v rate="$(stat "$target" average_exec_per_sec)" -v rss="$(stat "$target" peak_rss_mb)" '
    /^[0-9]+ #[0-9]+.*cov: [0-9]+ ft: / {
      for (i = 1; i < NF; ++i) { if ($i == "cov:") cov = $(i + 1); if ($i == "ft:") ft = $(i + 1) }
      if ($1 <= seconds * 0.9 || !early) { early_cov = cov; early_ft = ft; early = 1 }
    }
    END {
      printf "%-12s %9d runs %6d/s  coverage %d/%d at 90%%, %d/%d at the end, ", target, runs, rate,
             early_cov, early_ft, cov, ft
      printf "grew %.2f%%/%.2f%%  %d MiB  %s\n", early_cov ? 100 * (cov / early_cov - 1) : 0,
             early_ft ? 100 * (ft / early_ft - 1) : 0, rss, result
    }' "$log"
  [[ $result == ok ]] && return 0
  grep -E '^(==[0-9]+==ERROR|SUMMARY:|.*runtime error:|.*check failed|ALARM)' "$log" | head -n 5 >&2 || true
  local input
  input=$(sed -n 's/^.*Test unit written to //p' "$log" | tail -n 1)
  if [[ -n $input ]]; then
    echo "$target: run it again with: $build/fuzz_$target $input   (log: $log)" >&2
    echo "$target: keep it as a test: cp $input tests/fuzz/inputs/$target/" >&2
  else
    echo "$target: see $log" >&2
  fi
  return 1
}

status=0
for (( i = 0; i < ${#targets[@]}; i += 2 )); do
  pair=("${targets[@]:i:2}")
  for target in "${pair[@]}"; do fuzz "$target" & done
  wait
  for target in "${pair[@]}"; do report "$target" || status=1; done
done
exit $status
