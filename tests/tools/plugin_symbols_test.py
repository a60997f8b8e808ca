#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the plugins take from the program that loads them is in cmake/plugin_symbols.txt, and `tenon` loads
the simulated device: tests that are to run on it would otherwise pass on the CPU."""
import fnmatch
import os
import re
import subprocess
import sys

SOURCE = os.environ.get("TENON_SOURCE_DIR", ".")
BINARY = os.environ.get("TENON_BINARY_DIR", "build/release")


def patterns(text):
    """The globs of a dynamic list; between quotes, names."""
    return [re.sub(r"([\[?*])", r"[\1]", name) if quoted else name.replace("[", "[[]")
            for quoted, name in re.findall(r'^ *("?)([^"\n]*tenon::[^"\n]*)\1;$', text, re.M)]


def check(plugin, shown):
    """Whether all that the plugin takes is shown."""
    out = subprocess.run(["nm", "--dynamic", "--undefined-only", "--demangle", plugin], check=True,
                         stdout=subprocess.PIPE, text=True).stdout
    taken = [name for name in re.findall(r"^ +U (.*)$", out, re.M) if "tenon::" in name]
    assert taken, out
    missing = [name for name in taken if not any(fnmatch.fnmatchcase(name, p) for p in shown)]
    print("\n".join(missing) or f"{plugin}: all of {len(taken)} symbols are shown")
    return not missing


def main():
    with open(os.path.join(SOURCE, "cmake", "plugin_symbols.txt"), encoding="utf-8") as file:
        shown = patterns(file.read())
    assert len(shown) > 20, shown
    folder = os.path.abspath(os.path.join(BINARY, "simulated"))
    simulated = os.path.join(folder, "libtenon_simulated.so")
    if not os.path.exists(simulated):
        print("this build, of the test programs alone, has no plugin")
        sys.exit(77)
    good = check(simulated, shown)
    devices = subprocess.run([os.path.join(BINARY, "tenon"), "devices"], check=True, text=True,
                             stdout=subprocess.PIPE,
                             env=dict(os.environ, TENON_CUDA_PLUGIN=simulated, LD_LIBRARY_PATH=folder)).stdout
    print(devices)
    good &= "/device:GPU:0" in devices
    for name in ("libtenon_cuda.so", "libtenon_s3.so", "libtenon_hdfs.so", "libtenon_gloo.so",
                 "libtenon_openmpi.so", "libtenon_mpich.so"):
        plugin = os.path.join(BINARY, name)
        if os.path.exists(plugin):
            good &= check(plugin, shown)
    sys.exit(not good)


if __name__ == "__main__":
    main()
