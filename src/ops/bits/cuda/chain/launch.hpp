// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "ops/bits/cuda/launch.hpp"
#include "tessera/ops/bit_forms.hpp"

namespace tessera::ops {

class BitChain;
struct BitChainProblem;

/// Null where the kernel does not take it.
std::unique_ptr<const BitChain> make_cuda_bit_chain(const BitChainProblem& problem);

inline constexpr int chain_rows = 128;  ///< vertices of a block, and of a part of the graph
inline constexpr int most_chain_steps = 12;
inline constexpr int most_chain_width = 128;

/// Lines of codes, a byte each, lie so far apart in shared memory: whole steps of the matrix unit,
/// and 16 bytes more, so that the banks of eight lines differ.
constexpr int chain_pitch(int count) { return (count + 31) / 32 * 32 + 16; }
/// What the codes between two steps take at most.
inline constexpr int chain_codes_bytes = most_chain_width * chain_pitch(most_chain_width);

/// A step as the kernel reads it. Places are counted from the beginning of the chain's image: of
/// weights in bytes, of numbers for columns in floats, -1 where there are none.
struct ChainStep {
  int in = 0;
  int out = 0;
  int weights = -1;  ///< bytes of (out filled up to 8) lines; -1: the step sums
  int col_scale = -1;
  int col_terms = -1;
  int bias = -1;
  int norm_scale = -1;
  int norm_shift = -1;
  int lower = -1;  ///< ranges of the codes that come out; -1: values come out
  int step = -1;
  int inverse = -1;  ///< of the steps; -1: divide
  int range_stride = 0;
  int terms = 0;
  float last_code = 0;
  BitActivation activation = BitActivation::none;
  bool floors = false;
  bool scales_result = false;
  bool to_columns = false;  ///< the next step sums: its codes lie in lines of columns
};

struct ChainLaunch {
  const std::uint8_t* image = nullptr;  ///< weights and numbers of all steps
  int image_bytes = 0;                  ///< a multiple of 16
  int num_steps = 0;
  ChainStep steps[most_chain_steps];
  BitRows features;
  const std::uint32_t* adjacency = nullptr;  ///< 4 words for every vertex
  // Of a chain over lists: where sums find the codes of sources, in lines of so many bytes, and
  // where the codes of the last step go, null where it gives values.
  const std::int32_t* list_offsets = nullptr;
  const std::uint16_t* list_sources = nullptr;
  const std::int32_t* block_starts = nullptr;
  const std::uint8_t* bytes_in = nullptr;
  std::int64_t bytes_in_stride = 0;
  std::uint8_t* bytes_out = nullptr;
  std::int64_t bytes_out_stride = 0;
  const float* row_scale = nullptr;
  const float* col_scale = nullptr;
  const float* row_weights = nullptr;
  float* values = nullptr;
  std::int64_t stride = 0;
  int num_parts = 0;
};

constexpr int chain_shared_bytes(int image_bytes) {
  return image_bytes + 2 * chain_codes_bytes + chain_rows * 16 + 3 * chain_rows * 4;
}

/// Before the first launch: the shared memory that chains may take, of bits or over lists. Returns
/// how much that is.
int allow_chains(bool lists);
/// Over lists a launch begins with the features or with a sum, and has no other sum.
void launch_chain(const ChainLaunch& launch, bool lists, Stream stream);

}  // namespace tessera::ops
