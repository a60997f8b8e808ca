// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/clock.h"

namespace tenon {

/// The clock of the machine. Lives until the process ends; has one thread, from the first CallAfter
/// on.
Clock& MachineClock();

}  // namespace tenon
