// SPDX-License-Identifier: Apache-2.0
//
// What racecheck says of a block that writes into the shared memory of another one in its cluster.
//
//     nvcc -std=c++20 -arch=sm_90a tools/racecheck_cluster.cu -o race
//     compute-sanitizer --tool racecheck ./race WAY
//
// copied: it writes to places that cp.async wrote before; stored: that stores wrote before;
// other: to places beside those that cp.async wrote.
//
// In all three every thread waits for its own copies, the block meets at a barrier, the cluster
// meets at a barrier with release and acquire, the other block writes, and the cluster meets again:
// the order is that of the memory model. A hazard that is reported for one of them and not for the
// others says how the tool follows copies, not that there is one.
#include <cooperative_groups.h>

#include <cstdio>
#include <cstring>

constexpr int threads = 128;

enum class Way { copied, stored, other };

template <Way way>
__global__ __cluster_dims__(2, 1, 1) void exchange(const int* from, int* to) {
  __shared__ __align__(16) int own[2 * threads];
  const auto cluster = cooperative_groups::this_cluster();
  const unsigned rank = cluster.block_rank();
  const unsigned i = threadIdx.x;
  if constexpr (way == Way::stored) {
    own[i] = from[i];
  } else {
    const auto address = static_cast<unsigned>(__cvta_generic_to_shared(own + i));
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(address), "l"(from + i)
                 : "memory");
    asm volatile("cp.async.wait_all;" ::: "memory");
  }
  __syncthreads();
  const int before = own[(i + 1) % threads];
  cluster.sync();
  const unsigned place = way == Way::other ? threads + i : i;
  if (rank == 1) cluster.map_shared_rank(own, 0)[place] = before + 1;
  cluster.sync();
  if (rank == 0) to[i] = own[place];
}

bool succeeds(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return true;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  return false;
}

template <Way way>
int run() {
  int *from = nullptr, *to = nullptr;
  if (!succeeds(cudaMallocManaged(&from, threads * sizeof(int)), "allocating") ||
      !succeeds(cudaMallocManaged(&to, threads * sizeof(int)), "allocating")) {
    return 2;
  }
  for (int i = 0; i < threads; ++i) from[i] = i * i;
  exchange<way><<<2, threads>>>(from, to);
  if (!succeeds(cudaGetLastError(), "launching")) return 2;
  if (!succeeds(cudaDeviceSynchronize(), "running")) return 2;
  for (int i = 0; i < threads; ++i) {
    const int expected = from[(i + 1) % threads] + 1;
    if (to[i] == expected) continue;
    std::fprintf(stderr, "place %d is %d, expected %d\n", i, to[i], expected);
    return 1;
  }
  std::puts("as expected");
  return 0;
}

int main(int count, char** arguments) {
  const char* const way = count == 2 ? arguments[1] : "";
  if (std::strcmp(way, "copied") == 0) return run<Way::copied>();
  if (std::strcmp(way, "stored") == 0) return run<Way::stored>();
  if (std::strcmp(way, "other") == 0) return run<Way::other>();
  std::fputs("one word is needed: copied, stored or other\n", stderr);
  return 2;
}
