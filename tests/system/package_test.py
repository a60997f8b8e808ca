#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The program of the README builds outside the tree against an installed Tenon, and trains."""
import os
import re
import subprocess
import sys
import tempfile

SOURCE = os.environ.get("TENON_SOURCE_DIR", ".")
BINARY = os.environ.get("TENON_BINARY_DIR", "build/release")
CMAKE = """cmake_minimum_required(VERSION 3.25)
project(First CXX)
find_package(Tenon REQUIRED)
add_executable(first first.cc)
target_link_libraries(first PRIVATE Tenon::tenon)
target_compile_options(first PRIVATE -Wall -Wextra -Werror)
"""


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout[-4000:]}")
    return done.stdout


def cached(name):
    with open(os.path.join(BINARY, "CMakeCache.txt"), encoding="utf-8") as cache:
        return re.search(rf"^{name}:\w+=(.*)$", cache.read(), re.M).group(1)


def main():
    with open(os.path.join(SOURCE, "README.md"), encoding="utf-8") as readme:
        program = re.search(r"```cpp\n(.*?)```", readme.read(), re.S).group(1)
    with tempfile.TemporaryDirectory() as folder:
        prefix, project = os.path.join(folder, "prefix"), os.path.join(folder, "project")
        os.mkdir(project)
        for name, text in (("first.cc", program), ("CMakeLists.txt", CMAKE)):
            with open(os.path.join(project, name), "w", encoding="utf-8") as out:
                out.write(text)
        run("cmake", "--install", BINARY, "--prefix", prefix)
        build = os.path.join(project, "build")
        run("cmake", "-S", project, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}",
            f"-DCMAKE_CXX_COMPILER={cached('CMAKE_CXX_COMPILER')}", "-DCMAKE_BUILD_TYPE=Release")
        run("cmake", "--build", build)
        losses = [float(line.split()[-1]) for line in run(os.path.join(build, "first")).splitlines()]
    assert len(losses) == 20 and losses[0] == 36 and losses[-1] < 1e-3, losses
    print("losses", losses[0], "to", losses[-1])


if __name__ == "__main__":
    main()
