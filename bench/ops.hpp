// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "bench/suite.hpp"

/// The suites of each file of this folder; suite.cpp puts them together.
namespace tessera::bench {

std::vector<Suite> spmm_suites();
std::vector<Suite> sddmm_suites();
std::vector<Suite> edge_softmax_suites();
std::vector<Suite> messages_suites();
std::vector<Suite> attention_suites();
std::vector<Suite> aggregate_update_suites();
std::vector<Suite> gemm_suites();
std::vector<Suite> bit_suites();  ///< products of few bits
std::vector<Suite> translate_suites();
std::vector<Suite> processing_suites();  ///< edges to graphs
std::vector<Suite> edges_suites();       ///< sums over edges in no order
std::vector<Suite> planning_suites();
std::vector<Suite> layer_suites();        ///< the dense ops of a layer
std::vector<Suite> model_layer_suites();  ///< whole layers
std::vector<Suite> model_suites();        ///< training steps and epochs
std::vector<Suite> batch_suites();        ///< inference over batches of parts

}  // namespace tessera::bench
