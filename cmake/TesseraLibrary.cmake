# SPDX-License-Identifier: Apache-2.0
# The library: every source file below src/.
file(GLOB_RECURSE TESSERA_SOURCES CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/*.cpp")

add_library(tessera ${TESSERA_SOURCES})
add_library(tessera::tessera ALIAS tessera)
target_include_directories(tessera
  PUBLIC "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>"
         "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>"
  PRIVATE "${PROJECT_SOURCE_DIR}/src")
target_compile_features(tessera PUBLIC cxx_std_20)
target_compile_definitions(tessera PRIVATE TESSERA_VERSION="${PROJECT_VERSION}")
target_link_libraries(tessera PRIVATE $<BUILD_INTERFACE:tessera_options> OpenMP::OpenMP_CXX
                                      ZLIB::ZLIB fmt::fmt)
set_target_properties(tessera PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})

if(TESSERA_WITH_METIS)
  target_compile_definitions(tessera PRIVATE TESSERA_WITH_METIS)
  target_include_directories(tessera SYSTEM PRIVATE "${METIS_INCLUDE_DIR}")
  target_link_libraries(tessera PRIVATE "${METIS_LIBRARY}")
endif()
