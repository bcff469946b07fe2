// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <memory>
#include <system_error>

#include <fmt/format.h>

#include "machine.hpp"

namespace tessera::app {
namespace {

namespace fs = std::filesystem;

// Numbers of the CUDA driver interface, which are part of its binary contract.
constexpr int success = 0;
constexpr int no_device = 100;
constexpr int attribute_multiprocessors = 16;
constexpr int attribute_compute_major = 75;
constexpr int attribute_compute_minor = 76;

struct LibraryCloser {
  void operator()(void* library) const { dlclose(library); }
};
using Library = std::unique_ptr<void, LibraryCloser>;

template <class Function>
Function* symbol(const Library& library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library.get(), name));
}

/// The few driver functions used here.
struct Driver {
  int (*init)(unsigned flags);
  int (*version)(int* version);
  int (*count)(int* count);
  int (*get)(int* device, int ordinal);
  int (*name)(char* name, int length, int device);
  int (*memory)(std::size_t* bytes, int device);
  int (*attribute)(int* value, int attribute, int device);

  explicit Driver(const Library& library)
      : init(symbol<int(unsigned)>(library, "cuInit")),
        version(symbol<int(int*)>(library, "cuDriverGetVersion")),
        count(symbol<int(int*)>(library, "cuDeviceGetCount")),
        get(symbol<int(int*, int)>(library, "cuDeviceGet")),
        name(symbol<int(char*, int, int)>(library, "cuDeviceGetName")),
        memory(symbol<int(std::size_t*, int)>(library, "cuDeviceTotalMem_v2")),
        attribute(symbol<int(int*, int, int)>(library, "cuDeviceGetAttribute")) {}

  bool complete() const {
    return init != nullptr && version != nullptr && count != nullptr && get != nullptr &&
           name != nullptr && memory != nullptr && attribute != nullptr;
  }
};

int attribute_of(const Driver& driver, int attribute, int device) {
  int value = 0;
  return driver.attribute(&value, attribute, device) == success ? value : 0;
}

GpuDevice describe(const Driver& driver, int device) {
  GpuDevice result;
  char name[256] = "";
  driver.name(name, sizeof(name) - 1, device);
  std::size_t bytes = 0;
  driver.memory(&bytes, device);
  result.name = name;
  result.memory_bytes = static_cast<std::int64_t>(bytes);
  result.compute_major = attribute_of(driver, attribute_compute_major, device);
  result.compute_minor = attribute_of(driver, attribute_compute_minor, device);
  result.multiprocessors = attribute_of(driver, attribute_multiprocessors, device);
  return result;
}

void ask(const Driver& driver, GpuInfo& info) {
  driver.version(&info.driver_version);
  if (const int status = driver.init(0); status != success) {
    if (status != no_device) info.problem = fmt::format("cuInit failed with code {}", status);
    return;
  }
  int count = 0;
  driver.count(&count);
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    int device = 0;
    if (driver.get(&device, ordinal) == success) info.devices.push_back(describe(driver, device));
  }
}

bool nvidia_display_on_bus() {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/sys/bus/pci/devices", error)) {
    std::string vendor, kind;
    std::ifstream(entry.path() / "vendor") >> vendor;
    std::ifstream(entry.path() / "class") >> kind;
    if (vendor == "0x10de" && kind.rfind("0x03", 0) == 0) return true;
  }
  return false;
}

}  // namespace

GpuInfo probe_gpu() {
  GpuInfo info;
  info.hardware_seen = nvidia_display_on_bus();
  const Library library(dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL));
  if (library == nullptr) return info;
  info.driver_library = true;
  const Driver driver(library);
  if (driver.complete()) {
    ask(driver, info);
  } else {
    info.problem = "libcuda.so.1 lacks functions every driver has";
  }
  return info;
}

}  // namespace tessera::app
