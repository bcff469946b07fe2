// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "cuda/rows.hpp"

namespace tessera::cuda {

/// Something small on the GPU that comes here together with something else.
struct Brought {
  const void* there = nullptr;
  std::size_t bytes = 0;
  void* here = nullptr;
};

/// As `set_offsets` of offsets that were made on the GPU, of at most `most_edges` edges. The one
/// wait that this takes is for `also`, too.
void set_made_offsets(DeviceRows& rows, const Buffer<EdgeOffset>& offsets, EdgeOffset most_edges,
                      const Place& place, const Brought& also = {});

}  // namespace tessera::cuda
