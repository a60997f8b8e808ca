# SPDX-License-Identifier: Apache-2.0
#
# Installs the libraries, the headers (as <prefix>/include/tenon/core/tensor.h and so on, found by
# `#include "core/tensor/tensor.h"`), the .proto files, the package that find_package(Tenon) reads and the file that
# pkg-config reads, the pages of docs/ and the examples' sources.

include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/Tenon")
get_property(libraries GLOBAL PROPERTY TENON_LIBRARIES)

# What a user's program links: all layers. Tenon::core and the others exist too.
add_library(tenon_all INTERFACE)
add_library(Tenon::tenon ALIAS tenon_all)
set_target_properties(tenon_all PROPERTIES EXPORT_NAME tenon)
target_link_libraries(tenon_all INTERFACE ${libraries})

install(TARGETS tenon_all tenon_generate_ops ${libraries} EXPORT TenonTargets
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
install(EXPORT TenonTargets NAMESPACE Tenon:: DESTINATION "${package_dir}")
foreach(folder core data ops runtime distributed train tenon examples)
  if(IS_DIRECTORY "${PROJECT_SOURCE_DIR}/${folder}")
    install(DIRECTORY "${PROJECT_SOURCE_DIR}/${folder}"
      DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/tenon" FILES_MATCHING PATTERN "*.h")
  endif()
endforeach()
install(FILES "${PROJECT_SOURCE_DIR}/tools/flag_checks.h"  # which the examples use
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/tenon/tools")
install(DIRECTORY "${PROJECT_BINARY_DIR}/gen/ops" DESTINATION
  "${CMAKE_INSTALL_INCLUDEDIR}/tenon" FILES_MATCHING PATTERN "*.h")
install(DIRECTORY "${PROJECT_BINARY_DIR}/gen/proto" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/tenon"
  FILES_MATCHING PATTERN "*.pb.h")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/proto" DESTINATION "${CMAKE_INSTALL_DATADIR}/tenon"
  FILES_MATCHING PATTERN "*.proto")

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/TenonConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/TenonConfig.cmake" INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/TenonConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/TenonConfig.cmake"
  "${PROJECT_BINARY_DIR}/TenonConfigVersion.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/TenonAddOps.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/TenonDependencies.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/plugin_symbols.txt" DESTINATION "${package_dir}")
# For who builds with neither CMake nor its targets: pkg-config --cflags --libs tenon.
set(TENON_PC_LIBRARIES "")
foreach(library IN LISTS libraries)
  get_target_property(type ${library} TYPE)
  if(NOT type STREQUAL "INTERFACE_LIBRARY")
    string(APPEND TENON_PC_LIBRARIES " -l${library}")
  endif()
endforeach()
configure_file("${PROJECT_SOURCE_DIR}/cmake/tenon.pc.in" "${PROJECT_BINARY_DIR}/tenon.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/tenon.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

# For people: the pages, and what they lead to, at the places that they have in the source tree, so that the links
# between them hold (tools/check_links.py).
install(DIRECTORY "${PROJECT_SOURCE_DIR}/docs" DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT programs
  FILES_MATCHING PATTERN "*.md" PATTERN "*.svg" PATTERN "*.png" PATTERN "make_pictures.py")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/examples" DESTINATION "${CMAKE_INSTALL_DOCDIR}"
  COMPONENT programs FILES_MATCHING PATTERN "*.cc" PATTERN "README.md")
foreach(page LICENSE README.md CHANGELOG.md CONTRIBUTING.md proto/README.md share/flights/README.md
    share/mnist/README.md tests/fuzz/README.md tests/interop/scripts/flights_estimator.py
    tests/interop/scripts/flights_linear.py tests/interop/scripts/mnist_replica.py)
  cmake_path(GET page PARENT_PATH folder)
  install(FILES "${PROJECT_SOURCE_DIR}/${page}" DESTINATION "${CMAKE_INSTALL_DOCDIR}/${folder}" COMPONENT programs)
endforeach()
install(DIRECTORY "${PROJECT_SOURCE_DIR}/share/mnist" "${PROJECT_SOURCE_DIR}/share/flights"
  "${PROJECT_SOURCE_DIR}/share/bench"
  DESTINATION "${CMAKE_INSTALL_DATADIR}/tenon" COMPONENT programs)
