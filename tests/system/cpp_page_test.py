#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The code of docs/cpp.md, docs/checkpoints.md and docs/training.md and the program of docs/adding_an_op.md build outside the
tree against an installed Tenon, run, and print what the pages say.

A ```cpp block with a main function is a program. On the first three the others are bodies of functions that
return Status; one that begins with "// continues" goes on with the block before it. An ```output block after
them is what they print. An ```ops block is the file my.ops, which the program after it is built with. On
checkpoints.md an ```sh block is of commands, which run after all of these, in the same folder."""
import os
import re
import sys
import tempfile

import outside_project

CMAKE = """cmake_minimum_required(VERSION 3.25)
project(Pages CXX)
find_package(Tenon REQUIRED)
add_compile_options(-Wall -Wextra -Werror -Wno-unused-variable -Wno-unused-but-set-variable)
function(page NAME)
  add_executable(${NAME} ${NAME}.cc)
  target_link_libraries(${NAME} PRIVATE Tenon::tenon)
endfunction()
"""
HEAD = """#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <future>
#include <iostream>

#include "tenon/tenon.h"

using namespace tenon;

"""
MARK = "-- block "
PAGES = ("cpp.md", "checkpoints.md", "training.md")  # of pieces of code


def blocks(page):
    """(language, text) of each fenced block."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", outside_project.read("docs", page), re.M | re.S)


def snippets_program(bodies):
    """One program of (number, code) blocks; prints a line before what each of them prints."""
    functions = []
    for number, code in bodies:
        mark = f'std::cout << "{MARK}{number}\\n";'
        if code.startswith("// continues\n"):
            functions[-1].append(code.replace("// continues", mark, 1))
        else:
            functions.append([f'{mark}\n#line 1 "page.cc"\n{code}'])
    text = HEAD
    for i, parts in enumerate(functions):
        text += f"Status Snippet{i}() {{\n" + "".join(parts) + "return OkStatus();\n}\n\n"
    text += "int main() {\n"
    for i in range(len(functions)):
        text += f"  if (Status s = Snippet{i}(); !s.ok()) {{ std::cout << s << '\\n'; return 1; }}\n"
    return text + "}\n"


def main():
    files, cmake, bodies, programs, wanted, declared = {}, CMAKE, [], [], {}, False
    commands = []
    numbered = [(f"{page}:{i}", language, text) for page in (*PAGES, "adding_an_op.md")
                for i, (language, text) in enumerate(blocks(page))]
    last = None
    for name, language, text in numbered:
        if language == "ops":
            files["my.ops"], declared = text, True
        elif language == "output":
            wanted[last] = text
        elif language == "cpp" and "int main" in text:
            program = f"program{len(programs)}"
            files[program + ".cc"], cmake = text, cmake + f"page({program})\n"
            if declared:
                cmake += f"tenon_add_ops({program} my.ops)\n"
            programs.append((program, name))
            last = name
        elif language == "cpp" and name.startswith(PAGES):
            bodies.append((name, text))
            last = name
        elif language == "sh" and name.startswith("checkpoints.md"):
            commands.append((name, text))
            last = name
    files["snippets.cc"] = snippets_program(bodies)
    files["CMakeLists.txt"] = cmake + "page(snippets)\n"
    printed = {}
    with tempfile.TemporaryDirectory() as folder:
        built = outside_project.build(folder, files)
        for program, name in programs:
            printed[name] = outside_project.run(os.path.join(built, program))
        snippets = outside_project.run("env", "-C", folder, os.path.join(built, "snippets"))
        for part in snippets.split(MARK)[1:]:
            name, _, text = part.partition("\n")
            printed[name] = text
        path = os.path.abspath(outside_project.BINARY) + ":" + os.environ["PATH"]
        for name, text in commands:
            printed[name] = outside_project.run("env", "-C", folder, "PATH=" + path, "bash", "-c",
                                                text + "true")  # a difference is no failure
    assert len(programs) == 2, programs
    assert len(printed) == len(programs) + len(bodies) + len(commands), printed.keys()
    wrong = [f"{name} prints\n{text}and not\n{wanted.get(name, '')}"
             for name, text in printed.items() if text != wanted.get(name, "")]
    if wrong:
        sys.exit("\n".join(wrong))
    print(len(programs), "programs and", len(bodies), "pieces of code")


if __name__ == "__main__":
    main()
