// Calls: the log, failures on demand, and the end.
#include "fake.h"

#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

static std::recursive_mutex one_at_a_time;
static bool begun, ended;

// FAKE_CUDA_LOG: a file to which each call is appended as one line, with the process's number before it.
void note(const std::string &line) {
  static const char *path = getenv("FAKE_CUDA_LOG");
  if (!path) return;
  static thread_local int file = -1;
  if (file < 0) file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  std::string text = std::to_string(getpid()) + " " + line + "\n";
  if (write(file, text.data(), text.size()) < 0) abort();
}

// FAKE_CUDA_FAIL=name[:nth[:code]]: this call fails, each time or the nth time.
static CUresult demanded(const char *name) {
  static const char *demand = getenv("FAKE_CUDA_FAIL");
  static unsigned seen;
  if (!demand) return CUDA_SUCCESS;
  size_t length = strcspn(demand, ":");
  if (strlen(name) != length || strncmp(name, demand, length)) return CUDA_SUCCESS;
  unsigned nth = 0, code = CUDA_ERROR_UNKNOWN;
  sscanf(demand + length, ":%u:%u", &nth, &code);
  return nth == 0 || ++seen == nth ? (CUresult)code : CUDA_SUCCESS;
}

std::unique_lock<std::recursive_mutex> alone() { return std::unique_lock<std::recursive_mutex>(one_at_a_time); }

Call::Call(const char *name, const std::string &arguments, bool before_init) : lock(alone()) {
  note(name + arguments);
  if (ended) {
    refused = CUDA_ERROR_DEINITIALIZED;
  } else if (!begun && !before_init) {
    refused = CUDA_ERROR_NOT_INITIALIZED;
  } else {
    refused = demanded(name);
  }
}

extern "C" {

CUresult cuInit(unsigned flags) {
  Call call("cuInit", "", true);
  if (call.refused != CUDA_SUCCESS) return call.refused;
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  if (device_count() == 0) return CUDA_ERROR_NO_DEVICE;
  begun = true;
  return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version) {
  Call call("cuDriverGetVersion", "", true);
  *version = FAKE_CUDA_VERSION;
  return call.refused;
}

CUresult cuGetErrorName(CUresult code, const char **name) {
#define NAME(code) \
  case code: *name = #code; return CUDA_SUCCESS
  switch (code) {
    NAME(CUDA_SUCCESS);
    NAME(CUDA_ERROR_INVALID_VALUE);
    NAME(CUDA_ERROR_OUT_OF_MEMORY);
    NAME(CUDA_ERROR_NOT_INITIALIZED);
    NAME(CUDA_ERROR_DEINITIALIZED);
    NAME(CUDA_ERROR_NO_DEVICE);
    NAME(CUDA_ERROR_INVALID_DEVICE);
    NAME(CUDA_ERROR_INVALID_IMAGE);
    NAME(CUDA_ERROR_INVALID_CONTEXT);
    NAME(CUDA_ERROR_NO_BINARY_FOR_GPU);
    NAME(CUDA_ERROR_INVALID_PTX);
    NAME(CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
    NAME(CUDA_ERROR_INVALID_HANDLE);
    NAME(CUDA_ERROR_NOT_FOUND);
    NAME(CUDA_ERROR_NOT_READY);
    NAME(CUDA_ERROR_CONTEXT_IS_DESTROYED);
    NAME(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    NAME(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    NAME(CUDA_ERROR_LAUNCH_FAILED);
    NAME(CUDA_ERROR_NOT_SUPPORTED);
    NAME(CUDA_ERROR_UNKNOWN);
  }
  *name = nullptr;
  return CUDA_ERROR_INVALID_VALUE;
#undef NAME
}

CUresult cuGetErrorString(CUresult code, const char **text) { return cuGetErrorName(code, text); }

void fake_cuda_shut_down(void) {
  auto lock = alone();
  ended = true;
}

void fake_cuda_note(const char *line) { note(line); }

} // extern "C"

namespace {
struct End {
  ~End() { fake_cuda_shut_down(); }
} end;
} // namespace
