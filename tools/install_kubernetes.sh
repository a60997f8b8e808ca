#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes the Python virtual environment with the schemas of Kubernetes that manifests are checked
# with, and a client of gRPC's health service, as Kubernetes' probes are: in $TENON_KUBERNETES, by default ~/.cache/tenon/kubernetes-1.37. Says nothing when it is
# there already. It takes a few seconds and 150 MB.
set -euo pipefail

version=1.37.0
health_version=1.62.3
venv=${TENON_KUBERNETES:-$HOME/.cache/tenon/kubernetes-${version%.*}}

# The stamp is written last, so an interrupted installation is begun again.
stamp=$venv/.tenon-installed
wanted="$version $health_version"
is_there() { [[ -f $stamp && $(<"$stamp") == "$wanted" ]]; }
is_there && exit 0

echo "installing the schemas of Kubernetes $version into $venv"
mkdir -p "$(dirname "$venv")"
# Two test runs on one machine must not install into one folder at once.
exec 9>"$venv.lock"
flock 9
is_there && exit 0
python3 -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
  "kubernetes-validate==$version" "grpcio-health-checking==$health_version"
printf '%s\n' "$wanted" >"$stamp"
