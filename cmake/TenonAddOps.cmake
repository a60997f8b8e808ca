# SPDX-License-Identifier: Apache-2.0
#
# tenon_add_ops(TARGET FILE.ops [FOLDER] [REGISTER SOURCES...]): the ops that FILE.ops declares, for your
# target. Makes FILE_ops.h, with the C++ functions and `bool DeclareFileOps(OpRegistry&)`, and
# FILE_ops.cc, in FOLDER (by default tenon_ops/ of the build folder, which the target then looks for
# headers in). With REGISTER, instead of the latter `void RegisterFileOps(OpRegistry&)`, which also calls
# every `void RegisterXxx(OpRegistry& ops)` of the sources, functions of namespace tenon and of no other.
function(tenon_add_ops TARGET DECLARATIONS)
  cmake_parse_arguments(ARG "" "" "REGISTER" ${ARGN})
  cmake_path(ABSOLUTE_PATH DECLARATIONS)
  cmake_path(GET DECLARATIONS STEM stem)
  if(ARG_UNPARSED_ARGUMENTS)
    set(folder "${ARG_UNPARSED_ARGUMENTS}")
  else()
    set(folder "${CMAKE_CURRENT_BINARY_DIR}/tenon_ops")
    target_include_directories(${TARGET} PRIVATE "${folder}")
  endif()
  file(MAKE_DIRECTORY "${folder}")
  set(register "")
  set(sources "")
  foreach(source IN LISTS ARG_REGISTER)
    cmake_path(ABSOLUTE_PATH source)
    list(APPEND sources "${source}")
  endforeach()
  if("REGISTER" IN_LIST ARGN)
    set(register --register ${sources})
  endif()
  add_custom_command(OUTPUT "${folder}/${stem}_ops.cc" "${folder}/${stem}_ops.h"
    DEPENDS "${DECLARATIONS}" ${sources} Tenon::generate_ops
    COMMAND Tenon::generate_ops "${DECLARATIONS}" "${folder}" ${register})
  target_sources(${TARGET} PRIVATE "${folder}/${stem}_ops.cc" "${folder}/${stem}_ops.h")
endfunction()
