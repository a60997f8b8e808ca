# SPDX-License-Identifier: Apache-2.0
#
# tenon_add_ops(TARGET FILE.ops [FOLDER]): the ops that FILE.ops declares, for your target. Makes
# FILE_ops.h, with the C++ functions and `bool DeclareFileOps(OpRegistry&)`, and FILE_ops.cc, in FOLDER
# (by default tenon_ops/ of the build folder, which the target then looks for headers in).
function(tenon_add_ops TARGET DECLARATIONS)
  cmake_path(ABSOLUTE_PATH DECLARATIONS)
  cmake_path(GET DECLARATIONS STEM stem)
  if(ARGC GREATER 2)
    set(folder "${ARGV2}")
  else()
    set(folder "${CMAKE_CURRENT_BINARY_DIR}/tenon_ops")
    target_include_directories(${TARGET} PRIVATE "${folder}")
  endif()
  file(MAKE_DIRECTORY "${folder}")
  add_custom_command(OUTPUT "${folder}/${stem}_ops.cc" "${folder}/${stem}_ops.h"
    DEPENDS "${DECLARATIONS}" Tenon::generate_ops
    COMMAND Tenon::generate_ops "${DECLARATIONS}" "${folder}")
  target_sources(${TARGET} PRIVATE "${folder}/${stem}_ops.cc" "${folder}/${stem}_ops.h")
endfunction()
