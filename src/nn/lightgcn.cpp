// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "tessera/nn/powers.hpp"

namespace tessera::nn {

LightGcn::LightGcn(const LightGcnOptions& options, Placement placement)
    : Layer(placement),
      layers_(options.layers),
      embedding_("embedding.weight", options.vertices, options.out,
                 Initial::glorot(options.vertices, options.out), placement) {
  register_parameter(embedding_);
}

// By Horner's rule, so that every sum is a product with the graph that begins with E.
step::Value LightGcn::build(const StepInputs& in) {
  const step::Value embedding = in.parameter(embedding_);
  step::Value y = embedding;
  for (std::int64_t k = 0; k < layers_; ++k) {
    y = step::aggregate(in.program, y, {gcn_adjacency_without_loops});
    y = step::add(in.program, y, embedding);
  }
  return step::scaled(in.program, 1 / static_cast<double>(layers_ + 1), y);
}

std::string LightGcn::describe() const {
  return fmt::format("LightGCN({}, {}, K {})", input_width(), output_width(), layers_);
}

}  // namespace tessera::nn
