#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes the Python virtual environment with the real TensorFlow that the interop tests drive: in
# $TENON_TF_VENV, by default ~/.cache/tenon/tf-2.15.1. Says nothing when it is there already.
# It takes about a minute and 1.3 GB, and needs Python 3.9, 3.10 or 3.11.
set -euo pipefail

version=2.15.1
venv=${TENON_TF_VENV:-$HOME/.cache/tenon/tf-$version}
packages=("tensorflow-cpu==$version" "numpy<2" "setuptools<81" tensorboard)

# The stamp is written last, so an interrupted installation is begun again.
stamp=$venv/.tenon-installed
wanted="${packages[*]}"
[[ -f $stamp && $(<"$stamp") == "$wanted" ]] && exit 0

python=
for candidate in ${PYTHON:-} python3.11 python3.10 python3.9 python3; do
  if "$candidate" -c 'import sys; sys.exit(not (3, 9) <= sys.version_info < (3, 12))' 2>/dev/null
  then python=$candidate; break; fi
done
if [[ -z $python ]]; then
  echo "TensorFlow $version needs Python 3.9, 3.10 or 3.11, and none was found" >&2
  exit 1
fi

echo "installing TensorFlow $version into $venv"
mkdir -p "$(dirname "$venv")"
# Two test runs on one machine must not install into one folder at once.
exec 9>"$venv.lock"
flock 9
[[ -f $stamp && $(<"$stamp") == "$wanted" ]] && exit 0
"$python" -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check "${packages[@]}"
printf '%s\n' "$wanted" >"$stamp"
