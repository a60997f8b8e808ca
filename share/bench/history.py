#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws how the rows of `tenon bench` changed from version to version.

Usage: share/bench/history.py [--output FILE] RESULTS.json RESULTS.json ...

Each file is what `tenon bench --peer NAME --output FILE` has written, of one version; they are in the order of the versions, which
are called as the files: git-describe's names sort well. Writes FILE (history.svg), a plot for each row: how many times as fast as
the peer, by the medians, with a bar from the slowest of our runs beside the fastest of the peer's to the other extreme. Where a file
has no peer, or a row of it none, the row's own figure takes the place of the ratio. Prints a line for each row whose last value is
worse than all before: times of one machine vary, so that a single worse value says little.
"""
import argparse
import html
import json
import os
import sys

WIDTH, HEIGHT, MARGIN, TITLE, COLUMNS = 380, 120, 12, 30, 3
LINE, BAR, GRID, TEXT = "#3465a4", "#a9c1e0", "#dddddd", "#222222"


def fail(reason):
    sys.exit(f"history.py: {reason}")


def read(path):
    """The rows of a file: {name: row}."""
    try:
        with open(path, encoding="utf-8") as file:
            rows = json.load(file)
        return {row["row"]: row for row in rows if row["tenon_runs"] and row["what"] is not None}
    except (OSError, ValueError, TypeError, KeyError) as error:
        fail(f"{path} is not what `tenon bench --output` writes: {error!r}")


def peer_of(row):
    """The other system of a row, or None."""
    return next((key[:-len("_runs")] for key in sorted(row) if key.endswith("_runs") and key != "tenon_runs"), None)


def median(values):
    return sorted(values)[(len(values) - 1) // 2]


def ratio(ours, theirs, more_is_better):
    return ours / theirs if more_is_better else theirs / ours


def value_of(row, peer):
    """(middle, least, most) of a row: times as fast as the peer, or the figure itself where peer is None."""
    ours = row["tenon_runs"]
    if peer is None:
        return median(ours), min(ours), max(ours)
    theirs = row[f"{peer}_runs"]
    # The file gives the ratio of the medians, and by it which way is better.
    more_is_better = abs(ratio(row["tenon"], row[peer], True) - row["ratio"]) < abs(ratio(row["tenon"], row[peer], False) - row["ratio"])
    ends = [ratio(o, t, more_is_better) for o in (min(ours), max(ours)) for t in (min(theirs), max(theirs))]
    return row["ratio"], min(ends), max(ends)


def short(number):
    return f"{number:.3g}" if number < 1000 else f"{number:,.0f}"


def plot(title, unit, points, versions, left, top):
    """The SVG of one row; a point is None where its version has not the row."""
    present = [p for p in points if p is not None]
    most = max(p[2] for p in present) or 1.0
    plot_width, plot_height = WIDTH - 2 * MARGIN - 40, HEIGHT - TITLE - 26

    def x(i):
        return left + MARGIN + 40 + (plot_width * i / max(len(points) - 1, 1))

    def y(value):
        return top + TITLE + plot_height * (1 - value / most)

    parts = [f'<g><title>{html.escape(title)}</title>',
             f'<text x="{left + MARGIN}" y="{top + 18}" font-weight="bold">{html.escape(title)}</text>']
    for tick in (0.0, most / 2, most):
        parts.append(f'<line x1="{x(0):.1f}" x2="{left + WIDTH - MARGIN}" y1="{y(tick):.1f}" y2="{y(tick):.1f}" stroke="{GRID}"/>')
        parts.append(f'<text x="{x(0) - 6:.1f}" y="{y(tick) + 4:.1f}" text-anchor="end">{short(tick)}</text>')
    parts.append(f'<text x="{left + MARGIN}" y="{top + HEIGHT - 6}" fill="{LINE}">{html.escape(unit)}, last {short(present[-1][0])}</text>')
    runs, run = [], []
    for i, point in enumerate(points):
        if point is None:
            runs, run = runs + [run], []
            continue
        run.append(f"{x(i):.1f},{y(point[0]):.1f}")
        parts.append(f'<line x1="{x(i):.1f}" x2="{x(i):.1f}" y1="{y(point[1]):.1f}" y2="{y(point[2]):.1f}" stroke="{BAR}" stroke-width="5"/>')
        parts.append(f'<circle cx="{x(i):.1f}" cy="{y(point[0]):.1f}" r="3" fill="{LINE}">'
                     f'<title>{html.escape(versions[i])}: {short(point[0])} ({short(point[1])} to {short(point[2])})</title></circle>')
    for run in runs + [run]:
        if len(run) > 1:
            parts.append(f'<polyline points="{" ".join(run)}" fill="none" stroke="{LINE}"/>')
    return parts + ["</g>"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", default="history.svg")
    parser.add_argument("results", nargs="+")
    arguments = parser.parse_args()
    versions = [os.path.splitext(os.path.basename(path))[0] for path in arguments.results]
    files = [read(path) for path in arguments.results]
    names = list(dict.fromkeys(name for rows in files for name in rows))
    if not names:
        fail("the files have no rows")
    drawn, worse = [], []
    for k, name in enumerate(names):
        rows = [rows.get(name) for rows in files]
        last = [row for row in rows if row is not None][-1]
        peer = peer_of(last)
        points = [value_of(row, peer) if row is not None and peer_of(row) == peer else None for row in rows]
        unit = last["unit"] if peer is None else f"times {peer}"
        left, top = (k % COLUMNS) * WIDTH, (k // COLUMNS) * HEIGHT
        drawn += plot(last["what"], unit, points, versions, left, top)
        middles = [p[0] for p in points if p is not None]
        if peer is not None and rows[-1] is not None and len(middles) > 2 and middles[-1] < min(middles[:-1]):
            worse.append(f"{name}: {short(middles[-1])} times {peer}, {short(min(middles[:-1]))} to {short(max(middles[:-1]))} before")
    width, height = WIDTH * min(COLUMNS, len(names)), HEIGHT * ((len(names) + COLUMNS - 1) // COLUMNS) + 8
    with open(arguments.output, "w", encoding="utf-8") as out:
        out.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="11" '
                  f'fill="{TEXT}">\n<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(drawn) + "\n</svg>\n")
    for line in worse:
        print(line)


if __name__ == "__main__":
    main()
