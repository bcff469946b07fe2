// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// Four 8 x 8 blocks of 16-bit numbers from shared memory, as matrix instructions hold them. A lane
/// gives the address of one block's row of 16 bytes: lanes 0-7 those of the first block, and so on.
namespace tessera::cuda {

/// Lane 4 g + q gets numbers 2q and 2q + 1 of row g.
__device__ inline void load_blocks(std::uint32_t (&blocks)[4], std::uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(blocks[0]), "=r"(blocks[1]), "=r"(blocks[2]), "=r"(blocks[3])
               : "r"(address)
               : "memory");
}

/// Lane 4 g + q gets number g of rows 2q and 2q + 1.
__device__ inline void load_blocks_transposed(std::uint32_t (&blocks)[4], std::uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(blocks[0]), "=r"(blocks[1]), "=r"(blocks[2]), "=r"(blocks[3])
               : "r"(address)
               : "memory");
}

}  // namespace tessera::cuda
