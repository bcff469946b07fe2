// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "bench/suite.hpp"

/// The suites of each file of this folder; suite.cpp puts them together.
namespace tessera::bench {

std::vector<Suite> spmm_suites();
std::vector<Suite> sddmm_suites();
std::vector<Suite> edge_softmax_suites();
std::vector<Suite> attention_suites();
std::vector<Suite> gemm_suites();
std::vector<Suite> layer_suites();  ///< the dense ops of a layer

}  // namespace tessera::bench
