// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// What a reader is fed with. Each target is a file that defines these three; libfuzzer.cpp makes a
/// libFuzzer program of it, replay.cpp one that any compiler can build.
namespace tessera::fuzz {

/// Valid inputs to start from.
std::vector<std::string> seeds();

/// Another input made from this one; the same for the same number.
std::string mutated(const std::string& input, std::uint64_t number);

/// Reads the input: true where it is accepted to the end. An error in words is fine; anything else
/// (an internal error, another exception, a fault) is a finding and ends the process.
bool run(const std::string& input);

}  // namespace tessera::fuzz
