#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""share/bench/flame_graph.py: the boxes of a known recording, the errors of perf, and a real row where perf may record."""
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as xml

from tenon_process import BINARY, SOURCE, in_a_folder, main

SCRIPT = os.path.join(SOURCE, "share", "bench", "flame_graph.py")
SVG = "{http://www.w3.org/2000/svg}"

# The words of `perf script -F comm,ip,sym,dso`, which has the innermost function first.
RECORDED = """tenon
            55d0 void tenon::(anonymous namespace)::Sum<float, int>(float const*, int) (/a/tenon)
            55c0 main (/a/tenon)

tenon
            55d0 void tenon::(anonymous namespace)::Sum<float, int>(float const*, int) (/a/tenon)
            55c0 main (/a/tenon)

tenon
        ffffffff page_fault ([kernel.kallsyms])
            7f00 memcpy@GLIBC_2.14 (/lib/libc.so.6)
            55c0 main (/a/tenon)

tenon
            7f10 [unknown] (//anon)
"""


def boxes(path):
    """{name: (part of the whole, width, place of the lower edge)}, of the widest box of each name."""
    found = {}
    for group in xml.parse(path).getroot().iter(f"{SVG}g"):
        name, part = group.find(f"{SVG}title").text.rsplit(": ", 1)
        box = group.find(f"{SVG}rect")
        new = (float(part.rstrip("%")) / 100, float(box.get("width")), float(box.get("y")))
        found[name] = max(new, found.get(name, new))
    return found


def draw(folder, *arguments, **environment):
    return subprocess.run([sys.executable, SCRIPT, "--output", folder, *arguments], stdout=subprocess.PIPE, text=True, timeout=120,
                          stderr=subprocess.STDOUT, env={**os.environ, **environment}, check=False)


def with_perf(folder, records, prints):
    """The PATH of a folder with a perf that runs these lines of a shell."""
    path = os.path.join(folder, "perf")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\nif [ "$1" = record ]; then {records}; else {prints}; fi\n')
    os.chmod(path, 0o755)
    return folder + os.pathsep + os.environ["PATH"]


def known_recording(folder):
    text = os.path.join(folder, "recorded")
    with open(text, "w", encoding="utf-8") as file:
        file.write(RECORDED)
    done = draw(folder, "null_step", PATH=with_perf(folder, "echo a step 24", f"cat {text}"))
    assert done.returncode == 0 and "flame_null_step.svg: a step 24" in done.stdout, done.stdout
    found = boxes(os.path.join(folder, "flame_null_step.svg"))
    parts = {name: box[0] for name, box in found.items()}
    assert parts == {"main": .75, "void Sum": .5, "memcpy@GLIBC_2.14": .25, "page_fault": .25,
                     "kernels made by oneDNN": .25}, parts
    assert abs(found["main"][1] / found["page_fault"][1] - 3) < .02, found
    # A function stands on the one that calls it.
    assert found["main"][2] > found["memcpy@GLIBC_2.14"][2] > found["page_fault"][2], found
    assert found["main"][2] == found["kernels made by oneDNN"][2], found


def errors(folder):
    done = draw(folder, "null_step", PATH=with_perf(folder, "echo no permission >&2; exit 255", "true"))
    assert done.returncode == 1 and "failed: no permission" in done.stdout, done.stdout
    done = draw(folder, "null_step", PATH=with_perf(folder, "echo a step 24", "true"))
    assert done.returncode == 1 and "perf saw no sample of null_step" in done.stdout, done.stdout


def real_row(folder):
    if shutil.which("perf") is None:
        print("skipped: no perf")
        return
    done = draw(folder, "--build", BINARY, "--runs", "1", "add_chain")
    if done.returncode != 0 and "perf record of" in done.stdout:
        print(f"skipped: {done.stdout.strip()}")
        return
    assert done.returncode == 0, done.stdout
    found = boxes(os.path.join(folder, "flame_add_chain.svg"))
    # Nearly all of a chain of adds is in the loop over its nodes.
    part = found.get("PlanRun::RunNodes", (0,))[0]
    assert part > .3, part


if __name__ == "__main__":
    sys.exit(main([("known recording", in_a_folder(known_recording)), ("errors", in_a_folder(errors)),
                   ("a real row", in_a_folder(real_row))]))
