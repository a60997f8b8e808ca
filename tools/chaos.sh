#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Draws faults for real trainings, and tells what they did (tests/system/chaos.py, whose flags it takes):
#
#   tools/chaos.sh --schedules 200 --seed 7
#
# Of the release build, or of that in TENON_BINARY_DIR. Needs root, for network namespaces and a small disk.
set -euo pipefail
cd "$(dirname "$0")/.."
export TENON_SOURCE_DIR=${TENON_SOURCE_DIR:-$PWD} TENON_BINARY_DIR=${TENON_BINARY_DIR:-$PWD/build/release}
exec python3 tests/system/chaos.py "$@"
