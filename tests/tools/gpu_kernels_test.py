#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The plugin for GPUs has code for the same kernels on every GPU that it is built for."""
import os
import re
import subprocess
import sys

SOURCE = os.environ.get("TENON_SOURCE_DIR", ".")
BINARY = os.environ.get("TENON_BINARY_DIR", "build/release")


def main():
    plugin = os.path.join(BINARY, "libtenon_cuda.so")
    if not os.path.exists(plugin):
        print("this build has no plugin for GPUs")
        sys.exit(77)
    run = subprocess.run([sys.executable, os.path.join(SOURCE, "tools", "gpu_kernels.py"), plugin],
                         capture_output=True, text=True)
    if "there is no cuobjdump" in run.stderr:
        print(run.stderr.strip())
        sys.exit(77)
    print(run.stdout + run.stderr)
    assert run.returncode == 0
    counts = re.findall(r"^(sm_\d+): (\d+) kernels", run.stdout, re.M)
    assert counts and all(int(n) > 1000 for _, n in counts), counts


if __name__ == "__main__":
    main()
