// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/core/measure.hpp"

namespace tessera::bench {

/// What to run where the user does not say.
struct Workload {
  std::vector<std::string> sources;  ///< data sets, as `io::open` takes them
  std::vector<std::int64_t> features;
  MeasureOptions timing;
};

/// A minute or so: small graphs, two widths, few repeats.
Workload quick_workload();

/// How runs on a GPU are timed: the median of 50 after 10 warm-ups, short ones also in a captured
/// chain of 20. `quick`: fewer.
MeasureOptions gpu_timing(bool quick);

/// The figures to keep: five widths, more graphs, more repeats. With TESSERA_DATA in the
/// environment both also take graphs from that folder, where they are there.
Workload full_workload();

}  // namespace tessera::bench
