// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tessera/io/open.hpp"

/// Options of reading that would change nothing: a user who gives one expects something else to
/// happen.
namespace tessera::io {

/// Throws for the first option for tables that was given. `kind` says what the data is instead.
void reject_table_options(const ReadOptions& options, const std::string& source,
                          const std::string& kind);

/// Throws for options about the numbers of vertices, which a table of them makes useless.
void reject_numbering(const EdgeListOptions& options);

}  // namespace tessera::io
