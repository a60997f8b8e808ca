#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lists the code in the plugin for GPUs: for each GPU that it was built for, its kernels with their
registers, and what they spill.

    tools/gpu_kernels.py [build/release/libtenon_cuda.so] [--match TEXT] [--spills]

Wants cuobjdump, of the CUDA toolkit or the wheel nvidia-cuda-cuobjdump, on PATH or in CUDA_HOME. Exit code
1 when the GPUs do not have code for the same kernels, or one has none.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys

FUNCTION = re.compile(r"^ Function ([^:]+):\n\s+(.*)$", re.M)
GENERATION = re.compile(r"^arch = (sm_\w+)$", re.M)


def find_cuobjdump():
    folders = [os.path.join(os.environ[v], "bin") for v in ("CUDA_HOME", "CUDA_PATH") if v in os.environ]
    return shutil.which("cuobjdump", path=os.pathsep.join([os.environ["PATH"], *folders, "/usr/local/cuda/bin"]))


def demangled(names):
    out = subprocess.run(["c++filt"], input="\n".join(names), check=True, capture_output=True, text=True)
    return dict(zip(names, out.stdout.splitlines()))


def read_kernels(cuobjdump, plugin):
    """GPU -> mangled name -> the figures that cuobjdump gives (REG, STACK, SHARED, LOCAL, ...)."""
    text = subprocess.run([cuobjdump, "-res-usage", plugin], check=True, capture_output=True, text=True).stdout
    kernels = {}
    for part in text.split("Fatbin elf code:")[1:]:
        arch = GENERATION.search(part)
        if arch is None:
            continue
        for name, figures in FUNCTION.findall(part):
            usage = {k: int(v) for k, v in re.findall(r"([A-Z]+):(\d+)", figures)}
            kernels.setdefault(arch.group(1), {})[name] = usage
    return kernels


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plugin", nargs="?", default="build/release/libtenon_cuda.so")
    parser.add_argument("--match", help="only kernels whose name contains this")
    parser.add_argument("--spills", action="store_true", help="only those that have memory of their own on the stack")
    options = parser.parse_args()
    cuobjdump = find_cuobjdump()
    if cuobjdump is None:
        sys.exit("there is no cuobjdump on PATH, in CUDA_HOME or in /usr/local/cuda")
    kernels = read_kernels(cuobjdump, options.plugin)
    if not kernels:
        sys.exit(f"{options.plugin} has no code for any GPU")
    names = demangled(sorted(set().union(*kernels.values())))
    failed = False
    for arch, found in sorted(kernels.items()):
        spilling = sum(1 for u in found.values() if u.get("STACK", 0) > 0)
        most = max(u["REG"] for u in found.values())
        print(f"{arch}: {len(found)} kernels, at most {most} registers, {spilling} with a stack")
        # Anonymous namespaces have names of their own in each file, but the same for each GPU.
        for name in sorted(set(names) - set(found)):
            print(f"  no code for {names[name]}")
            failed = True
    if options.match or options.spills:
        for arch, found in sorted(kernels.items()):
            for name, u in sorted(found.items(), key=lambda item: -item[1]["REG"]):
                if options.match and options.match not in names[name]:
                    continue
                if options.spills and u.get("STACK", 0) == 0:
                    continue
                print(f"{arch} {u['REG']:4} registers {u.get('STACK', 0):5} B stack {u.get('SHARED', 0):6} B shared  "
                      f"{names[name][:160]}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
