// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/suite.hpp"

/// The vendor's library as something to compare with: no plan chooses it.
namespace tessera::bench {

/// The names of its algorithms; none in a build without CUDA.
std::vector<std::string> cusparse_names();

/// Whether a name is one of these or, with a star at the end, stands for the fastest of them.
bool is_cusparse(const std::string& kernel);

/// A X or, where `transposed`, A^T X, by the algorithm that the problem names.
std::unique_ptr<Trial> prepare_cusparse(const Problem& problem, bool transposed);

}  // namespace tessera::bench
