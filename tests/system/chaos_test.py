#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ten short schedules of chaos.py; tools/chaos.sh draws as many as one likes."""
import sys

import chaos

if __name__ == "__main__":
    sys.argv += ["--schedules", "10", "--short", "--seed", "1", "--at_once", "3"]
    sys.exit(chaos.main())
