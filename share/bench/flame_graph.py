#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws where the processor's time goes in rows of `tenon bench`, as flame graphs.

Usage: share/bench/flame_graph.py [--build FOLDER] [--output FOLDER] [--runs N] ROW ... Wants perf, and the right to use it.
Writes FOLDER/flame_ROW.svg: a box is a function, as wide as the part of all samples that it or what it calls was seen in; what it
calls stands on it. Boxes of one parent are in the order of their names. Who opens the file in a browser sees the whole name and
the part of a box below the pointer.

Source: B. Gregg, The Flame Graph, Communications of the ACM 59 (6), 2016.
"""
import argparse
import glob
import html
import os
import re
import subprocess
import tempfile

WIDTH, LINE, MARGIN, LETTER = 1200, 16, 10, 6.2
NARROWEST = 0.002  # of the whole: a box that is less wide is left out
NAMES = "/tmp/perf-*.map"  # where programs leave the names of code that they make, and perf finds them
COLOURS = {"tenon": "#f2a65a", "oneDNN": "#8fbf6a", "gRPC and others": "#d9c45a", "C and C++": "#c9c9c9", "kernel": "#8fb4dd"}


def kind(library):
    if "kernel" in library or library == "[guest.kernel.kallsyms]":
        return "kernel"
    name = os.path.basename(library)
    if name.startswith("tenon") or name.startswith("libtenon"):
        return "tenon"
    if name.startswith("libdnnl") or "anon" in library or library in ("[unknown]", "") or library.startswith("/tmp/perf-"):
        return "oneDNN"  # whose kernels are made while the program runs, and are in no file
    if re.match(r"lib(c|m|stdc\+\+|gomp|omp|pthread)[.-]|ld-linux|\[vdso\]", name):
        return "C and C++"
    return "gRPC and others"


def without_brackets(text, opening, closing):
    """The text without what stands between such brackets, which may be nested."""
    kept, depth = [], 0
    for letter in text:
        depth += letter == opening
        if depth == 0:
            kept.append(letter)
        depth -= letter == closing and depth > 0
    return "".join(kept)


def short(symbol):
    """A function's name without its parameters, those of its template and Tenon's namespace."""
    symbol = symbol.replace("(anonymous namespace)::", "").replace("operator()", "call").replace("->", "")
    symbol = without_brackets(without_brackets(symbol, "<", ">"), "(", ")").replace("tenon::", "")
    return re.sub(r"\{lambda\}|\{lambda.*?\}", "lambda", symbol).split(" [")[0].strip() or "unknown"


def stacks(recorded):
    """Lists of (name, kind) from a thread's begin to where it was seen."""
    command = ["perf", "script", "-i", recorded, "--no-inline", "-F", "comm,ip,sym,dso"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace") as script:
        stack = []
        for line in script.stdout:
            frame = re.match(r"\s+[0-9a-f]+ (.*) \((.*)\)$", line)
            if frame:
                library = kind(frame[2])
                name = "kernels made by oneDNN" if library == "oneDNN" and frame[1] == "[unknown]" else short(frame[1])
                stack.append((name, library))
            elif stack:
                yield stack[::-1]
                stack = []
        if stack:
            yield stack[::-1]


class Box:
    def __init__(self):
        self.samples, self.children = 0, {}

    def add(self, stack):
        box = self
        box.samples += 1
        previous = None
        for frame in stack:
            if frame == previous:  # a function that calls itself, and frames of code without names
                continue
            box = box.children.setdefault(frame, Box())
            box.samples += 1
            previous = frame


def draw(root, title):
    whole, boxes, deepest = root.samples, [], 0

    def place(box, left, level):
        nonlocal deepest
        for (name, library), child in sorted(box.children.items()):
            part = child.samples / whole
            if part >= NARROWEST:
                boxes.append((left, level, part, name, library))
                deepest = max(deepest, level)
                place(child, left, level + 1)
            left += part

    place(root, 0.0, 0)
    inner, height = WIDTH - 2 * MARGIN, (deepest + 1) * LINE + 4 * MARGIN + 2 * LINE
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="11">\n'
           f'<rect width="{WIDTH}" height="{height}" fill="white"/>\n'
           f'<text x="{MARGIN}" y="{LINE + 2}" font-size="14">{html.escape(title)}</text>\n')
    at = MARGIN
    for name, colour in COLOURS.items():
        yield (f'<rect x="{at}" y="{LINE + 12}" width="12" height="12" fill="{colour}"/>'
               f'<text x="{at + 16}" y="{LINE + 22}">{name}</text>\n')
        at += 40 + len(name) * LETTER
    for left, level, part, name, library in boxes:
        x, width, y = MARGIN + left * inner, part * inner, height - MARGIN - (level + 1) * LINE
        room = int((width - 6) / LETTER)
        text = name if len(name) <= room else name[:room - 1] + "…" if room > 4 else ""
        yield (f'<g><title>{html.escape(name)}: {part:.1%}</title><rect x="{x:.1f}" y="{y}" width="{max(width - .5, .5):.1f}" '
               f'height="{LINE - 1}" fill="{COLOURS[library]}"/>'
               + (f'<text x="{x + 3:.1f}" y="{y + 11}">{html.escape(text)}</text>' if text else "") + "</g>\n")
    yield "</svg>\n"


def record(row, build, runs, recorded):
    bench = [os.path.join(build, "tenon"), "bench", "--row", row, "--runs", str(runs)]
    done = subprocess.run(["perf", "record", "-F", "999", "--call-graph", "dwarf,16384", "-o", recorded, "--", *bench],
                          env={**os.environ, "ONEDNN_JIT_PROFILE": "2"},  # names of what it makes, for perf
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"perf record of {' '.join(bench)} failed: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout.splitlines()[-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("row", nargs="+")
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--output", default="docs/pictures")
    parser.add_argument("--runs", type=int, default=5)
    flags = parser.parse_args()
    for row in flags.row:
        others = set(glob.glob(NAMES))
        with tempfile.TemporaryDirectory() as folder:
            recorded = os.path.join(folder, "perf.data")
            figure = record(row, flags.build, flags.runs, recorded)
            root = Box()
            for stack in stacks(recorded):
                root.add(stack)
        for names in set(glob.glob(NAMES)) - others:
            os.remove(names)
        if root.samples == 0:
            raise SystemExit(f"perf saw no sample of {row}")
        path = os.path.join(flags.output, f"flame_{row}.svg")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(draw(root, f"{row}: {root.samples} samples of the processor's time"))
        print(f"{path}: {figure.strip()}")


if __name__ == "__main__":
    main()
