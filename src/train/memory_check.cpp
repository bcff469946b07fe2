// SPDX-License-Identifier: Apache-2.0
#include "train/memory_check.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>

#include <fmt/format.h>

#include "train/batch.hpp"

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

struct Consumer {
  const char* name;
  std::int64_t bytes;
  const char* fix;
};

constexpr const char* fewer_numbers =
    "use --precision bf16, lower --hidden, --layers or --heads, or use --batch clusters";

std::string size_text(std::int64_t bytes) {
  constexpr double mib = 1 << 20;
  const double size = static_cast<double>(bytes) / mib;
  return size < 1024 ? fmt::format("{:.3g} MiB", size) : fmt::format("{:.3g} GiB", size / 1024);
}

}  // namespace

Error explained(const Error& error, const nn::ModelConfig& config, const nn::DataShape& shape,
                const TrainOptions& options) {
  const nn::PredictedMemory memory =
      nn::predicted_memory(config, shape, options.placement.precision);
  std::array<Consumer, 4> consumers = {
      {{"activations", memory.activations, fewer_numbers},
       {"features", memory.features, "use --precision bf16, fewer features, or sparse ones"},
       {"graph", memory.graph, "use --batch clusters, or a smaller graph"},
       {"parameters", memory.parameters, "lower --hidden, --layers or --heads"}}};
  std::stable_sort(consumers.begin(), consumers.end(),
                   [](const Consumer& a, const Consumer& b) { return a.bytes > b.bytes; });
  std::string parts;
  for (const Consumer& each : consumers) {
    parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", each.name, size_text(each.bytes));
  }
  return Error(ErrorCode::out_of_memory,
               fmt::format("training takes about {} ({}): {}", size_text(memory.total()), parts,
                           error.what()),
               "training", consumers.front().fix);
}

void require_memory(const nn::ModelConfig& config, const nn::DataShape& shape,
                    const TrainOptions& options) {
  const nn::PredictedMemory memory =
      nn::predicted_memory(config, shape, options.placement.precision);
  // A GPU has memory of its own, but the layers themselves are here.
  const bool here = options.placement.device().kind == DeviceKind::cpu;
  const double objects = bytes_per_layer * static_cast<double>(config.layers);
  // Drawn batches and blocks of rows are there for graphs whose activations do not fit.
  const bool in_parts = draws_samples(options) && options.rows_at_a_time > 0;
  const auto tensors =
      static_cast<double>(in_parts ? memory.total() - memory.activations : memory.total());
  require_room(objects + (here ? tensors : 0.0),
               fmt::format("a model with {}", nn::describe(config)),
               "use fewer or narrower layers: lower --layers, --hidden or --heads");
  require_room(static_cast<double>(options.runs) * sizeof(RunReport),
               fmt::format("the reports of {} runs", options.runs), "lower --runs");
}

}  // namespace tessera::train
