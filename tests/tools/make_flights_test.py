# SPDX-License-Identifier: Apache-2.0
"""share/flights has the rows that share/bench/make_flights.py makes, where an environment has what that needs."""
import csv
import gzip
import hashlib
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "share" / "flights" / "flights_sample.csv.gz"
sys.path.insert(0, str(ROOT / "share" / "bench"))
sys.dont_write_bytecode = True

import make_flights  # noqa: E402  pylint: disable=wrong-import-position

PEERS = pathlib.Path(os.environ.get("TENON_LINEAR_PEERS", "~/.cache/tenon/linear-peers")).expanduser()


class MakeFlightsTest(unittest.TestCase):
    def test_the_sample_is_the_recorded_one(self):
        data = gzip.decompress(SAMPLE.read_bytes())
        self.assertEqual(hashlib.sha256(data).hexdigest(), make_flights.SHA256[SAMPLE.name])
        rows = list(csv.reader(io.StringIO(data.decode())))
        self.assertEqual(rows[0], make_flights.COLUMNS)
        self.assertEqual(len(rows), 1 + make_flights.SAMPLE_ROWS)
        self.assertFalse(any(value in ("", "NA") for row in rows for value in row))

    def test_gzip_has_neither_time_nor_name(self):
        self.assertEqual(SAMPLE.read_bytes()[3:8], bytes(5))
        self.assertLess(SAMPLE.stat().st_size, 1 << 20)

    def test_readme_names_every_column(self):
        text = (ROOT / "share" / "flights" / "README.md").read_text(encoding="utf-8")
        for column in make_flights.COLUMNS:
            self.assertIn(f"`{column}`", text)

    def test_the_tables_are_made_again(self):
        python = PEERS / "bin" / "python"
        if not python.exists():
            self.skipTest(f"no environment at {PEERS}; share/bench/linear_peers.py --install makes it")
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([python, ROOT / "share" / "bench" / "make_flights.py", folder, "--only", "flights"],
                                  capture_output=True, text=True, timeout=120, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertEqual(done.stdout.count(" rows\n"), 3, done.stdout)
            made = pathlib.Path(folder, SAMPLE.name).read_bytes()
            self.assertEqual(gzip.decompress(made), gzip.decompress(SAMPLE.read_bytes()))


if __name__ == "__main__":
    unittest.main()
