#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What libtenon_cuda.so takes from the program that loads it is in cmake/plugin_symbols.txt."""
import fnmatch
import os
import re
import subprocess
import sys

SOURCE = os.environ.get("TENON_SOURCE_DIR", ".")
BINARY = os.environ.get("TENON_BINARY_DIR", "build/release")


def patterns(text):
    """The globs of a dynamic list; between quotes, names."""
    return [re.sub(r"([\[?*])", r"[\1]", name) if quoted else name.replace("[", "[[]")
            for quoted, name in re.findall(r'^ *("?)([^"\n]*tenon::[^"\n]*)\1;$', text, re.M)]


def main():
    plugin = os.path.join(BINARY, "libtenon_cuda.so")
    if not os.path.exists(plugin):
        print("this build has no plugin for GPUs")
        sys.exit(77)
    with open(os.path.join(SOURCE, "cmake", "plugin_symbols.txt"), encoding="utf-8") as file:
        shown = patterns(file.read())
    assert len(shown) > 20, shown
    out = subprocess.run(["nm", "--dynamic", "--undefined-only", "--demangle", plugin], check=True,
                         stdout=subprocess.PIPE, text=True).stdout
    taken = [name for name in re.findall(r"^ +U (.*)$", out, re.M) if "tenon::" in name]
    assert taken, out
    missing = [name for name in taken if not any(fnmatch.fnmatchcase(name, p) for p in shown)]
    print("\n".join(missing) or f"all of {len(taken)} symbols are shown")
    sys.exit(1 if missing else 0)


if __name__ == "__main__":
    main()
