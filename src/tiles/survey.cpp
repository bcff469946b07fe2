// SPDX-License-Identifier: Apache-2.0
#include "tiles/survey.hpp"

#ifdef TESSERA_WITH_CUDA
#include "tiles/cuda/survey.hpp"
#endif

namespace tessera::tiles {

void survey([[maybe_unused]] const Graph& graph, [[maybe_unused]] bool both_sides,
            [[maybe_unused]] bool short_windows, [[maybe_unused]] const Place& place) {
#ifdef TESSERA_WITH_CUDA
  if (place.device.kind == DeviceKind::cuda && graph.device() == place.device) {
    survey_on_device(graph, both_sides, short_windows, place);
  }
#endif
}

}  // namespace tessera::tiles
