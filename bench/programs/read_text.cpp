// SPDX-License-Identifier: Apache-2.0
// How fast text becomes a graph, beside what the machine can do at all with the same bytes: copy
// them, and look for the ends of their lines.
//   bench_read_text [EDGES [FOLDER [THREADS...]]]
// writes JSON to stdout. FOLDER is for the files, /tmp by default; without THREADS all powers of
// two up to the number of cores take their turn.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tessera/core/memory.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/core/random.hpp"
#include "tessera/io/open.hpp"

namespace {

using namespace tessera;

struct Seconds {
  double wall = 0;
  double cpu = 0;  ///< of all threads; the one to look at where others use the machine
};

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// The best of three.
template <class Body>
Seconds measure(Body&& body) {
  Seconds best{1e30, 1e30};
  for (int i = 0; i < 3; ++i) {
    const double cpu = cpu_seconds();
    const auto start = std::chrono::steady_clock::now();
    body();
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
    best.wall = std::min(best.wall, wall.count());
    best.cpu = std::min(best.cpu, cpu_seconds() - cpu);
  }
  return best;
}

struct File {
  const char* name;
  const char* separator;
  unsigned base;
  bool weights;
};

/// The lines of edges [first, last).
std::string lines_of(const File& file, std::int64_t first, std::int64_t last,
                     std::uint64_t vertices) {
  const Random random(1);
  std::string text;
  for (std::int64_t k = first; k < last; ++k) {
    const auto element = static_cast<std::uint64_t>(k);
    fmt::format_to(std::back_inserter(text), "{}{}{}",
                   random.below(2 * element, vertices) + file.base, file.separator,
                   random.below(2 * element + 1, vertices) + file.base);
    if (file.weights) {
      fmt::format_to(std::back_inserter(text), "{}0.{}", file.separator, element % 10000);
    }
    text += '\n';
  }
  return text;
}

/// The whole text, made by all threads and written to `path`.
std::string write_edges(const std::string& path, const File& file, std::int64_t edges) {
  constexpr std::int64_t block = 1 << 18;
  const std::int64_t vertices = std::max<std::int64_t>(edges / 10, 10);
  std::vector<std::string> blocks(static_cast<std::size_t>((edges + block - 1) / block));
  parallel_tasks(std::ssize(blocks), [&](std::int64_t i) {
    blocks[static_cast<std::size_t>(i)] = lines_of(
        file, i * block, std::min(edges, (i + 1) * block), static_cast<std::uint64_t>(vertices));
  });
  std::string text;
  if (file.base == 1) {
    text = fmt::format("%%MatrixMarket matrix coordinate {} general\n{} {} {}\n",
                       file.weights ? "real" : "pattern", vertices, vertices, edges);
  }
  for (const std::string& lines : blocks) text += lines;
  std::ofstream(path, std::ios::binary).write(text.data(), std::ssize(text));
  return text;
}

std::string record(const char* what, const char* file, int threads, std::size_t bytes,
                   const Seconds& seconds, double memory_share) {
  const double megabytes = static_cast<double>(bytes) / 1e6;
  return fmt::format(
      R"({{"what": "{}", "file": "{}", "threads": {}, "megabytes": {:.1f}, "wall_seconds": {:.3f}, )"
      R"("cpu_seconds": {:.3f}, "mb_per_wall_second": {:.0f}, "mb_per_cpu_second": {:.0f}, )"
      R"("peak_memory_over_graph": {}}})",
      what, file, threads, megabytes, seconds.wall, seconds.cpu, megabytes / seconds.wall,
      megabytes / seconds.cpu, memory_share > 0 ? fmt::format("{:.2f}", memory_share) : "null");
}

std::int64_t bytes_of(const Graph& graph) {
  return (std::int64_t{graph.num_rows()} + 1) * 8 + graph.num_edges() * 4 +
         graph.values().size() * std::int64_t{4};
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t edges = argc > 1 ? std::atoll(argv[1]) : 20'000'000;
  const std::string folder = argc > 2 ? argv[2] : "/tmp";
  const int cores = num_threads();
  std::vector<int> turns;
  for (int i = 3; i < argc; ++i) turns.push_back(std::atoi(argv[i]));
  for (int threads = 1; argc < 4 && threads <= cores; threads *= 2) turns.push_back(threads);
  const File files[] = {{"pattern.mtx", " ", 1, false},
                        {"real.mtx", " ", 1, true},
                        {"edges.csv", ",", 0, false},
                        {"weighted.tsv", "\t", 0, true}};
  std::vector<std::string> records;
  for (const File& file : files) {
    const std::string path = fmt::format("{}/tessera-bench-{}-{}", folder, ::getpid(), file.name);
    set_num_threads(cores);
    std::size_t bytes = 0;
    {
      const std::string text = write_edges(path, file, edges);
      bytes = text.size();
      std::vector<char> copy(bytes);
      records.push_back(record("memcpy", file.name, 1, bytes,
                               measure([&] { std::memcpy(copy.data(), text.data(), bytes); }), 0));
      std::int64_t lines = 0;
      records.push_back(record("line ends", file.name, 1, bytes, measure([&] {
                                 for (const char* at = text.data();; ++lines, ++at) {
                                   const auto left =
                                       static_cast<std::size_t>(text.data() + bytes - at);
                                   at = static_cast<const char*>(std::memchr(at, '\n', left));
                                   if (at == nullptr) break;
                                 }
                               }),
                               0));
      if (lines == 0) return 1;
    }
    io::ReadOptions options;
    options.duplicates = Duplicates::first;
    for (const int threads : turns) {
      set_num_threads(threads);
      double share = 0;
      const Seconds seconds = measure([&] {
        reset_host_memory_peak();
        const std::int64_t before = host_memory_use().current_bytes;
        const Dataset dataset = io::open(path, options);
        share = static_cast<double>(host_memory_use().peak_bytes - before) /
                static_cast<double>(bytes_of(dataset.graph));
      });
      records.push_back(record("read", file.name, threads, bytes, seconds, share));
      std::fprintf(stderr, "%s\n", records.back().c_str());
    }
    std::filesystem::remove(path);
  }
  fmt::print("[\n  {}\n]\n", fmt::join(records, ",\n  "));
}
