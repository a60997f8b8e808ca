#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""JAX's side of `tenon bench --peer jax`: its functions compiled for the CPU.

Prints its name, then reads the name of a row from each line of standard input and answers with a figure, measured as
the row of that name is for Tenon, or with "none". Each row is measured by a process of its own, `jax_peer.py ROW`,
since JAX chooses its threads once. `--install` makes its Python environment.
"""
import importlib.metadata
import os
import subprocess
import sys

import peer_environment

VERSION = "0.4.38"
peer_environment.install_if_asked(f"jax-{VERSION}", [f"jax=={VERSION}", f"jaxlib=={VERSION}", "numpy<2.3"])

# Rows of the function of that name in jax_rows.py, by whether they have one thread.
ONE_THREAD = ["mnist_step", "conv_step", "char_lstm_step", "word2vec_step", "inference_1", "inference_100"]
ALL_THREADS = ["convolution", "max_pooling", "overlapping_pooling", "batch_norm", "embedding", "top_k", "sort"]


def measure(row):
    if row not in ONE_THREAD + ALL_THREADS:
        return None
    environment = dict(os.environ, JAX_PLATFORMS="cpu")
    if row in ONE_THREAD:
        environment.update(NPROC="1", XLA_FLAGS="--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
    done = subprocess.run([sys.executable, os.path.abspath(__file__), row], env=environment, stdout=subprocess.PIPE,
                          text=True, check=True)
    return float(done.stdout)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        import jax_rows
        print(getattr(jax_rows, sys.argv[1])())
    else:
        peer_environment.answer("JAX " + importlib.metadata.version("jax"), measure)
