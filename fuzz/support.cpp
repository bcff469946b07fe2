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
#include <stdexcept>

#include <fmt/format.h>

#include "tessera/core/error.hpp"

#include "io/dataset_arrays.hpp"

namespace tessera::fuzz {

namespace {

std::vector<int>& unused_descriptors() {
  static std::vector<int> unused;
  return unused;
}

int any_descriptor() {
  std::vector<int>& unused = unused_descriptors();
  if (unused.empty()) return memfd_create("fuzz", MFD_CLOEXEC);
  const int descriptor = unused.back();
  unused.pop_back();
  return descriptor;
}

}  // namespace

MemoryFile::MemoryFile(const std::string& bytes)
    : descriptor_(any_descriptor()), path_(fmt::format("/proc/self/fd/{}", descriptor_)) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count =
        ::pwrite(descriptor_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (count < 0) throw std::runtime_error("no memory for a file");
    done += static_cast<std::size_t>(count);
  }
  if (::ftruncate(descriptor_, static_cast<off_t>(bytes.size())) != 0) {
    throw std::runtime_error("cannot cut a file in memory");
  }
}

MemoryFile::~MemoryFile() { unused_descriptors().push_back(descriptor_); }

void expect_small_graphs() { io::vertices_always_fine = 1 << 12; }

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
  Draw draw(number);
  const auto below = [&](std::size_t limit) { return draw.below(limit); };
  for (std::uint64_t change = 0; change <= number % 4; ++change) {
    const std::size_t place = below(input.size());
    const std::size_t length = below(std::min<std::size_t>(input.size() - place, 64) + 1);
    switch (below(9)) {
      case 0:
        if (!input.empty()) input[place] = static_cast<char>(input[place] ^ (1 << below(8)));
        break;
      case 1:
        if (!input.empty()) input[place] = static_cast<char>(draw.next());
        break;
      case 2: input.erase(place, length); break;
      case 3: input.insert(place, input.substr(below(input.size()), length)); break;
      case 4: input.resize(place); break;
      case 5: input.insert(place, fmt::format("{}", static_cast<std::int64_t>(draw.next()))); break;
      case 6:
      case 7: {  // another number of as many digits
        const std::size_t digit = input.find_first_of("0123456789", place);
        if (digit != std::string::npos) input[digit] = static_cast<char>('0' + below(10));
        break;
      }
      default:
        for (std::size_t i = 0; i < 8 && place + i < input.size(); ++i) {
          input[place + i] = static_cast<char>(below(2) == 0 ? 0xff : 0x7f);
        }
    }
  }
  return input;
}

}  // namespace tessera::fuzz
