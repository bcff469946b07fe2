# SPDX-License-Identifier: Apache-2.0
# Install rules: `find_package(tessera)` and pkg-config both work from the installed tree, wherever it
# is moved.
include(CMakePackageConfigHelpers)
set(package_folder "${CMAKE_INSTALL_LIBDIR}/cmake/tessera")

install(TARGETS tessera EXPORT tesseraTargets)
if(TARGET tessera_shared)
  install(TARGETS tessera_shared EXPORT tesseraTargets)
endif()
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/tessera" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
        PATTERN detail EXCLUDE)
install(EXPORT tesseraTargets NAMESPACE tessera:: DESTINATION "${package_folder}")
if(TESSERA_BUILD_APP)
  install(TARGETS tessera_app)
  # What the program names where a file is one that only Python can read.
  install(FILES "${PROJECT_SOURCE_DIR}/examples/python/to_npz.py"
                "${PROJECT_SOURCE_DIR}/examples/python/planetoid_files.py"
                "${PROJECT_SOURCE_DIR}/examples/python/torch_files.py"
          DESTINATION "${CMAKE_INSTALL_DATADIR}/tessera")
endif()

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/tesseraConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/tesseraConfig.cmake" INSTALL_DESTINATION "${package_folder}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/tesseraConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/tesseraConfig.cmake"
              "${PROJECT_BINARY_DIR}/tesseraConfigVersion.cmake" DESTINATION "${package_folder}")

# A shared tessera knows what it needs. For the static one, which `--static` is for, name it all.
set(TESSERA_PC_PRIVATE "-lfmt -lz -lgomp -ldl")
if(TESSERA_WITH_METIS)
  string(APPEND TESSERA_PC_PRIVATE " -lmetis")
endif()
if(TESSERA_WITH_CUDA)
  string(APPEND TESSERA_PC_PRIVATE " -L${CUDAToolkit_LIBRARY_DIR} -lcudart -lcublas")
endif()
configure_file("${PROJECT_SOURCE_DIR}/cmake/tessera.pc.in" "${PROJECT_BINARY_DIR}/tessera.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/tessera.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
