// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm/blas.hpp"

#include <dlfcn.h>
#include <omp.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/ops/blas.hpp"

/// OpenBLAS. It is loaded at the first product and not linked with: as it starts it maps a buffer
/// of 128 MiB for each processor, and where it gets none it asks again for ever. Here it is asked
/// for nothing until there is room.
namespace tessera::ops {
namespace blas {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;
constexpr std::size_t buffer_bytes = 128 * mib;  // what OpenBLAS maps by default, or less
constexpr std::size_t thread_bytes = 16 * mib;   // the variant with POSIX threads starts some
constexpr std::size_t image_bytes = 96 * mib;    // the library itself and those it needs
/// What another thread may take between the look at what there is and OpenBLAS's own request: a
/// heap of its own takes 128 MiB while it is made.
constexpr std::size_t spare_bytes = 144 * mib;

// What `get_parallel` says.
constexpr int threads_are_posix = 1;
constexpr int threads_are_openmp = 2;

// Of cblas.h.
constexpr int row_major = 101;
int flag(Transpose transpose) { return transpose == Transpose::yes ? 112 : 111; }

/// The functions used, as cblas.h declares them. Enumerations of C are ints.
struct Library {
  template <class T>
  using Gemm = void(int order, int transpose_a, int transpose_b, int rows, int cols, int inner,
                    T alpha, const T* a, int stride_a, const T* b, int stride_b, T beta, T* c,
                    int stride_c);

  Gemm<float>* sgemm;
  Gemm<double>* dgemm;
  void (*set_num_threads)(int threads);
  int (*get_parallel)();
  char* (*get_config)();
  void* (*take_buffer)(int place);
  void (*return_buffer)(void* buffer);
  std::string path;  ///< the file that it was loaded from
};

/// By the names that Debian, Fedora (with OpenMP threads) and Alpine give it, then where the build
/// found it.
constexpr std::array names{"libopenblas.so.0", "libopenblaso.so.0", "libopenblas.so.3",
                           TESSERA_OPENBLAS};

[[noreturn]] void refuse_memory() {
  throw Error(ErrorCode::out_of_memory, "no room for OpenBLAS, which maps 128 MiB for each thread",
              "gemm",
              "raise the limit on memory (ulimit -v), or use fewer threads (OMP_NUM_THREADS=1)");
}

/// Mappings that are made to see whether they can be, and given back.
class Room {
 public:
  ~Room() {
    for (const Piece& piece : pieces_) munmap(piece.memory, piece.bytes);
  }
  void require(std::size_t bytes) {
    pieces_.reserve(pieces_.size() + 1);
    void* const memory =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) refuse_memory();
    pieces_.push_back({memory, bytes});
  }

 private:
  struct Piece {
    void* memory;
    std::size_t bytes;
  };
  std::vector<Piece> pieces_;
};

int number_in_environment(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? 0 : std::atoi(text);
}

/// For so many threads it maps buffers as it starts, at most.
int threads_at_start() {
  const int processors = omp_get_num_procs();
  const int openmp = number_in_environment("OMP_NUM_THREADS");
  if (openmp <= 0) return processors;
  return std::min(processors, std::max(openmp, number_in_environment("OPENBLAS_NUM_THREADS")));
}

/// Ends before the library is loaded, which takes the same room.
void require_room_to_start() {
  Room room;
  room.require(image_bytes + spare_bytes);
  for (int i = threads_at_start(); i > 0; --i) room.require(buffer_bytes + thread_bytes);
}

void* open_library() {
  std::string first_problem;
  for (const char* const name : names) {
    if (void* const handle = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return handle;
    const char* const problem = dlerror();
    if (first_problem.empty() && problem != nullptr) first_problem = problem;
  }
  throw Error(ErrorCode::backend_unavailable,
              "products on the CPU need OpenBLAS, which cannot be loaded: " + first_problem, "gemm",
              "install it: apt-get install libopenblas0-openmp");
}

template <class Function>
void find(void* handle, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(handle, name));
  if (function != nullptr) return;
  throw Error(ErrorCode::backend_unavailable,
              std::string("OpenBLAS has no function '") + name + "'", "gemm",
              "install a plain build of it: apt-get install libopenblas0-openmp");
}

/// It stays loaded until the process ends.
Library load() {
  require_room_to_start();
  const OneOpenMpThread one_thread;
  void* const handle = open_library();
  Library loaded{};
  find(handle, "cblas_sgemm", loaded.sgemm);
  find(handle, "cblas_dgemm", loaded.dgemm);
  find(handle, "openblas_set_num_threads", loaded.set_num_threads);
  find(handle, "openblas_get_parallel", loaded.get_parallel);
  find(handle, "openblas_get_config", loaded.get_config);
  find(handle, "blas_memory_alloc", loaded.take_buffer);
  find(handle, "blas_memory_free", loaded.return_buffer);
  Dl_info found{};
  if (dladdr(reinterpret_cast<void*>(loaded.sgemm), &found) != 0) loaded.path = found.dli_fname;
  // What it mapped for threads of its own, it gives to our calls from now on.
  loaded.set_num_threads(1);
  return loaded;
}

/// Loads it the first time. Throws `backend_unavailable` where it is not installed, and
/// `out_of_memory` where there is no room for it.
const Library& library() {
  static const Library loaded = load();
  return loaded;
}

std::atomic<int> calls_in_progress{0};
std::atomic<int> num_buffers{0};  ///< calls in progress are never more

/// Calls that go on meanwhile may find all buffers held, and have others mapped for themselves.
/// Threads of OpenBLAS's own may still be about to map theirs.
void require_room_for_buffer() {
  static const int own_threads =
      library().get_parallel() == threads_are_posix ? threads_at_start() : 0;
  Room room;
  room.require(spare_bytes);
  for (int i = own_threads; i > 0; --i) room.require(buffer_bytes + thread_bytes);
  for (int i = num_buffers.load(); i >= 0; --i) room.require(buffer_bytes);
}

/// Has OpenBLAS map buffers until there are so many, and returns how many there are.
int map_buffers(int wanted) {
  static std::set<void*> known;
  constexpr auto give_back = [](void* buffer) { library().return_buffer(buffer); };
  // They are held, so that OpenBLAS has to give another one.
  std::vector<std::unique_ptr<void, decltype(give_back)>> held;
  while (static_cast<int>(known.size()) < wanted) {
    require_room_for_buffer();
    held.reserve(held.size() + 1);
    held.emplace_back(library().take_buffer(0));
    known.insert(held.back().get());
  }
  return static_cast<int>(known.size());
}

/// Has OpenBLAS map buffers until so many calls can run at a time, or throws `out_of_memory`.
void obtain_buffers(int calls) {
  if (calls <= num_buffers.load(std::memory_order_acquire)) return;
  library();
  static std::mutex obtaining;
  const std::scoped_lock lock(obtaining);
  num_buffers.store(map_buffers(calls), std::memory_order_release);
}

/// Counts a call as it runs.
struct CallInProgress {
  const int calls = calls_in_progress.fetch_add(1) + 1;
  CallInProgress() = default;
  ~CallInProgress() { calls_in_progress.fetch_sub(1); }
  CallInProgress(const CallInProgress&) = delete;
  CallInProgress& operator=(const CallInProgress&) = delete;
};

int narrow(std::int64_t size) { return static_cast<int>(size); }

/// In this order: OpenMP ends the process where it has no memory, and loading looks whether it has.
OneOpenMpThread one_thread_after_loading() {
  library();
  return OneOpenMpThread();
}

template <class T>
void call(Library::Gemm<T>* gemm, const Product<T>& p) {
  const CallInProgress in_progress;
  obtain_buffers(in_progress.calls);
  gemm(row_major, flag(p.transpose_a), flag(p.transpose_b), narrow(p.rows), narrow(p.cols),
       narrow(p.inner), p.alpha, p.a, narrow(p.stride_a), p.b, narrow(p.stride_b), p.beta, p.c,
       narrow(p.stride_c));
}

}  // namespace

void multiply(const Product<float>& product) { call(library().sgemm, product); }
void multiply(const Product<double>& product) { call(library().dgemm, product); }

// The OpenMP variant asks OpenMP for the number of threads at each call and uses one inside a
// parallel region. The pthread variant has a number of its own, for the whole process.
SingleThread::SingleThread(std::int64_t calls) : openmp_(one_thread_after_loading()) {
  static const bool follows_openmp = library().get_parallel() == threads_are_openmp;
  if (!follows_openmp) library().set_num_threads(1);
  obtain_buffers(static_cast<int>(std::min<std::int64_t>(calls, num_threads())));
}

}  // namespace blas

std::string describe_blas() {
  const blas::Library& library = blas::library();
  return std::string(library.get_config()) + ", " + library.path;
}

}  // namespace tessera::ops
