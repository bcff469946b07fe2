// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "tessera/core/memory.hpp"

namespace tessera {

/// Since when something that was made on a stream can be used on every stream, without anybody
/// waiting for it here: a stream that uses it earlier waits, and only captured work, which may run
/// on any stream, makes this process wait.
class Readiness {
 public:
  Readiness() = default;
  ~Readiness();
  Readiness(const Readiness&) = delete;
  Readiness& operator=(const Readiness&) = delete;

  /// All work of making it has been queued on the place's stream. Nothing happens on the CPU.
  void mark(const Place& place);

  /// What comes on the stream from now on may use it.
  void wait(Stream stream) const;

 private:
  Place place_;
  void* event_ = nullptr;
  mutable std::atomic<bool> known_ = true;  ///< that all has happened
};

}  // namespace tessera
