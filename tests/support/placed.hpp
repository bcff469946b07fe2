// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/matrices.hpp"
#include "tessera/core/memory.hpp"

namespace tessera::test {

/// A padded matrix where a kernel's device sees it: the matrix itself on the CPU, a copy on a GPU.
template <class T>
class Placed {
 public:
  Placed(Padded<T>& host, Device device) : host_(host), device_(device) {
    if (device.kind == DeviceKind::cpu) return;
    copy_ = Buffer<T>(host.whole().size(), default_memory(device));
    send();
  }

  /// Takes what the host holds to the kernel's device.
  void send() {
    if (device_.kind == DeviceKind::cpu) return;
    copy_bytes(copy_.data(), host_.whole().data(), num_bytes(), device_);
    synchronise(device_);
  }

  MatrixView<T> view() {
    MatrixView<T> view = host_.view();
    if (device_.kind == DeviceKind::cpu) return view;
    view.data = copy_.data() + host_.margin();
    view.device = device_;
    return view;
  }

  /// Brings what a kernel wrote back to the host.
  void fetch() {
    if (device_.kind == DeviceKind::cpu) return;
    copy_bytes(host_.whole().data(), copy_.data(), num_bytes(), device_);
    synchronise(device_);
  }

 private:
  std::size_t num_bytes() const {
    return static_cast<std::size_t>(host_.whole().size()) * sizeof(T);
  }

  Padded<T>& host_;
  Device device_;
  Buffer<T> copy_;
};

}  // namespace tessera::test
