// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/core/matrix.hpp"
#include "tessera/core/memory.hpp"

namespace tessera::test {

/// A matrix where a kernel's device sees it: the matrix itself on the CPU, a copy on a GPU.
template <class T>
class PlacedMatrix {
 public:
  PlacedMatrix(Matrix<T>& host, Device device) : host_(host), device_(device) {
    if (device.kind == DeviceKind::cpu) return;
    copy_ = Buffer<T>(host.size(), default_memory(device));
    copy_bytes(copy_.data(), host.data(), num_bytes(), device);
  }

  MatrixView<T> view() {
    MatrixView<T> view = host_.view();
    if (device_.kind == DeviceKind::cpu) return view;
    view.data = copy_.data();
    view.device = device_;
    return view;
  }

  /// Brings what the host has changed to where kernels read it.
  void send() {
    if (device_.kind == DeviceKind::cpu) return;
    copy_bytes(copy_.data(), host_.data(), num_bytes(), device_);
    synchronise(device_);
  }

  /// Brings what a kernel wrote back to the host.
  void fetch() {
    if (device_.kind == DeviceKind::cpu) return;
    copy_bytes(host_.data(), copy_.data(), num_bytes(), device_);
    synchronise(device_);
  }

 private:
  std::size_t num_bytes() const { return static_cast<std::size_t>(host_.size()) * sizeof(T); }

  Matrix<T>& host_;
  Device device_;
  Buffer<T> copy_;
};

}  // namespace tessera::test
