# SPDX-License-Identifier: Apache-2.0
"""`tenon/tenon.h` has the functions of all ops: it includes every header that is generated, by itself or by
another one."""
import os
import pathlib
import re
import unittest

SOURCE = pathlib.Path(os.environ.get("TENON_SOURCE_DIR", "."))
GENERATED = pathlib.Path(os.environ.get("TENON_BINARY_DIR", "build/release")) / "gen"


def included(name, seen):
    """Adds the headers of the tree that `name` brings, and itself."""
    if name in seen:
        return
    for root in (SOURCE, GENERATED):
        path = root / name
        if path.exists():
            seen.add(name)
            for inner in re.findall(r'^#include "([^"]+)"', path.read_text(encoding="utf-8"), re.M):
                beside = str(pathlib.PurePosixPath(name).parent / inner)
                included(beside if (root / beside).exists() else inner, seen)


class OneHeaderTest(unittest.TestCase):

    def test_it_has_all_ops(self):
        headers = {str(path.relative_to(GENERATED)) for path in (GENERATED / "ops").glob("*/*_ops.h")}
        self.assertGreater(len(headers), 20)
        brought = set()
        included("tenon/tenon.h", brought)
        self.assertEqual(headers - brought, set())


if __name__ == "__main__":
    unittest.main()
