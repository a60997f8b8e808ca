// SPDX-License-Identifier: Apache-2.0
//
// A libcuda.so.1 for hosts without one: the newest driver, as far as its version goes.

extern "C" int cuDriverGetVersion(int* version) {
  *version = 99990;
  return 0;
}
