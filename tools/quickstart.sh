#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# From a fresh Debian 12 to a trained network: installs the packages, builds, and trains the MNIST
# network on one parameter server and two workers, separate processes on loopback. Again: only trains.
# Arguments go to the training program, such as --training_epochs=2.
set -euo pipefail
cd "$(dirname "$0")/.."

build=build/release
log=build/quickstart.log
mkdir -p build

if [[ ! -x $build/tenon || ! -x $build/example_mnist_replica ]]; then
  echo "Installing packages and building (some minutes; log: $log)"
  {
    tools/install_deps.sh
    cmake --preset release
    cmake --build --preset release --target tenon example_mnist_replica
  } >"$log" 2>&1 || { tail -n 50 "$log" >&2; exit 1; }
fi

logs=build/quickstart-logs
rm -rf "$logs"
echo "Training 784-100-10 on MNIST: 1 parameter server, 2 workers"
"$build/tenon" launch --ps 1 --workers 2 -- "$build/example_mnist_replica" \
  --data share/mnist --logs_path "$logs" --trace "$logs/step.trace.json" "$@"
echo
echo "TensorBoard: tensorboard --logdir $logs"
echo "Trace of the last step (chrome://tracing or ui.perfetto.dev): $logs/step.trace.json"
