// SPDX-License-Identifier: Apache-2.0
//
// libtenon_gloo.so: what a program with Tenon loads when its process becomes a rank by Gloo.
#include "core/device/plugin_version.h"
#include "runtime/gloo/gloo_backend.h"

extern "C" const tenon::CollectivesPlugin* TenonCollectivesPlugin() {
  static const tenon::CollectivesPlugin plugin = {tenon::kPluginVersion, tenon::JoinByGloo};
  return &plugin;
}
