// SPDX-License-Identifier: Apache-2.0
#include "tessera/io/index_file.hpp"

#include "support.hpp"
#include "target.hpp"

namespace tessera::fuzz {

std::vector<std::string> seeds() { return {"0\n1\n2\n", "% parts\n\n7\n-1\n"}; }

std::string mutated(const std::string& input, std::uint64_t number) {
  return mutated_bytes(input, number);
}

bool run(const std::string& input) {
  const MemoryFile file(input);
  return expect_words([&] { io::read_index_file(file.path()); });
}

}  // namespace tessera::fuzz
