# SPDX-License-Identifier: Apache-2.0
# Headers of others that most files of a target include take the compiler longer than the files themselves:
# they are read once for each target. Never our own, so that an edit recompiles what includes it and no more.
# Every file still names what it uses: the preset `clang` builds without them.
set(TESSERA_STANDARD_HEADERS
  <algorithm> <array> <cmath> <cstdint> <functional> <limits> <map> <memory> <mutex> <numeric> <optional>
  <span> <string> <string_view> <utility> <vector> <fmt/format.h>)

function(tessera_precompile target)
  if(NOT TESSERA_PRECOMPILE)
    return()
  endif()
  list(TRANSFORM ARGN REPLACE "(.+)" "$<$<COMPILE_LANGUAGE:CXX>:\\1>" OUTPUT_VARIABLE headers)
  target_precompile_headers(${target} PRIVATE ${headers})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # so that ccache sees which one was used
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>")
  endif()
  # GCC never writes the same bytes twice. What ccache is to compare instead: what the bytes are made of.
  file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${target}.dir/cmake_pch.hxx.gch.sum" CONTENT
    "${ARGN} ${CMAKE_CXX_COMPILER_VERSION} ${fmt_VERSION} ${GTest_VERSION} ${CLI11_VERSION} ${nlohmann_json_VERSION}")
endfunction()

# For a target that is compiled with the same flags as another.
function(tessera_reuse_precompiled target other)
  if(NOT TESSERA_PRECOMPILE)
    return()
  endif()
  target_precompile_headers(${target} REUSE_FROM ${other})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>")
  endif()
endfunction()
