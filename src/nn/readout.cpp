// SPDX-License-Identifier: Apache-2.0
#include "tessera/nn/sequential.hpp"

#include <fmt/format.h>

namespace tessera::nn {

// A readout is a product with the pooling graph.
step::Value Readout::build(const StepInputs& in) {
  return step::aggregate(in.program, in.sources, {pattern, options_.reduction, step::pooled});
}

std::string Readout::describe() const {
  return fmt::format("Readout({}, {})", options_.width, to_string(options_.reduction));
}

}  // namespace tessera::nn
