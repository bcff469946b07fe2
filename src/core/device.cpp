// SPDX-License-Identifier: Apache-2.0
#include "tessera/core/device.hpp"

#include <charconv>

#include "tessera/core/error.hpp"

namespace tessera {

std::string to_string(Device device) {
  return device.kind == DeviceKind::cpu ? "cpu" : "cuda:" + std::to_string(device.index);
}

Device parse_device(const std::string& text) {
  if (text == "cpu") return {};
  if (text == "cuda") return {DeviceKind::cuda, 0};
  if (text.starts_with("cuda:")) {
    int index = -1;
    const char* const end = text.data() + text.size();
    const auto [stop, problem] = std::from_chars(text.data() + 5, end, index);
    if (problem == std::errc() && stop == end && index >= 0) return {DeviceKind::cuda, index};
  }
  throw Error(ErrorCode::invalid_argument, "unknown device '" + text + "'", "",
              "use cpu, cuda or cuda:N");
}

bool built_with_cuda() noexcept { return false; }

void require_available(Device device) {
  if (device.kind == DeviceKind::cpu) return;
  throw Error(ErrorCode::backend_unavailable, "built without CUDA", to_string(device),
              "use the device cpu");
}

}  // namespace tessera
