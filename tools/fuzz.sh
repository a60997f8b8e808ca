#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the fuzzing programs and runs them, one a processor, for so many minutes each.
#
#   tools/fuzz.sh 15             all targets, those of tests/fuzz/*_fuzz.cc
#   tools/fuzz.sh 60 op graph    these
#   tools/fuzz.sh --each 5       for so many seconds each
#
# Time is what a target has computed, with all its threads, since it has read what is there already;
# one that mostly waits ends after three times as long by the clock.
# Prints a line a target: executions, coverage (edges/features) at nine tenths of the time and at the
# end, how much it grew in the last tenth, peak memory, and how it ended. Ends with 1 when a target
# found something: the input is kept, and how to run it again is printed. What a run learns stays in
# build/fuzz/corpus/<target>, where the next one goes on.
set -euo pipefail
cd "$(dirname "$0")/.."

unit=60
if [[ ${1-} == --each ]]; then
  unit=1
  shift
fi
[[ ${1-} =~ ^[0-9]+$ ]] || { echo "usage: tools/fuzz.sh MINUTES|--each SECONDS [TARGET...]" >&2; exit 2; }
seconds=$(( $1 * unit ))
shift
targets=("$@")
if (( ${#targets[@]} == 0 )); then
  for file in tests/fuzz/*_fuzz.cc; do targets+=("$(basename "$file" _fuzz.cc)"); done
fi
for target in "${targets[@]}"; do
  [[ -f tests/fuzz/${target}_fuzz.cc ]] || { echo "no tests/fuzz/${target}_fuzz.cc" >&2; exit 2; }
done

programs=build/asan-ubsan
work=build/fuzz
mkdir -p "$work"
if ! { cmake --preset asan-ubsan && cmake --build "$programs" --target "${targets[@]/#/fuzz_}"; } \
    >"$work/build.log" 2>&1; then
  tail -n 100 "$work/build.log" >&2
  exit 1
fi

export UBSAN_OPTIONS=print_stacktrace=1
export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1:quarantine_size_mb=64

# computed PID: the hundredths of a second that the process has computed; fails when it has ended.
computed() {
  local fields
  read -ra fields <"/proc/$1/stat" && [[ ${fields[2]} != Z ]] && echo $(( fields[13] + fields[14] ))
} 2>/dev/null

# coverage LOG: "EDGES/FEATURES" of the last line that has them.
coverage() {
  sed -nE 's|^#[0-9]+.* cov: ([0-9]+) ft: ([0-9]+) .*|\1/\2|p' "$1" | tail -n 1
}

# fuzz TARGET: runs it; its log is $work/TARGET.log, and TARGET.early what it had covered at nine
# tenths of the time.
fuzz() {
  local target=$1 program=$programs/fuzz_$1 corpus=$work/corpus/$1 found=$work/found/$1
  local seeds=$work/seeds/$1 log=$work/$1.log early='' pid used before start waited
  mkdir -p "$corpus" "$found" "$seeds"
  rm -f "$work/$target.early"
  "$program" "--seeds=$seeds" >"$log" 2>&1 || return 0
  local folders=("$corpus" "$seeds")
  for kept in "tests/fuzz/inputs/$target" "tests/fuzz/seeds/$target"; do
    if [[ -d $kept ]]; then folders+=("$kept"); fi
  done
  # It is told to end, below; the limit is for when nobody can.
  "$program" "${folders[@]}" -max_total_time=$(( seconds * 4 + 3600 )) -timeout=10 -rss_limit_mb=2048 -malloc_limit_mb=1024 -detect_leaks=1 \
    -print_final_stats=1 -artifact_prefix="$found/" >"$log" 2>&1 &
  pid=$!
  while used=$(computed "$pid") && ! grep -q 'INITED' "$log"; do sleep 0.5; done
  before=$used start=$SECONDS
  while used=$(computed "$pid"); do
    used=$(( used - before )) waited=$(( (SECONDS - start) * 100 / 3 ))
    if (( waited > used )); then used=$waited; fi
    if [[ -z $early ]] && (( used >= seconds * 90 )); then
      early=$(coverage "$log")
      echo "$early" >"$work/$target.early"
    fi
    if (( used >= seconds * 100 )); then break; fi
    sleep 0.5
  done
  # It ends after the input that it is at, and a look for leaks; unless it hangs.
  kill -USR1 "$pid" 2>/dev/null || true
  for (( i = 0; i < 60; ++i )); do
    computed "$pid" >/dev/null || break
    sleep 1
  done
  if kill -9 "$pid" 2>/dev/null; then echo "ALARM: $target did not end" >>"$log"; fi
  wait "$pid" 2>/dev/null || true
}

# stat TARGET NAME: a number of libFuzzer's final statistics.
stat() { awk -v name="stat::$2:" '$1 == name { print $2 }' "$work/$1.log"; }

# report TARGET: its line; fails when it found something.
report() {
  local target=$1 log=$work/$1.log result=ok
  if grep -qE '^(==[0-9]+== *ERROR|SUMMARY:|ALARM)' "$log" || ! grep -q '^stat::peak_rss_mb' "$log"; then
    result=FAILED
  fi
  awk -v target="$target" -v result="$result" -v runs="$(stat "$target" number_of_executed_units)" \
      -v rss="$(stat "$target" peak_rss_mb)" -v early="$(cat "$work/$target.early" 2>/dev/null)" \
      -v end="$(coverage "$log")" '
    function growth(i) { return a[i] ? 100 * (b[i] / a[i] - 1) : 0 }
    BEGIN {
      split(early, a, "/"); split(end, b, "/")
      printf "%-12s %9d runs  coverage %s at 90%%, %s at the end, grew %.2f%%/%.2f%%  %d MiB  %s\n",
             target, runs, early, end, growth(1), growth(2), rss, result
    }'
  [[ $result == ok ]] && return 0
  grep -E '^(==[0-9]+==ERROR|SUMMARY:|.*runtime error:|.*check failed|ALARM)' "$log" | head -n 5 >&2 || true
  local input
  input=$(sed -n 's/^.*Test unit written to //p' "$log" | tail -n 1)
  if [[ -n $input ]]; then
    echo "$target: run it again with: $programs/fuzz_$target $input   (log: $log)" >&2
    echo "$target: keep it as a test: cp $input tests/fuzz/inputs/$target/" >&2
  else
    echo "$target: see $log" >&2
  fi
  return 1
}

status=0
running=0
for target in "${targets[@]}"; do
  if (( running == $(nproc) )); then
    wait -n || status=1
    running=$(( running - 1 ))
  fi
  { fuzz "$target"; report "$target"; } &
  running=$(( running + 1 ))
done
for (( ; running > 0; --running )); do wait -n || status=1; done
exit $status
