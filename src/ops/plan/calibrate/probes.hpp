// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/core/device.hpp"

/// Kernels that do one thing alone, by which `calibrate` finds how fast a GPU does it. Each is
/// queued on the stream and returns how much of it that is.
namespace tessera::ops::probes {

/// Memory on the GPU: zeros, and a place for what each thread finds.
struct Room {
  void* memory;
  std::int64_t bytes;
  void* results;
};
std::int64_t bytes_of_results(int processors);

/// Bytes of rows at random places of the room, which are added up. A row has 32, 64 and so on to
/// 1024 bytes.
double gather(const Room& room, int row_bytes, int processors, Stream stream);

/// Loads of one thread, each of which has to wait for the one before.
double wait_for_loads(const Room& room, Stream stream);

/// Additions to numbers of fp32 at random places.
double add_atomically(const Room& room, int processors, Stream stream);

/// A kernel that does nothing.
void start_nothing(Stream stream);

enum class Matrix { tf32, bf16, s8, b1, wgmma_bf16 };

/// Operations of matrix units by all warps at the same time, a multiplication and an addition being
/// two. The results begin with the cycles and the nanoseconds that the first block took.
double multiply(Matrix kind, void* results, int processors, Stream stream);

}  // namespace tessera::ops::probes
