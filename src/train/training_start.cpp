// SPDX-License-Identifier: Apache-2.0
#include "train/training_start.hpp"

#include <string>
#include <vector>

#include <fmt/format.h>

#include "tessera/core/error.hpp"

namespace tessera::train {

Split placed(const Split& split, const Problem& problem) {
  if (problem.order.size() == 0 || problem.graph_task) return split;
  const Permutation inverse = problem.order.inverse();
  const auto renumbered = [&](std::vector<std::int64_t> items) {
    for (std::int64_t& item : items) item = inverse.new_to_old()[item];
    return items;
  };
  return {renumbered(split.train), renumbered(split.validation), renumbered(split.test)};
}

std::unique_ptr<nn::Layer> started(const Problem& problem, std::unique_ptr<nn::Layer> model,
                                   const TrainOptions& options, std::uint64_t seed) {
  const auto reject = [](const std::string& what, const char* fix) {
    throw Error(ErrorCode::invalid_argument, what, "model", fix);
  };
  if (model == nullptr) reject("there is no model", "give one");
  if (model->input_width() != problem.num_features() || model->output_width() != problem.outputs) {
    reject(fmt::format("{} maps {} features to {}, but the data has {} and {} outputs",
                       model->describe(), model->input_width(), model->output_width(),
                       problem.num_features(), problem.outputs),
           "make it for Problem::shape()");
  }
  if (model->placement().memory != options.placement.memory ||
      model->placement().precision != options.placement.precision) {
    reject(
        fmt::format("{} lies on {} in {}, training was asked for on {} in {}", model->describe(),
                    to_string(model->device()), to_string(model->placement().precision),
                    to_string(options.placement.device()), to_string(options.placement.precision)),
        "make it with the placement of the options");
  }
  model->assign_numbers(0);
  model->reset_parameters(seed);
  model->set_needs_input_gradient(false);
  return model;
}

}  // namespace tessera::train
