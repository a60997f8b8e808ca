# SPDX-License-Identifier: Apache-2.0
#
# libtenon_gloo.so, the plugin for collectives by Gloo: runtime/gloo and plugins/gloo.cc. Programs load it
# when their processes become ranks, and do without it and Gloo otherwise. libtenon_openmpi.so and
# libtenon_mpich.so are those for MPI, of runtime/mpi and plugins/mpi.cc, where the headers are.

find_path(TENON_GLOO_INCLUDE gloo/allreduce.h REQUIRED)
find_library(TENON_GLOO_LIBRARY gloo REQUIRED)

# For the plugin and for the tests.
file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/runtime/gloo/*.cc")
add_library(tenon_gloo_backend STATIC ${sources})
tenon_plugin_sees(tenon_gloo_backend runtime)
target_include_directories(tenon_gloo_backend SYSTEM PRIVATE "${TENON_GLOO_INCLUDE}")
target_link_libraries(tenon_gloo_backend PRIVATE tenon_warnings PUBLIC "${TENON_GLOO_LIBRARY}")

# Symbols of Tenon stay open: the program has them.
add_library(tenon_gloo MODULE "${PROJECT_SOURCE_DIR}/plugins/gloo.cc")
tenon_plugin_sees(tenon_gloo runtime)
target_link_libraries(tenon_gloo PRIVATE tenon_gloo_backend tenon_warnings absl::status absl::statusor
  absl::strings)
target_link_options(tenon_gloo PRIVATE "LINKER:--as-needed")
add_dependencies(programs tenon_gloo)
install(TARGETS tenon_gloo LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT programs)

# The library NAME of MPI: its header is found beside another one that it alone has.
function(tenon_mpi NAME HEADER LIBRARY)
  string(TOUPPER "${NAME}" upper)
  set(place "/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/${NAME}")
  find_path(TENON_${upper}_INCLUDE "${HEADER}" HINTS "${place}/include"
    PATH_SUFFIXES ${NAME} ${NAME}-x86_64)
  find_library(TENON_${upper}_LIBRARY "${LIBRARY}" HINTS "${place}/lib" NO_CACHE)
  if(NOT TENON_${upper}_INCLUDE OR NOT TENON_${upper}_LIBRARY)
    message(STATUS "no libtenon_${NAME}.so: ${HEADER} or lib${LIBRARY}.so is missing (lib${NAME}-dev; "
      "TENON_${upper}_INCLUDE names the folder of another place)")
    return()
  endif()
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/runtime/mpi/*.cc")
  set(target tenon_${NAME})
  add_library(${target} MODULE "${PROJECT_SOURCE_DIR}/plugins/mpi.cc" ${sources})
  tenon_plugin_sees(${target} runtime)
  target_include_directories(${target} SYSTEM PRIVATE "${TENON_${upper}_INCLUDE}")
  target_link_libraries(${target} PRIVATE "${TENON_${upper}_LIBRARY}" tenon_warnings absl::status
    absl::statusor absl::strings)
  target_link_options(${target} PRIVATE "LINKER:--as-needed")
  add_dependencies(programs ${target})
  install(TARGETS ${target} LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT programs)
endfunction()

tenon_mpi(openmpi mpi_portable_platform.h mpi)
tenon_mpi(mpich mpi_proto.h mpich)
