// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/core/memory.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::tiles {

/// Finds out what cost models and schedules ask of a graph that lies on the place's GPU: samples of
/// its windows, the offsets of its columns, the sizes of its weights. All of it is found there and
/// comes here together, with one wait, so that no array of the size of the edges does. What is
/// known already is not looked for again; of other graphs nothing is.
///
/// `both_sides`: the columns, too, which are then ready for who asks for them (cuda/rows.hpp).
/// `short_windows`: all windows of 8 and of 16 rows are counted, too, for plans that may want tiles
/// of them.
void survey(const Graph& graph, bool both_sides, bool short_windows, const Place& place);

}  // namespace tessera::tiles
