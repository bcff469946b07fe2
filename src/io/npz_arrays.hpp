// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tessera/core/progress.hpp"

#include "io/array.hpp"

namespace tessera::io {

/// Writes a .npz of these arrays, whatever they mean. The file appears whole or not at all.
void write_npz_arrays(const std::string& path, const std::vector<NamedArray>& arrays,
                      const Progress& progress = {});

}  // namespace tessera::io
