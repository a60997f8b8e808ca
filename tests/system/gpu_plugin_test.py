#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program outside the tree, built against an installed Tenon, has what the plugin for GPUs takes from
it, and finds the plugin beside the libraries. Without a GPU: the driver is a fake."""
import glob
import os
import sys
import tempfile

import fake_gpu
import outside_project

PROGRAM = """
#include <iostream>

#include "tenon/tenon.h"

int main() {
  tenon::Graph graph(tenon::AllOps());
  {
    tenon::GraphBuilding building(graph);
    tenon::Const(1.0f, {.name = "one"});
  }
  auto session = tenon::MakeLocalSession(graph);
  std::cout << tenon::ListGpus().status().message() << std::endl;
  return session.ok() && (*session)->Run({}, {"one"}).ok() ? 0 : 1;
}
"""


def main():
    with tempfile.TemporaryDirectory() as folder:
        programs = outside_project.build_program(folder, "first", PROGRAM)
        found = glob.glob(os.path.join(folder, "prefix", "lib*", "**", "libtenon_cuda.so"),
                          recursive=True)
        if not found:
            print("this build has no plugin for GPUs")
            sys.exit(77)
        driver = fake_gpu.driver(os.path.join(folder, "driver"), 13000)
        program = os.path.join(programs, "first")
        done = fake_gpu.run(program, driver=driver, plugin=found[0])
        assert done.returncode == 0, done
        # All that it needs was there: it asked the driver for GPUs.
        assert done.stdout.startswith("the NVIDIA driver shows no GPU: "), done
        installed = os.path.join(folder, "prefix", "bin", "tenon")
        assert "no GPU: the NVIDIA driver shows no GPU: " in fake_gpu.devices(
            driver, tenon=installed)[-1], fake_gpu.devices(driver, tenon=installed)
    print("the plugin was loaded by a program outside the tree, and by the installed tenon")


if __name__ == "__main__":
    main()
