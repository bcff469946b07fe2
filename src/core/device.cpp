// SPDX-License-Identifier: Apache-2.0
#include "tessera/core/device.hpp"

#include <charconv>

#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"

#include "core/absent_gpu.hpp"
#include "core/cuda_backend.hpp"
#include "core/cuda_timing.hpp"

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

std::string device_name(Device device) {
  if (device.kind == DeviceKind::cpu) return "cpu, " + std::to_string(num_threads()) + " threads";
  require_available(device);
  return cuda_backend::gpu_name(device.index);
}

bool built_with_cuda() noexcept { return cuda_backend::present(); }

int num_gpus() noexcept {
  // Does not change while a process runs, and is asked wherever something begins.
  static const int count = cuda_backend::device_count();
  return count;
}

void require_available(Device device) {
  if (device.kind == DeviceKind::cpu) return;
  if (!built_with_cuda()) {
    throw Error(ErrorCode::backend_unavailable, cuda_backend::absent_message, to_string(device),
                "use the device cpu, or build with the preset cuda");
  }
  if (AbsentGpu::current() != nullptr) return;
  if (device.index >= num_gpus()) {
    throw Error(ErrorCode::backend_unavailable,
                num_gpus() == 0 ? "no GPU that this process can use"
                                : "there are only " + std::to_string(num_gpus()) + " GPUs",
                to_string(device), "use another device; 'tessera doctor' shows what there is");
  }
}

void synchronise(Device device, Stream stream) {
  if (device.kind == DeviceKind::cuda) cuda_backend::synchronise(device, stream);
}

}  // namespace tessera
