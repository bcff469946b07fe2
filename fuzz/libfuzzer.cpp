// SPDX-License-Identifier: Apache-2.0
// Makes a libFuzzer program of a target: fuzz_NAME [options] [corpus folders]
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "support.hpp"
#include "target.hpp"

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  tessera::fuzz::expect_small_graphs();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tessera::fuzz::run({reinterpret_cast<const char*>(data), size});
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned int seed) {
  static const std::vector<std::string> seeds = tessera::fuzz::seeds();
  std::string input(reinterpret_cast<const char*>(data), size);
  if (size < 8) input = seeds[seed % seeds.size()];
  const std::string output = tessera::fuzz::mutated(input, seed);
  const std::size_t length = std::min(output.size(), max_size);
  std::memcpy(data, output.data(), length);
  return length;
}
