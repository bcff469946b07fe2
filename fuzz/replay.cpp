// SPDX-License-Identifier: Apache-2.0
// Runs a target on a seeded stream of mutants, with nothing but a compiler.
//   fuzz_NAME [EXECUTIONS [FIRST]]      mutants FIRST, FIRST + 1, … of the target's own seeds
//   fuzz_NAME --file FILE               this input alone, such as one that a fuzzer has found
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "support.hpp"
#include "target.hpp"

namespace {

/// The mutant under test, for whoever looks into a fault.
std::uint64_t current = 0;

/// Mutants of mutants, up to three generations deep; half of them in the first.
std::string mutant(const std::vector<std::string>& seeds, std::uint64_t number) {
  std::string input = seeds[number % seeds.size()];
  const std::uint64_t generations = 1 + number / seeds.size() % 4 % 3;
  for (std::uint64_t i = 0; i < generations; ++i) {
    input = tessera::fuzz::mutated(input, number * 3 + i);
  }
  return input;
}

/// For SIGABRT, with which all findings end (sanitizers' with abort_on_error=1): which mutant it
/// was.
void report_fault(int) {
  std::fprintf(stderr, "mutant %llu\n", static_cast<unsigned long long>(current));
}

}  // namespace

int main(int argc, char** argv) {
  tessera::fuzz::expect_small_graphs();
  if (argc == 3 && std::string(argv[1]) == "--file") {
    std::ifstream file(argv[2], std::ios::binary);
    tessera::fuzz::run({std::istreambuf_iterator<char>(file), {}});
    return 0;
  }
  const std::uint64_t executions = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1000;
  const std::uint64_t first = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0;
  std::signal(SIGABRT, report_fault);
  const std::vector<std::string> seeds = tessera::fuzz::seeds();
  const auto start = std::chrono::steady_clock::now();
  for (const std::string& seed : seeds) {
    if (tessera::fuzz::run(seed)) continue;
    std::fprintf(stderr, "finding: a seed is refused\n");
    std::abort();
  }
  std::uint64_t accepted = 0;
  for (current = first; current < first + executions; ++current) {
    accepted += tessera::fuzz::run(mutant(seeds, current)) ? 1 : 0;
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  std::printf("%llu executions in %.1f s, %llu accepted, no finding\n",
              static_cast<unsigned long long>(executions), seconds.count(),
              static_cast<unsigned long long>(accepted));
}
