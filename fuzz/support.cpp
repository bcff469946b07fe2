// SPDX-License-Identifier: Apache-2.0
#include "support.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <stdexcept>

#include <fmt/format.h>

#include "tessera/core/error.hpp"

namespace tessera::fuzz {

MemoryFile::MemoryFile(const std::string& bytes)
    : descriptor_(memfd_create("fuzz", MFD_CLOEXEC)),
      path_(fmt::format("/proc/self/fd/{}", descriptor_)) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = ::write(descriptor_, bytes.data() + done, bytes.size() - done);
    if (count < 0) throw std::runtime_error("no memory for a file");
    done += static_cast<std::size_t>(count);
  }
}

MemoryFile::~MemoryFile() { ::close(descriptor_); }

std::string memory_path(const std::string& name) {
  const std::filesystem::path memory = "/dev/shm";
  const bool usable = ::access(memory.c_str(), W_OK | X_OK) == 0;
  return ((usable ? memory : std::filesystem::temp_directory_path()) /
          fmt::format("tessera-fuzz-{}-{}", ::getpid(), name))
      .string();
}

std::string written(const std::string& ending,
                    const std::function<void(const std::string& path)>& write) {
  const std::string path = memory_path("written" + ending);
  write(path);
  std::ifstream file(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  std::filesystem::remove(path);
  return bytes;
}

bool expect_words(const std::function<void()>& work) {
  try {
    work();
    return true;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::internal) return false;
    std::fprintf(stderr, "finding: %s\n", error.what());
    std::abort();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "finding: %s\n", error.what());
    std::abort();
  }
}

std::string mutated_bytes(std::string input, std::uint64_t number) {
  std::mt19937_64 random(number);
  const auto below = [&](std::size_t limit) { return limit == 0 ? 0 : random() % limit; };
  for (std::uint64_t change = 0; change <= number % 4; ++change) {
    const std::size_t place = below(input.size());
    const std::size_t length = below(std::min<std::size_t>(input.size() - place, 64) + 1);
    switch (below(7)) {
      case 0:
        if (!input.empty()) input[place] = static_cast<char>(input[place] ^ (1 << below(8)));
        break;
      case 1:
        if (!input.empty()) input[place] = static_cast<char>(random());
        break;
      case 2: input.erase(place, length); break;
      case 3: input.insert(place, input.substr(below(input.size()), length)); break;
      case 4: input.resize(place); break;
      case 5: input.insert(place, fmt::format("{}", static_cast<std::int64_t>(random()))); break;
      default:
        for (std::size_t i = 0; i < 8 && place + i < input.size(); ++i) {
          input[place + i] = static_cast<char>(below(2) == 0 ? 0xff : 0x7f);
        }
    }
  }
  return input;
}

}  // namespace tessera::fuzz
