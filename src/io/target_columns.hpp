// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "tessera/data/dataset.hpp"

#include "io/table_columns.hpp"
#include "io/table_rows.hpp"

/// Columns of numbers that are to be predicted (`Dataset::targets`).
namespace tessera::io {

/// Puts columns of a table into a data set. A value that is no finite number is an error that says
/// where it stands.
void add_targets(TableRows& rows, const std::vector<std::int64_t>& columns,
                 const Progress& progress, Dataset& dataset);

/// The same of a column in memory, which holds numbers.
void give_targets(const TextColumn& column, Dataset& dataset);

}  // namespace tessera::io
