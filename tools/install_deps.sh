#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs what building and testing need on Debian 12. Says nothing when all of it is there already.
# Needs root, or sudo without a password.
set -euo pipefail

packages=(
  clang-19 libclang-rt-19-dev libomp-19-dev llvm-19 g++-12 cmake ninja-build ccache mold pkg-config
  clang-format-14 clang-tidy-19 patchelf xz-utils python3 python3-venv
  libabsl-dev libprotobuf-dev protobuf-compiler libgrpc++-dev libgrpc-dev protobuf-compiler-grpc
  libdnnl-dev libeigen3-dev libleveldb-dev libsnappy-dev libutf8proc-dev zlib1g-dev libzstd-dev
  libre2-dev libpng-dev libjpeg62-turbo-dev libboost-math-dev liblbfgs-dev libmimalloc-dev
  libcurl4-openssl-dev libpugixml-dev libssl-dev libgloo-dev libopenmpi-dev libmpich-dev
  libspdlog-dev libcli11-dev nlohmann-json3-dev libgtest-dev libgmock-dev
  openjdk-17-jre-headless libjersey1-server-java libjersey1-servlet-java libjsr311-api-java curl
  krb5-kdc krb5-admin-server krb5-user
  openmpi-bin mpich slurmctld slurmd slurm-client munge openssh-server openssh-client iproute2
)

missing=()
for package in "${packages[@]}"; do
  state=$(dpkg-query -W -f '${Status}' "$package" 2>/dev/null || true)
  [[ $state == "install ok installed" ]] || missing+=("$package")
done
(( ${#missing[@]} == 0 )) && exit 0

as_root=()
(( EUID == 0 )) || as_root=(sudo -n)
echo "installing: ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
export DEBIAN_FRONTEND=noninteractive

if ! { "${as_root[@]}" apt-get update -q &&
       "${as_root[@]}" apt-get install -q -y --no-install-recommends "${missing[@]}"; } \
     >"$log" 2>&1; then
  tail -n 30 "$log" >&2
  echo "could not install the packages above; the last lines of apt's output are shown" >&2
  exit 1
fi
