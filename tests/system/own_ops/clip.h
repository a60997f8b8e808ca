// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/tenon.h"

/// The ops of clip.ops.
void RegisterClipOps(tenon::OpRegistry& ops);
