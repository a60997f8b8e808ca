# SPDX-License-Identifier: Apache-2.0
"""Which families of ops have changed since all of them were compared with TensorFlow.

conformance_digests.json, which is committed, has for each family (a folder of ops/) a digest of all
that its results depend on: its sources, what all families share, core, runtime, and the comparison
itself. `op_conformance_test.py --all --record` writes it.
"""
import hashlib
import json
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
RECORD = pathlib.Path(__file__).with_suffix(".json")
SOURCES = {".cc", ".h", ".cu", ".cuh", ".ops", ".py"}


def _digest(files):
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(str(file.relative_to(ROOT)).encode() + b"\0")
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:16]


def _sources(folder, pattern="**/*"):
    return [f for f in (ROOT / folder).glob(pattern) if f.suffix in SOURCES]


def families():
    """Family -> the names of its ops."""
    found = {}
    for declarations in (ROOT / "ops").glob("*/*.ops"):
        text = declarations.read_text()
        found[declarations.parent.name] = set(re.findall(r"^op (\w+)", text, re.M))
    return found


def digests():
    """Family -> its digest now."""
    shared = _digest(_sources("core") + _sources("runtime") + _sources("ops", "*") +
                     _sources("tests/interop", "op_*") + _sources("tests/interop", "*_hints.py"))
    return {family: hashlib.sha256((shared + _digest(_sources(f"ops/{family}"))).encode()).hexdigest()[:16]
            for family in families()}


def changed_families():
    """Those whose digest is not the recorded one."""
    recorded = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    return {family for family, digest in digests().items() if recorded.get(family) != digest}


def record():
    RECORD.write_text(json.dumps(digests(), indent=1, sort_keys=True) + "\n")
