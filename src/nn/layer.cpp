// SPDX-License-Identifier: Apache-2.0
#include "tessera/nn/layer.hpp"

namespace tessera::nn {
namespace {

/// Initial values are drawn from layer numbers far above those of dropout.
constexpr std::uint32_t first_initial_number = 0x40000000u;

/// A layer may draw for more than one purpose.
constexpr std::uint32_t numbers_per_layer = 4;

std::string joined(const std::string& prefix, const std::string& name) {
  return prefix.empty() || name.empty() ? prefix + name : prefix + "." + name;
}

}  // namespace

void Layer::collect(const std::string& prefix, std::vector<NamedParameter>& parameters,
                    std::vector<NamedTensor>& buffers) {
  for (Parameter* parameter : parameters_) {
    parameters.push_back({joined(prefix, parameter->name), parameter});
  }
  for (const auto& [name, tensor] : buffers_) buffers.push_back({joined(prefix, name), tensor});
  for (const auto& [name, layer] : layers_) {
    layer->collect(joined(prefix, name), parameters, buffers);
  }
}

std::vector<NamedParameter> Layer::parameters() {
  std::vector<NamedParameter> parameters;
  std::vector<NamedTensor> buffers;
  collect("", parameters, buffers);
  return parameters;
}

std::vector<NamedTensor> Layer::state() {
  std::vector<NamedParameter> parameters;
  std::vector<NamedTensor> buffers;
  collect("", parameters, buffers);
  std::vector<NamedTensor> state;
  for (const auto& [path, parameter] : parameters) state.push_back({path, &parameter->value});
  state.insert(state.end(), buffers.begin(), buffers.end());
  return state;
}

std::int64_t Layer::num_parameters() {
  std::int64_t count = 0;
  for (const auto& [path, parameter] : parameters()) {
    if (parameter->trainable) count += parameter->value.size();
  }
  return count;
}

void Layer::reset_parameters(std::uint64_t seed) {
  std::uint32_t number = first_initial_number;
  for (const auto& [path, parameter] : parameters()) parameter->reset(Random(seed, number++));
}

std::uint32_t Layer::assign_numbers(std::uint32_t first) {
  number_ = first;
  first += numbers_per_layer;
  for (const auto& [name, layer] : layers_) first = layer->assign_numbers(first);
  return first;
}

}  // namespace tessera::nn
