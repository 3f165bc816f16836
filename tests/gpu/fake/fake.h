// A stand-in for libcuda.so.1, to run real programs against where there is no GPU.
//
// Memory of a device is out of the host's reach: an access that is none of the driver's ends the program. What
// CUDA may do later is done as late as it may be: when somebody waits for it.
#pragma once

#include "cuda.h"

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

// A call of the program: one at a time in the process, written to the log, and refused where FAKE_CUDA_FAIL says so,
// before cuInit and after the end.
class Call {
public:
  Call(const char *name, const std::string &arguments, bool before_init = false);
  CUresult refused = CUDA_SUCCESS;

private:
  std::unique_lock<std::recursive_mutex> lock;
};

#define CALL(name, ...)             \
  Call call(name, words(__VA_ARGS__)); \
  if (call.refused != CUDA_SUCCESS) return call.refused

// Pairs of a name and a value: "bytes=8 stream=1".
inline std::string words() { return ""; }
template <typename T, typename... Rest>
std::string words(const char *name, T value, Rest... rest) {
  std::string text = std::string(" ") + name + "=";
  if constexpr (std::is_convertible_v<T, const char *>) {
    text += value;
  } else if constexpr (std::is_pointer_v<T>) {
    char digits[32];
    snprintf(digits, sizeof digits, "%#lx", (unsigned long)(uintptr_t)value);
    text += digits;
  } else {
    text += std::to_string(value);
  }
  return text + words(rest...);
}
inline const void *hex(CUdeviceptr address) { return (const void *)(uintptr_t)address; }

void note(const std::string &line);
std::unique_lock<std::recursive_mutex> alone();

// A piece of work, done once, after all that it waits for.
struct Work {
  std::string name;
  std::function<CUresult()> action; // empty for a mark in a stream
  std::vector<std::shared_ptr<Work>> before;
  CUcontext context = nullptr;
  bool done = false;
  std::chrono::steady_clock::time_point at; // when it was
};
using Mark = std::shared_ptr<Work>;
void carry_out(const Mark &work);

struct CUevent_st {
  CUcontext context;
  Mark mark; // null: never recorded
  bool asked = false;
};

struct CUstream_st {
  CUcontext context;
  bool blocking;
  unsigned number;
  Mark last;
  bool asked = false;
};

struct CUctx_st {
  explicit CUctx_st(CUdevice device) : device(device) {}
  CUdevice device;
  unsigned long long id = 0;
  bool primary = false, alive = false;
  unsigned references = 0;
  CUresult error = CUDA_SUCCESS; // sticks
  std::set<CUstream> streams;
  CUstream legacy = nullptr;
  std::map<unsigned long, CUstream> of_threads;
  std::set<CUevent> events;
  std::set<CUmodule> modules;
  void wait();
};

// contexts.cpp
unsigned device_count();
// The calling thread's context, if it can be used.
CUresult current(CUcontext *context);
// A stream of the current context: its own, or the one a special handle stands for.
CUresult resolve(CUstream *stream);

// memory.cpp
enum class Kind { device, managed, pinned, registered };
struct Allocation {
  uintptr_t address;
  size_t bytes;
  Kind kind;
  CUdevice device;
  CUcontext context;    // of pools: null
  char *backing;        // of device memory: where it can be reached
  uintptr_t pages;      // the whole mapping
  size_t mapped;
};
const Allocation *allocation_at(uintptr_t address);
// Where the host can reach so many bytes; null where a device's memory ends before.
char *reach(CUdeviceptr address, size_t bytes);
bool is_pageable(CUdeviceptr address, size_t bytes);
bool is_device(CUdeviceptr address);
// Lets this device's memory be reached at its own addresses, for a kernel.
void open_memory(CUdevice device, bool open);
void drop_memory_of(CUcontext context);

// streams.cpp
CUresult put(CUstream stream, const std::string &name, std::function<CUresult()> action, Mark *mark = nullptr);
void drop_streams_of(CUcontext context);
