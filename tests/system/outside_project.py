# SPDX-License-Identifier: Apache-2.0
"""A project outside the tree, built against an installed Tenon."""
import os
import re
import subprocess
import sys

SOURCE = os.environ.get("TENON_SOURCE_DIR", ".")
BINARY = os.environ.get("TENON_BINARY_DIR", "build/release")


def run(*command):
    """What the command prints; ends this process when it fails."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout[-4000:]}")
    return done.stdout


def cached(name):
    with open(os.path.join(BINARY, "CMakeCache.txt"), encoding="utf-8") as cache:
        return re.search(rf"^{name}:\w+=(.*)$", cache.read(), re.M).group(1)


def read(*path):
    """The text of a file of the tree."""
    with open(os.path.join(SOURCE, *path), encoding="utf-8") as file:
        return file.read()


def build(folder, files):
    """Installs Tenon below `folder`, builds the project of `files` (text by name) against it, and gives
    the folder of its programs. TENON_PREFIX names a Tenon that is installed already."""
    prefix, project = os.environ.get("TENON_PREFIX"), os.path.join(folder, "project")
    if prefix is None:
        prefix = os.path.join(folder, "prefix")
        run("cmake", "--install", BINARY, "--prefix", prefix)
    os.mkdir(project)
    for name, text in files.items():
        with open(os.path.join(project, name), "w", encoding="utf-8") as out:
            out.write(text)
    programs = os.path.join(project, "build")
    run("cmake", "-S", project, "-B", programs, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DCMAKE_CXX_COMPILER={cached('CMAKE_CXX_COMPILER')}", "-DCMAKE_BUILD_TYPE=Release")
    run("cmake", "--build", programs)
    return programs


def build_program(folder, name, source):
    """The same of a project of one program, NAME.cc."""
    cmake = f"""cmake_minimum_required(VERSION 3.25)
project(Outside CXX)
find_package(Tenon REQUIRED)
add_executable({name} {name}.cc)
target_link_libraries({name} PRIVATE Tenon::tenon)
target_compile_options({name} PRIVATE -Wall -Wextra -Werror)
"""
    return build(folder, {f"{name}.cc": source, "CMakeLists.txt": cmake})
