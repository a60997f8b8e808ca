# SPDX-License-Identifier: Apache-2.0
#
# tenon_add_ops(TARGET FILE.ops [FOLDER] [BASIC] [REGISTER SOURCES...]): the ops that FILE.ops declares, for
# your target. Makes FILE_ops.h, with the C++ functions and `bool DeclareFileOps(OpRegistry&)`, and
# FILE_ops.cc, in FOLDER (by default tenon_ops/ of the build folder, which the target then looks for
# headers in). With REGISTER, instead of the latter `void RegisterFileOps(OpRegistry&)`, which also calls
# every `void RegisterXxx(OpRegistry& ops)` of the sources, functions of namespace tenon and of no other. With
# BASIC the functions of the ops that FILE.ops declares as basic stand in FILE_basic_ops.h.
function(tenon_add_ops TARGET DECLARATIONS)
  cmake_parse_arguments(ARG "BASIC" "" "REGISTER" ${ARGN})
  cmake_path(ABSOLUTE_PATH DECLARATIONS)
  cmake_path(GET DECLARATIONS STEM stem)
  if(ARG_UNPARSED_ARGUMENTS)
    set(folder "${ARG_UNPARSED_ARGUMENTS}")
  else()
    set(folder "${CMAKE_CURRENT_BINARY_DIR}/tenon_ops")
    target_include_directories(${TARGET} PRIVATE "${folder}")
  endif()
  file(MAKE_DIRECTORY "${folder}")
  set(made "${folder}/${stem}_ops.cc" "${folder}/${stem}_ops.h")
  set(options "")
  set(sources "")
  if(ARG_BASIC)
    list(APPEND made "${folder}/${stem}_basic_ops.h")
    list(APPEND options --basic)
  endif()
  foreach(source IN LISTS ARG_REGISTER)
    cmake_path(ABSOLUTE_PATH source)
    list(APPEND sources "${source}")
  endforeach()
  if("REGISTER" IN_LIST ARGN)
    list(APPEND options --register ${sources})
  endif()
  add_custom_command(OUTPUT ${made}
    DEPENDS "${DECLARATIONS}" ${sources} Tenon::generate_ops
    COMMAND Tenon::generate_ops "${DECLARATIONS}" "${folder}" ${options})
  target_sources(${TARGET} PRIVATE ${made})
endfunction()
