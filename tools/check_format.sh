#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Checks that the C++ and CUDA files are as .clang-format has them; says where one is not, and nothing otherwise.
#
#   tools/check_format.sh          checks
#   tools/check_format.sh --fix    formats them
set -euo pipefail
cd "$(dirname "$0")/.."

case ${1-} in
  '') options=(--dry-run -Werror) ;;
  --fix) options=(-i) ;;
  *) echo "usage: tools/check_format.sh [--fix]" >&2; exit 2 ;;
esac

# Versions differ in what they make of a file. This one has formatted the tree.
git ls-files -coz --exclude-standard '*.cc' '*.h' '*.cu' '*.cuh' |
  while IFS= read -r -d '' file; do if [[ -f $file ]]; then printf '%s\0' "$file"; fi; done |
  xargs -0 -r -P "$(nproc)" -n 64 clang-format-14 "${options[@]}"
