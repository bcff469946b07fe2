// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tessera/io/relational.hpp"

namespace tessera::io {

/// Whether a folder has a table of vertices of a kind.
bool holds_kind_tables(const std::string& folder);
RelationalData read_kind_tables(const std::string& folder, const ReadOptions& options);

}  // namespace tessera::io
