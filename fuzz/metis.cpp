// SPDX-License-Identifier: Apache-2.0
#include "tessera/io/metis.hpp"

#include "support.hpp"
#include "target.hpp"

namespace tessera::fuzz {

std::vector<std::string> seeds() {
  return {"% a path\n4 2\n2\n1 3\n2\n\n", "2 1 011 2\n5 5 2 7\n5 5 1 7\n",
          "3 3 1\r\n2 1.5 3 2\r\n1 1.5 3 4\r\n1 2 2 4"};
}

std::string mutated(const std::string& input, std::uint64_t number) {
  return mutated_bytes(input, number);
}

bool run(const std::string& input) {
  const MemoryFile file(input);
  return expect_words([&] { io::read_metis(file.path()).validate(); });
}

}  // namespace tessera::fuzz
