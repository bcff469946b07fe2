// SPDX-License-Identifier: Apache-2.0
#include "train/memory_check.hpp"

#include <unistd.h>

#include <string>

#include <fmt/format.h>

#include "tessera/core/error.hpp"

namespace tessera::train {
namespace {

/// What a layer takes besides its tensors: its objects, names and plans.
constexpr double bytes_per_layer = 8192;

double machine_bytes() {
  return static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

void require_room(double bytes, const std::string& what, const char* fix) {
  constexpr double gib = 1 << 30;
  if (bytes <= machine_bytes()) return;
  throw Error(ErrorCode::out_of_memory,
              fmt::format("{} would take about {:.3g} GiB, but this machine has {:.3g} GiB", what,
                          bytes / gib, machine_bytes() / gib),
              "training", fix);
}

}  // namespace

void require_memory(const nn::ModelConfig& config, const nn::DataShape& shape,
                    const TrainOptions& options) {
  const nn::PredictedMemory memory =
      nn::predicted_memory(config, shape, options.placement.precision);
  // A GPU has memory of its own, but the layers themselves are here.
  const bool here = options.placement.device().kind == DeviceKind::cpu;
  const double objects = bytes_per_layer * static_cast<double>(config.layers);
  require_room(objects + (here ? static_cast<double>(memory.total()) : 0.0),
               fmt::format("a model with {}", nn::describe(config)),
               "use fewer or narrower layers: lower --layers, --hidden or --heads");
  require_room(static_cast<double>(options.runs) * sizeof(RunReport),
               fmt::format("the reports of {} runs", options.runs), "lower --runs");
}

}  // namespace tessera::train
