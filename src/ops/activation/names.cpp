// SPDX-License-Identifier: Apache-2.0
#include "tessera/core/error.hpp"
#include "tessera/ops/activation.hpp"

namespace tessera::ops {
namespace {

constexpr Activation all_activations[] = {Activation::none, Activation::relu,
                                          Activation::leaky_relu, Activation::elu};

}  // namespace

const char* to_string(Activation activation) noexcept {
  switch (activation) {
    case Activation::none: return "none";
    case Activation::relu: return "relu";
    case Activation::leaky_relu: return "leaky_relu";
    case Activation::elu: return "elu";
  }
  return "unknown";
}

Activation parse_activation(const std::string& text) {
  std::string names;
  for (const Activation activation : all_activations) {
    if (text == to_string(activation)) return activation;
    names += (names.empty() ? "" : ", ") + std::string(to_string(activation));
  }
  throw Error(ErrorCode::invalid_argument, "unknown activation '" + text + "'", "",
              "use one of " + names);
}

}  // namespace tessera::ops
