// Devices and contexts.
#include "fake.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

static thread_local std::vector<CUcontext> stack;
static unsigned made;

// Never freed: a program may keep the handle of a context that is gone.
static std::set<CUcontext> &contexts() {
  static auto *all = new std::set<CUcontext>;
  return *all;
}

// FAKE_CUDA_DEVICES: how many there are.
unsigned device_count() {
  const char *count = getenv("FAKE_CUDA_DEVICES");
  return count ? atoi(count) : 1;
}

static bool is_device_ordinal(int ordinal) { return ordinal >= 0 && (unsigned)ordinal < device_count(); }

static void make_alive(CUcontext context) {
  context->alive = true;
  context->error = CUDA_SUCCESS;
  context->id = ++made;
  context->legacy = new CUstream_st{context, true, 0, nullptr};
  context->streams.insert(context->legacy);
  note("context made device=" + std::to_string(context->device));
}

static void destroy(CUcontext context) {
  context->wait();
  drop_streams_of(context);
  drop_memory_of(context);
  context->modules.clear();
  context->alive = false;
  context->references = 0;
}

static CUcontext primary(CUdevice device) {
  static auto *all = new std::map<CUdevice, CUcontext>;
  CUcontext &context = (*all)[device];
  if (!context) {
    context = new CUctx_st(device);
    context->primary = true;
    contexts().insert(context);
  }
  return context;
}

static CUresult usable(CUcontext context) {
  if (!context || !contexts().count(context)) return CUDA_ERROR_INVALID_CONTEXT;
  if (!context->alive) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return context->error;
}

CUresult current(CUcontext *context) {
  *context = stack.empty() ? nullptr : stack.back();
  return usable(*context);
}

extern "C" {

CUresult cuDeviceGetCount(int *count) {
  CALL("cuDeviceGetCount");
  *count = device_count();
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  CALL("cuDeviceGet", "ordinal", ordinal);
  if (!is_device_ordinal(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
  CALL("cuDeviceGetName", "device", device);
  if (!is_device_ordinal(device)) return CUDA_ERROR_INVALID_DEVICE;
  snprintf(name, length, "Fake GPU %d", device);
  return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device) {
  CALL("cuDeviceTotalMem", "device", device);
  if (!is_device_ordinal(device)) return CUDA_ERROR_INVALID_DEVICE;
  *bytes = (size_t)80 << 30;
  return CUDA_SUCCESS;
}

// FAKE_CUDA_CAPABILITY: 9.0, or another.
CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device) {
  CALL("cuDeviceGetAttribute", "attribute", attribute, "device", device);
  if (!is_device_ordinal(device)) return CUDA_ERROR_INVALID_DEVICE;
  const char *capability = getenv("FAKE_CUDA_CAPABILITY");
  int major = 9, minor = 0;
  if (capability) sscanf(capability, "%d.%d", &major, &minor);
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = major; return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = minor; return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  CALL("cuDevicePrimaryCtxRetain", "device", device);
  if (!is_device_ordinal(device)) return CUDA_ERROR_INVALID_DEVICE;
  *context = primary(device);
  if (!(*context)->alive) make_alive(*context);
  (*context)->references++;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  CALL("cuDevicePrimaryCtxRelease", "device", device);
  if (!is_device_ordinal(device)) return CUDA_ERROR_INVALID_DEVICE;
  CUcontext context = primary(device);
  if (!context->references) return CUDA_ERROR_INVALID_CONTEXT;
  if (--context->references == 0) destroy(context);
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxReset(CUdevice device) {
  CALL("cuDevicePrimaryCtxReset", "device", device);
  if (!is_device_ordinal(device)) return CUDA_ERROR_INVALID_DEVICE;
  if (primary(device)->alive) destroy(primary(device));
  return CUDA_SUCCESS;
}

#if FAKE_CUDA_VERSION >= 7000
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active) {
  CALL("cuDevicePrimaryCtxGetState", "device", device);
  if (!is_device_ordinal(device)) return CUDA_ERROR_INVALID_DEVICE;
  *flags = 0;
  *active = primary(device)->alive;
  return CUDA_SUCCESS;
}
#endif

CUresult cuCtxCreate(CUcontext *context, unsigned flags, CUdevice device) {
  CALL("cuCtxCreate", "flags", flags, "device", device);
  if (!is_device_ordinal(device)) return CUDA_ERROR_INVALID_DEVICE;
  // As with a real driver, the handle may be one that another context had before.
  CUcontext made_now = nullptr;
  for (CUcontext old : contexts())
    if (!old->alive && !old->primary) made_now = old;
  if (!made_now) contexts().insert(made_now = new CUctx_st(device));
  made_now->device = device;
  make_alive(made_now);
  stack.push_back(made_now);
  *context = made_now;
  return CUDA_SUCCESS;
}

CUresult cuCtxDestroy(CUcontext context) {
  CALL("cuCtxDestroy");
  CUresult state = usable(context);
  if (state != CUDA_SUCCESS) return state;
  if (context->primary) return CUDA_ERROR_INVALID_CONTEXT;
  destroy(context);
  if (!stack.empty() && stack.back() == context) stack.pop_back();
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context) {
  CALL("cuCtxGetCurrent");
  *context = stack.empty() ? nullptr : stack.back();
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context) {
  CALL("cuCtxSetCurrent");
  if (context && usable(context) != CUDA_SUCCESS) return usable(context);
  if (!stack.empty()) stack.pop_back();
  if (context) stack.push_back(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext context) {
  CALL("cuCtxPushCurrent");
  CUresult state = usable(context);
  if (state != CUDA_SUCCESS) return state;
  stack.push_back(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent(CUcontext *context) {
  CALL("cuCtxPopCurrent");
  if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  *context = stack.back();
  stack.pop_back();
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device) {
  CALL("cuCtxGetDevice");
  CUcontext context;
  CUresult state = current(&context);
  if (state == CUDA_SUCCESS) *device = context->device;
  return state;
}

#if FAKE_CUDA_VERSION >= 12000
CUresult cuCtxGetId(CUcontext context, unsigned long long *id) {
  CALL("cuCtxGetId");
  CUresult state = usable(context);
  if (state == CUDA_SUCCESS) *id = context->id;
  return state;
}
#endif

CUresult cuCtxSynchronize(void) {
  CALL("cuCtxSynchronize");
  CUcontext context;
  CUresult state = current(&context);
  if (state != CUDA_SUCCESS) return state;
  context->wait();
  return context->error;
}

unsigned fake_cuda_contexts(void) { return made; }

} // extern "C"
