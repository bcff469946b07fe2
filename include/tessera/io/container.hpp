// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tessera/io/open.hpp"

namespace tessera::io {

/// Tessera's own file: every array of a data set as it lies in memory, aligned for mapping, each
/// with its checksum. docs/formats.md describes it byte by byte.
Dataset read_container(const std::string& path, const ReadOptions& options = {});
void write_container(const Dataset& dataset, const std::string& path,
                     const Progress& progress = {});

}  // namespace tessera::io
