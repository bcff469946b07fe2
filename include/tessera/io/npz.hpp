// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tessera/io/open.hpp"

namespace tessera::io {

/// NumPy's zip of arrays: `row`, `col`, `num_nodes` (or `num_rows`, `num_cols`), optional `value`,
/// features (`x`, or `x_indptr`, `x_indices`, `x_data`, `x_dim`), labels `y`, `train_idx`,
/// `val_idx`, `test_idx` (or masks), `graph_id`, `graph_label`. docs/formats.md has the details.
Dataset read_npz(const std::string& path, const ReadOptions& options = {});
void write_npz(const Dataset& dataset, const std::string& path, const Progress& progress = {});

}  // namespace tessera::io
