#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The program of the README builds outside the tree against an installed Tenon, by CMake and by pkg-config,
and trains; what is installed beside it is there, and the pages lead to each other."""
import os
import re
import tempfile

import outside_project


def by_pkg_config(prefix, programs):
    """Links what CMake compiled as pkg-config says, into a program beside it."""
    def said(*flags):
        path = os.path.join(prefix, "lib", "pkgconfig")
        return outside_project.run("env", f"PKG_CONFIG_PATH={path}", "pkg-config", *flags, "tenon").split()
    compiler = outside_project.cached("CMAKE_CXX_COMPILER")
    header = os.path.join(programs, "header.cc")
    with open(header, "w", encoding="utf-8") as file:
        file.write('#include "core/tensor/tensor.h"\n#include "tenon/tenon.h"\n')
    outside_project.run(compiler, "-fsyntax-only", *said("--cflags"), header)
    linked = os.path.join(programs, "linked")
    outside_project.run(compiler, "-fuse-ld=mold", "-o", linked,
                        os.path.join(programs, "CMakeFiles", "first.dir", "first.cc.o"), *said("--libs"))
    return linked


def installed_for_people(prefix):
    for path in ("share/man/man1/tenon.1", "share/bash-completion/completions/tenon",
                 "share/doc/Tenon/docs/cpp.md", "share/doc/Tenon/LICENSE", "share/doc/Tenon/examples/README.md",
                 "share/tenon/flights/flights_sample.csv.gz"):
        assert os.path.getsize(os.path.join(prefix, path)) > 0, path
    outside_project.run(os.path.join(outside_project.SOURCE, "tools", "check_links.py"), prefix)


def main():
    program = re.search(r"```cpp\n(.*?)```", outside_project.read("README.md"), re.S).group(1)
    with tempfile.TemporaryDirectory() as folder:
        programs = outside_project.build_program(folder, "first", program)
        lines = outside_project.run(os.path.join(programs, "first")).splitlines()
        prefix = os.environ.get("TENON_PREFIX", os.path.join(folder, "prefix"))
        installed_for_people(prefix)
        assert outside_project.run(by_pkg_config(prefix, programs)).splitlines() == lines
    assert lines.pop() == "OK", lines
    losses = [float(line) for line in lines]
    assert len(losses) == 20 and losses[0] == 36 and losses[-1] < 1e-3, losses
    print("losses", losses[0], "to", losses[-1])


if __name__ == "__main__":
    main()
