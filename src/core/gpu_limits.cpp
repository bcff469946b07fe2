// SPDX-License-Identifier: Apache-2.0
#include "core/gpu_limits.hpp"

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "tessera/core/error.hpp"

namespace tessera {
namespace {

[[noreturn]] void refuse(std::string_view word) {
  throw Error(ErrorCode::invalid_argument, "unknown limit '" + std::string(word) + "'",
              "TESSERA_GPU_LIMITS", "use processors=N, no_wgmma, or both with a comma between");
}

int parse_count(std::string_view digits, std::string_view word) {
  int count = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  if (error != std::errc() || end != digits.data() + digits.size() || count < 1) refuse(word);
  return count;
}

}  // namespace

GpuLimits parse_gpu_limits(const std::string& text) {
  constexpr std::string_view processors = "processors=";
  GpuLimits limits;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find(','));
    rest.remove_prefix(word.size() < rest.size() ? word.size() + 1 : rest.size());
    if (word.starts_with(processors)) {
      limits.processors = parse_count(word.substr(processors.size()), word);
    } else if (word == "no_wgmma") {
      limits.no_wgmma = true;
    } else {
      refuse(word);
    }
  }
  return limits;
}

const GpuLimits& gpu_limits() {
  static const GpuLimits limits = [] {
    const char* const text = std::getenv("TESSERA_GPU_LIMITS");
    return parse_gpu_limits(text == nullptr ? "" : text);
  }();
  return limits;
}

}  // namespace tessera
