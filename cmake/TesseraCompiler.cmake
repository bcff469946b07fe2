# SPDX-License-Identifier: Apache-2.0
# How every target of this project is compiled.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Without the first it keeps nothing that was compiled with a precompiled header; the second is explained in
  # TesseraPrecompiled.cmake. The others let one checkout use what another one has compiled.
  set(ccache env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_PCH_EXTSUM=1
                 "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1 "${CCACHE_PROGRAM}")
  set(CMAKE_CXX_COMPILER_LAUNCHER ${ccache})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${ccache})
endif()

# Compile options of our own code; never passed on to those who link to it.
add_library(tessera_options INTERFACE)
set(cxx "$<COMPILE_LANGUAGE:CXX>")
target_compile_options(tessera_options INTERFACE
  "$<${cxx}:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wconversion;-Wnon-virtual-dtor;-Woverloaded-virtual>")
# GCC 12 warns without cause inside std::string::operator+ and std::regex (GCC bugs 105651, 105562).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(tessera_options INTERFACE "$<${cxx}:-Wno-maybe-uninitialized;-Wno-restrict>")
endif()
# GCC 13 takes every reference that a function returns and was given a temporary for a dangling one.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
  target_compile_options(tessera_options INTERFACE "$<${cxx}:-Wno-dangling-reference>")
endif()
if(TESSERA_WARNINGS_AS_ERRORS)
  target_compile_options(tessera_options INTERFACE "$<${cxx}:-Werror>"
                         "$<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>")
endif()
if(TESSERA_SANITIZE STREQUAL "thread")
  target_compile_options(tessera_options INTERFACE "$<${cxx}:-fsanitize=thread;-fno-omit-frame-pointer>")
  target_link_options(tessera_options INTERFACE -fsanitize=thread)
elseif(TESSERA_SANITIZE)
  target_compile_options(tessera_options INTERFACE
    "$<${cxx}:-fsanitize=address,undefined;-fno-sanitize-recover=all;-fno-omit-frame-pointer>")
  target_link_options(tessera_options INTERFACE -fsanitize=address,undefined)
endif()
if(TESSERA_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "TESSERA_FUZZ needs clang: -DCMAKE_CXX_COMPILER=clang++")
  endif()
  target_compile_options(tessera_options INTERFACE
    "$<${cxx}:-fsanitize=fuzzer-no-link,address,undefined;-fno-sanitize-recover=all;-fno-omit-frame-pointer>")
  target_link_options(tessera_options INTERFACE -fsanitize=address,undefined)
endif()
