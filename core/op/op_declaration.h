// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/op/op_schema.h"

// The language in which ops are declared, in files that end in .ops:
//
//   # Everything about MatMul but what it does.
//   op CropAndResize(image: T [n, h, w, c], boxes: float [k, 4], box_ind: int32 [k],
//       crop_size: Host(int32) [2]) -> crops: float [k, ?, ?, c]
//     "Parts of images, resized to crop_size."
//     box_ind "Which image each box is a part of; a text may go on in
//       the next line."
//     T: {float, double}, method: {'bilinear', 'nearest'} = 'bilinear' "How to resize."
//
//   op Assert(condition: bool, data: Tlist) [stateful]
//     "Fails, with what data holds, unless condition is true."
//     Tlist: list(type) >= 1, summarize: int = 3 "At most so many elements of each tensor."
//
//   op FIFOQueue = FIFOQueueV2 with handle: Ref(string)
//
// An op has inputs, outputs after an arrow, flags in brackets, documentation, and attributes. Texts
// that follow each other are joined by a space. A text after names tells of these arguments; one
// after attributes, which commas join, of them all. A line's end means nothing, in texts too.
//
//   twins        op A = B is as B, an op of the same file, in all that it does not say. "with" has
//                arguments of another type, and new inputs with their place (with l2: T before
//                grad); "without" what it lacks. op A(inputs) -> outputs = B has its own arguments,
//                and the texts of B's where names agree. Flags, texts and attributes that it has
//                take the place of B's; new attributes come last.
//   shapes       [n, 4, ?] after an argument's type. A name is one size wherever the op has it: the
//                value of an int attribute, where it is one; among outputs that of a scalar input
//                with that name, or, as size[1], an element of a vector. n + 1 and n - 1 are sizes
//                too. "..." before the others is any number of sizes, the same ones wherever the op
//                has it. [] is a scalar. Each tensor of a list has the shape. DeclaredShape
//                (shape_inference.h) infers the shapes of outputs from it, and a kernel that is a
//                function is called only with inputs that have these shapes.
//   flags        stateful, commutative, aggregate, allows_uninitialized_input: as in an OpDef.
//                reads_outside: an op without state whose results do not follow from its inputs
//                alone, but from its task and the time as well: it is never computed
//                beforehand, nor are two of it made one.
//                no_gradient: none flows through it, by definition.
//                int32_on_host: where all its dtypes are int32 it runs on the host, whichever
//                device it is on, as what counts and gives shapes does.
//                function ShapeOf: the name of its C++ function; no_function: it has none; basic:
//                ops of other families are composed of it, so that its function has a header apart.
//                flow KIND: what it means to the flow of control (FlowKind): switch, merge, enter,
//                exit, next_iteration, control_trigger, transfer.
//                call KIND: the functions that it names take its place (CallKind): function,
//                gradient, remote, if, case, while, for.
//                arg, retval: it brings a fed tensor into a step's graph, or a fetched one out.
//                constant: its output is its attribute `value`.
//                placeholder: a client feeds its output, or may.
//                variable: its output stands for a variable, as a reference or a handle.
//                identity: its output is the value of its only input, or of the variable that this
//                is a handle of.
//                neutral_one second, neutral_one either: with 1 as the second operand, or as either
//                one, it gives the other operand.
//                The other flags are the traits of op_traits.h.
//   arguments    a: float   a: T (as attribute T says)   values: N * T (N of them)
//                data: Tlist (one for each entry of a list(type))   ref: Ref(T)
//                shape: Host(int32) (in host memory, wherever the op runs)
//                axes: int32 = all_axes (may be left out in C++: all axes of the first input)
//   attributes   int, float, bool, string, type, shape, tensor, func, and list(…) of these;
//                {float, double} and {'SAME', 'VALID'} for types and strings that may be no others;
//                floating, inexact (and complex), real (and integers), numeric (and quantised) and
//                index (int32, int64) for such sets of types; >= 1 for the least an int may be, or
//                how short a list; = and a default: 3, 1.5, true, 'text', float, [2, -1], ? (a
//                shape of unknown rank), [1, 2, []], uint8 [255, 0] (a tensor)
namespace tenon {

/// The ops that `text` declares. InvalidArgument, with `file` and the line before the reason, when
/// it cannot be read or contradicts itself. `file` only names the text.
StatusOr<std::vector<OpSchema>> ParseOpDeclarations(std::string_view text, std::string_view file);

}  // namespace tenon
