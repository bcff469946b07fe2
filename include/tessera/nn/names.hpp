// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/step/context.hpp"
#include "tessera/step/input.hpp"
#include "tessera/step/range_search.hpp"
#include "tessera/step/rounder.hpp"
#include "tessera/step/tensor.hpp"
#include "tessera/step/topology.hpp"

/// Layers speak of what steps are made of.
namespace tessera::nn {

using step::Context;
using step::Derivation;
using step::Fusing;
using step::Initial;
using step::Input;
using step::Parameter;
using step::Placement;
using step::PlanRequests;
using step::RangeSearch;
using step::Rounder;
using step::Tensor;
using step::Topology;

using step::as_given;
using step::gcn_adjacency;
using step::gcn_adjacency_without_loops;
using step::gcn_columns;
using step::gcn_columns_without_loops;
using step::gcn_rows;
using step::gcn_rows_without_loops;
using step::negated_laplacian_rest;
using step::pattern;
using step::pattern_with_self_loops;
using step::pooling_graph;

using step::parse_range_search;

}  // namespace tessera::nn
