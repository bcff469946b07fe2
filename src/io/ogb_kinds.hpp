// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tessera/io/relational.hpp"

namespace tessera::io {

/// Whether a folder has OGB's list of relations between kinds of vertices.
bool holds_ogb_kinds(const std::string& folder);
/// A folder of OGB as it is downloaded, such as that of ogbn-mag.
RelationalData read_ogb_kinds(const std::string& folder, const ReadOptions& options);

}  // namespace tessera::io
