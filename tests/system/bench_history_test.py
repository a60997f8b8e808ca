#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""share/bench/history.py: the places of known figures, rows that come and go, what `tenon bench` itself writes, and wrong files."""
import json
import os
import subprocess
import sys
import xml.etree.ElementTree as xml

from tenon_process import BINARY, SOURCE, in_a_folder, main

SCRIPT = os.path.join(SOURCE, "share", "bench", "history.py")
SVG = "{http://www.w3.org/2000/svg}"


def row(name, ours, theirs, more_is_better=False, unit="us"):
    """A row as `tenon bench --peer tensorflow` writes it, of an odd number of runs."""
    middle, other = sorted(ours)[len(ours) // 2], sorted(theirs)[len(theirs) // 2]
    return {"row": name, "what": f"what {name} is", "unit": unit, "tenon": middle, "tenon_runs": ours, "tensorflow": other,
            "tensorflow_runs": theirs, "ratio": middle / other if more_is_better else other / middle}


def write(folder, name, rows):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        json.dump(rows, file)


def run(folder, *arguments):
    return subprocess.run([sys.executable, SCRIPT, *arguments], cwd=folder, capture_output=True, text=True, timeout=60)


def plots(folder):
    """{title: [(name of the version, value, least, most, height above the plot's lower edge)]}."""
    found = {}
    for group in xml.parse(os.path.join(folder, "history.svg")).getroot().iter(f"{SVG}g"):
        zero = float(group.find(f"{SVG}line").get("y1"))
        points = []
        for circle in group.iter(f"{SVG}circle"):
            version, text = circle.find(f"{SVG}title").text.split(": ")
            value, spread = text.rstrip(")").split(" (")
            points.append((version, float(value), *map(float, spread.split(" to ")), zero - float(circle.get("cy"))))
        found[group.find(f"{SVG}title").text] = points
    return found


def known_figures_are_at_their_places(folder):
    write(folder, "v1.json", [row("time", [10, 11, 12], [20, 22, 24]), row("rate", [40, 50, 60], [10, 10, 10], True)])
    write(folder, "v2.json", [row("time", [5, 5.5, 6], [20, 22, 24]), row("new", [1], [1])])
    write(folder, "v3.json", [row("time", [20, 22, 24], [20, 22, 24]), row("rate", [10, 20, 30], [10, 10, 10], True), row("new", [1], [3])])
    ended = run(folder, "--output", "history.svg", "v1.json", "v2.json", "v3.json")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == "time: 1 times tensorflow, 2 to 4 before\n", ended.stdout
    found = plots(folder)
    assert list(found) == ["what time is", "what rate is", "what new is"], found
    time = found["what time is"]
    assert [p[:4] for p in time] == [("v1", 2, 1.67, 2.4), ("v2", 4, 3.33, 4.8), ("v3", 1, 0.833, 1.2)], time
    assert abs(time[1][4] / time[0][4] - 2) < 0.02 and abs(time[2][4] / time[0][4] - 0.5) < 0.02, time
    assert [p[:2] for p in found["what rate is"]] == [("v1", 5), ("v3", 2)], found
    assert [p[:2] for p in found["what new is"]] == [("v2", 1), ("v3", 3)], found


def what_the_command_writes_is_drawn(folder):
    for name in ("first.json", "second.json"):
        command = [os.path.abspath(os.path.join(BINARY, "tenon")), "bench", "--runs", "1", "--row", "smallest_run", "--output", name]
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=60)
    ended = run(folder, "first.json", "second.json")
    assert ended.returncode == 0, ended.stderr
    (points,) = plots(folder).values()
    assert [p[0] for p in points] == ["first", "second"] and all(p[1] > 0 for p in points), points


def wrong_files_are_named(folder):
    write(folder, "list.json", [1, 2])
    write(folder, "empty.json", [])
    with open(os.path.join(folder, "cut.json"), "w", encoding="utf-8") as file:
        file.write('[{"row": "time"')
    for name in ("list.json", "cut.json", "missing.json"):
        ended = run(folder, name)
        assert ended.returncode == 1 and f"history.py: {name} is not what `tenon bench --output` writes" in ended.stderr, ended.stderr
    assert "the files have no rows" in run(folder, "empty.json").stderr
    assert not os.path.exists(os.path.join(folder, "history.svg"))


if __name__ == "__main__":
    sys.exit(main([("known figures", in_a_folder(known_figures_are_at_their_places)),
                   ("what the command writes", in_a_folder(what_the_command_writes_is_drawn)),
                   ("wrong files", in_a_folder(wrong_files_are_named))]))
