// SPDX-License-Identifier: Apache-2.0
#include "tessera/nn/readout.hpp"

#include <fmt/format.h>

#include "tessera/core/error.hpp"

namespace tessera::nn {

// A readout is a product with the pooling graph.
Topology* Readout::graph(const Context& context) const {
  if (context.pooling != nullptr) return context.pooling;
  throw Error(ErrorCode::invalid_argument, "the context has no pooling graph", "Readout",
              "set Context::pooling before the pass");
}

step::Value Readout::build(const StepInputs& in) {
  return step::aggregate(in.program, in.sources, {pattern, options_.reduction});
}

std::string Readout::describe() const {
  return fmt::format("Readout({}, {})", options_.width, to_string(options_.reduction));
}

}  // namespace tessera::nn
