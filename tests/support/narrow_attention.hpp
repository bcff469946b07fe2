// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/attention_kernels.hpp"

/// Attention on windows: every kernel that takes heads of eight 16-bit features, or dot products of
/// 64, with narrow heads and wide ones.
namespace tessera::test {

template <class T>
bool takes(const std::string& kernel, AttentionForm form, std::int64_t heads, std::int64_t width) {
  AttentionOptions options = options_of(kernel, form, heads, width, 0);
  options.precision = ops::PrecisionOf<T>::value;
  return supports(kernel, options);
}

inline std::vector<std::string> narrow_kernels() {
  std::vector<std::string> names = testing::kernel_names("attention");
  std::erase_if(names, [](const std::string& name) {
    return !takes<Bfloat16>(name, AttentionForm::gat, 8, 8) &&
           !takes<Bfloat16>(name, AttentionForm::dot, 8, 8) &&
           !takes<Bfloat16>(name, AttentionForm::dot, 1, 64);
  });
  return names;
}

struct Heads {
  std::int64_t count;
  std::int64_t width;
};
inline std::string name_of(const Heads& heads) {
  return std::to_string(heads.count) + " heads of " + std::to_string(heads.width);
}

}  // namespace tessera::test
