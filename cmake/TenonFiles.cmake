# SPDX-License-Identifier: Apache-2.0
#
# The plugins for files on servers: libtenon_s3.so for s3://, and libtenon_hdfs.so for hdfs://, webhdfs:// and
# swebhdfs://. Each is data/http, its room in data/ and its file in plugins/. Programs load one when such a
# path comes first, and do without it, libcurl and pugixml otherwise.

find_package(CURL 7.75 REQUIRED)
find_package(pugixml CONFIG REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(nlohmann_json CONFIG REQUIRED)

# tenon_file_room(ROOM LIBRARY...): the library tenon_ROOM_files of the sources in data/ROOM, which links the
# others; for plugins and for the tests.
function(tenon_file_room ROOM)
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/data/${ROOM}/*.cc")
  add_library(tenon_${ROOM}_files STATIC ${sources})
  tenon_plugin_sees(tenon_${ROOM}_files data)
  target_link_libraries(tenon_${ROOM}_files PRIVATE tenon_warnings PUBLIC ${ARGN})
  tenon_unity(tenon_${ROOM}_files)
endfunction()

tenon_file_room(http CURL::libcurl)
tenon_file_room(s3 tenon_http_files pugixml::pugixml OpenSSL::Crypto nlohmann_json::nlohmann_json)
tenon_file_room(hdfs tenon_http_files nlohmann_json::nlohmann_json)

# Symbols of Tenon stay open: the program has them.
foreach(plugin IN ITEMS s3 hdfs)
  add_library(tenon_${plugin} MODULE "${PROJECT_SOURCE_DIR}/plugins/${plugin}.cc")
  tenon_plugin_sees(tenon_${plugin} data)
  target_link_libraries(tenon_${plugin} PRIVATE tenon_${plugin}_files tenon_warnings absl::status
    absl::statusor absl::strings absl::str_format absl::time)
  target_link_options(tenon_${plugin} PRIVATE "LINKER:--as-needed")
  add_dependencies(programs tenon_${plugin})
  install(TARGETS tenon_${plugin} LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT programs)
endforeach()
