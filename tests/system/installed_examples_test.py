#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The examples that an installed Tenon has compile against it."""
import glob
import os
import shlex
import subprocess
import sys
import tempfile

from outside_project import BINARY, cached, run


def main():
    with tempfile.TemporaryDirectory() as prefix:
        run("cmake", "--install", BINARY, "--prefix", prefix)
        (packages,) = glob.glob(os.path.join(prefix, "lib*", "**", "pkgconfig"), recursive=True)
        flags = subprocess.run(["pkg-config", "--cflags", "tenon"], text=True, check=True, capture_output=True,
                               env={**os.environ, "PKG_CONFIG_PATH": packages}).stdout
        examples = os.path.join(prefix, "share", "doc", "Tenon", "examples")
        sources = sorted(glob.glob(os.path.join(examples, "*.cc")))
        assert len(sources) > 5, sources
        for source in sources[:1] + [os.path.join(examples, "mnist_conv.cc")]:
            run(cached("CMAKE_CXX_COMPILER"), "-std=c++20", "-fsyntax-only", *shlex.split(flags), source)


if __name__ == "__main__":
    sys.exit(main())
