#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Checks a host with GPUs, with nothing but these programs and the driver (docs/gpu.md, "Checking a GPU host"):
#
#   gpu_check.sh conformance   every op on the GPU beside the CPU, random graphs, small programs, wrong inputs
#   gpu_check.sh sanitizer     every kernel once under NVIDIA's compute-sanitizer, where that is
#   gpu_check.sh training      the training programs, in process and as a cluster
#   gpu_check.sh timing        what steps take, beside PyTorch where a python3 has it
#   gpu_check.sh all           all of these
#
#   --programs FOLDER   where the programs are (default: beside this script, or build/release)
#   --logs FOLDER       where what they print is kept (default: a new folder in /tmp)
#
# Each stage takes less than 8 minutes and prints a table. The exit code is 1 when something failed.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)

usage() {
  echo "usage: gpu_check.sh [--programs FOLDER] [--logs FOLDER] conformance|sanitizer|training|timing|all" >&2
  exit 2
}

programs='' logs='' stage=''
while (( $# )); do
  case $1 in
    --programs) (( $# > 1 )) || usage; programs=$2; shift ;;
    --logs) (( $# > 1 )) || usage; logs=$2; shift ;;
    conformance|sanitizer|training|timing|all) [[ -z $stage ]] || usage; stage=$1 ;;
    *) usage ;;
  esac
  shift
done
[[ -n $stage ]] || usage
if [[ -z $programs ]]; then
  programs=$here
  if [[ ! -x $here/tenon ]]; then programs=$here/../build/release; fi
fi
if [[ ! -x $programs/tenon || ! -x $programs/gpu_tests ]]; then
  echo "gpu_check.sh: $programs has no tenon or no gpu_tests; --programs names the folder that has them" >&2
  exit 2
fi
programs=$(cd "$programs" && pwd)
mnist=$programs/../share/tenon/mnist
if [[ ! -d $mnist ]]; then mnist=$here/../share/mnist; fi
if [[ -z $logs ]]; then logs=$(mktemp -d /tmp/gpu_check.XXXXXX); fi
mkdir -p "$logs" || exit 2
logs=$(cd "$logs" && pwd)

failures=0
readonly stage_seconds=460 # of the 480 that a stage may take
stage_end=0

begin_stage() {
  stage_end=$((SECONDS + stage_seconds))
  printf '\n%s\n' "$1"
}

# seconds_left AT_MOST: of this stage, at least 1.
seconds_left() {
  local left=$((stage_end - SECONDS))
  if (( left > $1 )); then left=$1; fi
  echo $((left > 1 ? left : 1))
}

# row NAME DETAILS CASES ERROR RESULT
row() {
  local details=$2
  if (( ${#details} > 36 )); then details=${details:0:33}...; fi
  printf '%-42s %-36s %6s %9s  %s\n' "$1" "$details" "$3" "$4" "$5"
  if [[ $5 == FAILED* ]]; then failures=$((failures + 1)); fi
}

# ended CODE: how a process ended, in words.
ended() {
  case $1 in
    3) echo "the GPU does not compute any more" ;;
    124|137) echo "the stage's time was up" ;;
    142) echo "it did not end in its time" ;;
    1[3-5][0-9]) echo "killed by signal $(($1 - 128)), $(kill -l "$(($1 - 128))")" ;;
    *) echo "ended with $1" ;;
  esac
}

# print_table FILE: the rows that gpu_tests wrote; sets `unfinished` to the row that has only begun. A row once
# for each name: cases of one name are one line.
print_table() {
  local file=$1 name details cases error result not_run=0
  unfinished='' lost=''
  while IFS=$'\t' read -r name details cases error result; do
    case $name in
      '> '*) unfinished=${name#> }; continue ;;
      '! '*) lost=${name#! }; continue ;;
    esac
    unfinished=''
    if [[ $result == 'not run'* ]]; then
      not_run=$((not_run + 1))
      continue
    fi
    row "$name" "$details" "$cases" "$error" "$result"
  done <"$file"
  if (( not_run > 0 )); then
    echo "$not_run ops do nothing alone, and are not run: grep 'not run' $file"
  fi
}

# run_gpu_tests LOG FILTER SECONDS: fills the table LOG.table and prints it; goes on behind an op that ends the process.
run_gpu_tests() {
  local log=$logs/$1 filter=$2 seconds=$3 after='' code
  : >"$log.log"
  for (( run = 0; run < 20; ++run )); do
    : >"$log.table"
    # In braces, so that what the shell says of a signal goes to the log too.
    {
      TENON_GPU_TABLE=$log.table TENON_GPU_AFTER=$after timeout -k 5 "$(seconds_left "$seconds")" \
        "$programs/gpu_tests" --gtest_filter="$filter"
      code=$?
    } >>"$log.log" 2>&1
    print_table "$log.table"
    if (( code <= 1 )); then
      if [[ ! -s $log.table ]]; then row "$1" "" 0 - "FAILED nothing was run: $log.log"; fi
      return
    fi
    # What is lost is behind the row that failed; otherwise the row that has begun is the cause.
    if [[ -n $unfinished ]]; then
      row "$unfinished" "" 0 - "FAILED $(ended "$code"): $log.log"
      after=$unfinished
    else
      after=$(grep -v '^[>!] ' "$log.table" | tail -n 1 | cut -f 1)
      row "behind $after" "" 0 - "FAILED $(ended "$code") $lost: $log.log"
    fi
    if (( code == 124 || code == 137 )) || [[ -z $after || $filter != *EveryOp* ]]; then return; fi
  done
}

heading() { printf '%-42s %-36s %6s %9s  %s\n' "$1" "$2" "$3" "$4" result; }

# ops_in_parts SECONDS: every op, by several processes beside each other where there are processors for them: most of
# what an op's cases take is the CPU's.
ops_in_parts() {
  local parts=$(($(nproc) / 2)) part
  parts=$((parts < 1 ? 1 : parts > 8 ? 8 : parts))
  for (( part = 0; part < parts; ++part )); do
    TENON_GPU_PARTS=$parts TENON_GPU_PART=$part \
      run_gpu_tests "ops_$part" 'GpuConformanceTest.EveryOp*' "$1" >"$logs/ops_$part.rows" &
  done
  wait
  # What each op gave in the order of their names, and the notes of the parts behind them.
  sort "$logs"/ops_*.rows
  failures=$((failures + $(cat "$logs"/ops_*.rows | grep -c '  FAILED')))
}

conformance() {
  begin_stage "conformance: on the GPU beside the CPU (the largest error is relative to the largest value)"
  heading op dtypes cases error
  run_gpu_tests wrong_inputs 'GpuWrongInputsTest.*' 60
  run_gpu_tests programs 'GpuProgramsTest.*' 60
  TENON_GPU_GRAPHS=${TENON_GPU_GRAPHS:-300} run_gpu_tests random_graphs 'GpuDifferentialTest.*' 100
  ops_in_parts 460
}

find_sanitizer() {
  type -P compute-sanitizer && return
  local folder
  for folder in "${CUDA_HOME:-}" "${CUDA_PATH:-}" /usr/local/cuda; do
    for found in "$folder/bin/compute-sanitizer" "$folder/compute-sanitizer/compute-sanitizer"; do
      if [[ -n $folder && -x $found ]]; then
        echo "$found"
        return
      fi
    done
  done
  return 1
}

sanitizer() {
  local tool check log code kernels summary
  begin_stage "sanitizer: every kernel once, under compute-sanitizer"
  heading check '' kernels ''
  if ! tool=$(find_sanitizer); then
    row "memcheck, racecheck, initcheck" "" 0 - "not run: found no compute-sanitizer on PATH or below CUDA_HOME"
    return
  fi
  for check in memcheck racecheck initcheck; do
    log=$logs/$check
    : >"$log.table"
    TENON_GPU_TABLE=$log.table TENON_GPU_CASE_SECONDS=140 timeout -k 5 "$(seconds_left 150)" \
      "$tool" --tool "$check" --error-exitcode 42 "$programs/gpu_tests" \
      --gtest_filter='GpuConformanceTest.EveryKernelRunsOnce' >"$log.log" 2>&1
    code=$?
    kernels=$(grep -vc '^[>!] ' "$log.table")
    summary=$(grep -E 'SUMMARY: ' "$log.log" | tail -n 1 | sed 's/^=* *//')
    if grep -qE 'before first instrumented API call|Unable to|not supported|No attachable' "$log.log" ||
        { [[ -z $summary ]] && (( kernels == 0 )); }; then
      row "$check" "" "$kernels" - "not run: $(grep -m 1 -E 'before first|Unable|not supported|rror' "$log.log")"
    elif (( code == 124 || code == 137 )); then
      row "$check" "" "$kernels" - \
        "not all: time was up; TENON_GPU_AFTER=$(grep -v '^[>!] ' "$log.table" | tail -n 1 | cut -f 1) goes on there"
      if grep -qE '^=+ (Invalid|Uninitialized|Error: .*(hazard|race))' "$log.log"; then
        row "$check" "" "$kernels" - "FAILED $(grep -m 1 -E '^=+ (Invalid|Uninit|Error)' "$log.log"): $log.log"
      fi
    elif (( code == 0 )); then
      row "$check" "" "$kernels" - "ok ($summary)"
    else
      row "$check" "" "$kernels" - "FAILED $(ended "$code"), $summary: $log.log"
    fi
  done
}

# train NAME PATTERN LEAST PROGRAM...: runs it, and wants a number behind PATTERN that is at least LEAST.
train() {
  local name=$1 pattern=$2 least=$3 log=$logs/${1//[^a-z0-9]/_}.log begin=$SECONDS code found
  shift 3
  timeout -k 5 "$(seconds_left 200)" "$@" >"$log" 2>&1
  code=$?
  found=$(sed -nE "s/.*$pattern: ([0-9.]+).*/\1/p" "$log" | tail -n 1)
  if (( code != 0 )); then
    row "$name" "" $((SECONDS - begin)) - "FAILED $(ended "$code"), $(tail -n 1 "$log"): $log"
  elif ! awk -v a="${found:-0}" -v b="$least" 'BEGIN { exit !(a >= b) }'; then
    row "$name" "" $((SECONDS - begin)) - "FAILED found ${found:-no figure}, wanted $least or more: $log"
  else
    row "$name" "accuracy $found, wanted $least" $((SECONDS - begin)) - ok
  fi
}

training() {
  local trace=$logs/mnist_replica_trace.json
  begin_stage "training: what converges on the CPU converges on the GPU"
  heading program '' seconds ''
  train "tenon train mnist" 'test accuracy' 0.8 "$programs/tenon" train mnist --model classic --epochs 1 --learning_rate 0.5
  train "1 ps (CPU), 1 worker (GPU)" 'test accuracy' 0.8 "$programs/tenon" launch --ps 1 --workers 1 -- \
    "$programs/tenon" train mnist --model classic --epochs 1 --learning_rate 0.5
  train "example_mnist_replica, 1 ps, 1 worker" 'Test-Accuracy' 0.8 "$programs/tenon" launch --ps 1 --workers 1 -- \
    "$programs/example_mnist_replica" --data "$mnist" --training_epochs 1 --learning_rate 0.5 --trace "$trace"
  # What a step ran where, so that no worker trains on its CPU unseen.
  if grep -q 'worker[^"]*GPU:0' "$trace" 2>/dev/null; then
    row "its steps are on the worker's GPU" "" - - ok
  else
    row "its steps are on the worker's GPU" "" - - "FAILED the trace has no node on it: $trace"
  fi
  run_gpu_tests trained_networks 'GpuProgramsTest.*Trains' 60
}

timing() {
  local log=$logs/timing code python
  begin_stage "timing: medians, on the first GPU"
  timeout -k 5 "$(seconds_left 300)" "$programs/tenon" bench --device gpu --runs "${TENON_GPU_RUNS:-3}" \
    --output "$log.json" 2>&1 | tee "$log.log"
  code=${PIPESTATUS[0]}
  if (( code != 0 )); then
    row "tenon bench --device gpu" "" 0 - "FAILED $(ended "$code"), $(tail -n 1 "$log.log"): $log.log"
    return
  fi
  if ! python=$(type -P python3); then
    row "beside PyTorch" "" 0 - "not run: there is no python3"
  elif ! "$python" -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' >"$log.torch" 2>&1; then
    row "beside PyTorch" "" 0 - "not run: $(tail -n 1 "$log.torch" | grep . || echo "its torch sees no GPU")"
  else
    timeout -k 5 "$(seconds_left 200)" "$python" "$here/gpu_timing_torch.py" "$log.json" 2>&1 | tee "$log.torch"
    code=${PIPESTATUS[0]}
    if (( code != 0 )); then row "beside PyTorch" "" 0 - "FAILED $(ended "$code"): $log.torch"; fi
  fi
}

devices=$("$programs/tenon" devices 2>&1)
echo "$devices"
echo "logs: $logs"
if [[ $devices != *device:GPU:0* ]]; then
  echo "FAILED: wanted a GPU to check, found none"
  exit 1
fi
if [[ $stage == all ]]; then
  for each in conformance sanitizer training timing; do "$each"; done
else
  "$stage"
fi
echo
if (( failures > 0 )); then
  echo "$failures FAILED"
  exit 1
fi
echo "nothing failed"
