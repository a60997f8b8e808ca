// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/status.h"
#include "core/op/function.h"
#include "proto/function.pb.h"

// Function libraries from and to their message.

namespace tenon {

/// Adds the functions of `proto` to `*library`. InvalidArgument, naming the function, for one whose
/// name an op has, that is there already with another body, whose signature or an attribute cannot
/// be read, and for a gradient of or by a function that is not there. What is wrong in a body is
/// found when it is called. On error the library is unchanged.
Status AddFunctionsFromProto(const FunctionDefLibrary& proto, const OpRegistry& registry,
                             FunctionLibrary* library);

/// Replaces `*out`.
Status FunctionsToProto(const FunctionLibrary& library, FunctionDefLibrary* out);

}  // namespace tenon
