#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the pictures of the README out of a run of the classic program: the graph from the event file
that worker 0 writes, the trace from --trace. Needs protoc, python3-protobuf and graphviz.

    docs/pictures/make_pictures.py            # writes graph.svg and trace.svg beside itself
"""
import collections
import glob
import html
import importlib
import json
import os
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.join(ROOT, "build", "release")
COLOURS = {"/job:ps/task:0": "#f7c59f", "/job:worker/task:0": "#a9d6e5", "/job:ps": "#f7c59f"}


def messages(folder):
    """Python classes of proto/."""
    protos = [os.path.join("proto", f) for f in sorted(os.listdir(os.path.join(ROOT, "proto")))
              if f.endswith(".proto") and not f.endswith("_service.proto")]
    subprocess.run(["protoc", f"--python_out={folder}", "-I", "."] + protos, cwd=ROOT, check=True)
    sys.path.insert(0, folder)
    os.environ["PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION"] = "python"
    return importlib.import_module("proto.event_pb2"), importlib.import_module("proto.graph_pb2")


def train(folder):
    trace = os.path.join(folder, "trace.json")
    subprocess.run([os.path.join(BUILD, "tenon"), "launch", "--ps", "1", "--workers", "1", "--",
                    os.path.join(BUILD, "example_mnist_replica"), "--data",
                    os.path.join(ROOT, "share", "mnist"), "--training_epochs=1",
                    f"--logs_path={folder}", f"--trace={trace}"], check=True,
                   stdout=subprocess.DEVNULL)
    return glob.glob(os.path.join(folder, "worker0", "*"))[0], trace


def read_graph(event_pb2, graph_pb2, path):
    data = open(path, "rb").read()
    at = 0
    while at < len(data):
        length, = struct.unpack_from("<Q", data, at)
        event = event_pb2.Event.FromString(data[at + 12:at + 12 + length])
        if event.graph_def:
            return graph_pb2.GraphDef.FromString(event.graph_def)
        at += 12 + length + 4
    raise RuntimeError(f"{path} has no graph")


def group_of(node):
    """One box a scope; one a variable with its readers and updates."""
    name = node.name
    for part in ("/update_", "update_"):
        if part in name:
            return "update " + name.split("update_", 1)[1].rsplit("/", 1)[0]
    if name.startswith(("weights/Variable", "biases/Variable", "global_step")):
        return "/".join(name.split("/")[:2]) if "/" in name else name
    if name.startswith("train/gradients"):
        return "gradients/" + name.split("/")[2]
    return name.split("/")[0]


def draw_graph(graph, path):
    groups, edges = {}, collections.Counter()
    by_name = {node.name: node for node in graph.node}
    skipped = ("init", "report", "random_normal", "Const", "save")
    shown = {n.name for n in graph.node
             if not group_of(n).startswith(skipped) and "Initializer" not in n.name
             and "/random_normal" not in n.name and not n.name.endswith("Assign")}
    for name in shown:
        groups.setdefault(group_of(by_name[name]), []).append(by_name[name])
    for name in shown:
        for source in by_name[name].input:
            source = source.lstrip("^").split(":")[0]
            if source in shown:
                pair = (group_of(by_name[source]), group_of(by_name[name]))
                if pair[0] != pair[1]:
                    edges[pair] += 1
    lines = ["digraph {", 'rankdir=BT; bgcolor=transparent; nodesep=0.25; ranksep=0.35;',
             'node [shape=box style="rounded,filled" fontname="Helvetica" fontsize=11 color="#555555"];',
             'edge [color="#888888" arrowsize=0.6];']
    joined = {group for pair in edges for group in pair}
    for group, nodes in sorted(groups.items()):
        if group not in joined:
            continue
        device = collections.Counter(n.device for n in nodes).most_common(1)[0][0]
        label = f"{group}\\n{len(nodes)} ops" if len(nodes) > 1 else group
        lines.append(f'"{group}" [label="{label}" fillcolor="{COLOURS.get(device, "#eeeeee")}"];')
    lines += [f'"{a}" -> "{b}";' for a, b in sorted(edges)]
    subprocess.run(["dot", "-Tsvg", "-o", path], input="\n".join(lines + ["}"]), text=True,
                   check=True)


def draw_trace(trace, path):
    events = json.load(open(trace))
    events = events["traceEvents"] if isinstance(events, dict) else events
    processes = {e["pid"]: e["args"]["name"] for e in events
                 if e["ph"] == "M" and e["name"] == "process_name"}
    spans = sorted((e for e in events if e["ph"] == "X"), key=lambda e: e["ts"])
    start = spans[0]["ts"]
    end = max(e["ts"] + e["dur"] for e in spans)
    lanes = []  # (device, end of the last span in it)
    width, left, row = 1100, 150, 22
    scale = width / (end - start)
    boxes = []
    for e in spans:
        device = processes.get(e["pid"], str(e["pid"])).replace("/replica:0", "").replace(
            "/device:CPU:0", "")
        lane = next((i for i, (d, until) in enumerate(lanes) if d == device and until <= e["ts"]),
                    None)
        if lane is None:
            lane = len(lanes)
            lanes.append(None)
        lanes[lane] = (device, e["ts"] + e["dur"])
        boxes.append((device, lane, e))
    order = sorted(range(len(lanes)), key=lambda i: (lanes[i][0], i))
    place = {lane: i for i, lane in enumerate(order)}
    height = 30 + row * len(lanes) + 10
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 20} {height}" '
           'font-family="Helvetica, sans-serif" font-size="11">',
           f'<text x="{left}" y="14">one step, {(end - start) / 1000:.2f} ms</text>']
    named = set()
    for lane in order:
        if lanes[lane][0] not in named:
            named.add(lanes[lane][0])
            out.append(f'<text x="4" y="{30 + place[lane] * row + 14}">{lanes[lane][0]}</text>')
    for device, lane, e in boxes:
        waits = e["name"].split(" ")[0].startswith("_")
        colour = "#e5e5e5" if waits else "#f4a261" if "ps" in device else "#58a6c7"
        x, w = left + (e["ts"] - start) * scale, max(e["dur"] * scale, 0.8)
        y = 30 + place[lane] * row
        label = html.escape(e["name"])
        out.append(f'<rect x="{x:.1f}" y="{y}" width="{w:.1f}" height="{row - 4}" fill="{colour}" '
                   f'stroke="#777" stroke-width="0.4"><title>{label} {e["dur"]:.0f} us</title></rect>')
        if w > 7 * len(label):
            out.append(f'<text x="{x + 3:.1f}" y="{y + 13}">{label}</text>')
    open(path, "w", encoding="utf-8").write("\n".join(out + ["</svg>", ""]))


def main():
    with tempfile.TemporaryDirectory() as folder:
        event_pb2, graph_pb2 = messages(folder)
        events, trace = train(folder)
        draw_graph(read_graph(event_pb2, graph_pb2, events), os.path.join(HERE, "graph.svg"))
        draw_trace(trace, os.path.join(HERE, "trace.svg"))


if __name__ == "__main__":
    main()
