// SPDX-License-Identifier: Apache-2.0
#include "core/side_stream.hpp"

#ifdef TESSERA_WITH_CUDA
#include "core/cuda_handles.hpp"
#endif

namespace tessera {

SideStream::SideStream(Device device, [[maybe_unused]] bool goes_first) : device_(device) {
  require_available(device);
#ifdef TESSERA_WITH_CUDA
  if (device.kind != DeviceKind::cuda) return;
  const cuda_backend::CurrentDevice current(device.index);
  int last = 0, first = 0;
  cuda_check(cudaDeviceGetStreamPriorityRange(&last, &first), "reading what a GPU is");
  handle_ = cuda_backend::make_stream(goes_first ? first : last);
#endif
}

SideStream::~SideStream() {
#ifdef TESSERA_WITH_CUDA
  if (handle_ != nullptr) cudaStreamDestroy(static_cast<cudaStream_t>(handle_));
#endif
}

}  // namespace tessera
