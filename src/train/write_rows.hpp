// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "tessera/core/parallel.hpp"

namespace tessera::train {

/// Writes a text of a head, a piece for each row and a tail. The pieces are made by all threads,
/// some at a time, so that a long text needs little memory; the file appears whole or not at all.
void write_rows(const std::string& path, const std::string& head, std::int64_t rows,
                FunctionRef<void(std::string& text, std::int64_t row)> append,
                const std::string& tail = {});

}  // namespace tessera::train
