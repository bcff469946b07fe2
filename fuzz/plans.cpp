// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/plan_store.hpp"

#include "support.hpp"
#include "target.hpp"

namespace tessera::fuzz {

std::vector<std::string> seeds() {
  return {
      "tessera plans\t1\nchoice\tspmm\t0011\tfeatures 4, fp32\tcpu\tspmm/cpu/rows\n"
      "candidate\tspmm/cpu/rows\t1.5\t0\tchosen\n"};
}

std::string mutated(const std::string& input, std::uint64_t number) {
  return mutated_bytes(input, number);
}

bool run(const std::string& input) {
  const MemoryFile file(input);
  return expect_words([&] { ops::PlanStore::load(file.path()); });
}

}  // namespace tessera::fuzz
