// Memory: allocations, and where an address lies.
#include "fake.h"

#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

static std::map<uintptr_t, Allocation> &allocations() {
  static auto *all = new std::map<uintptr_t, Allocation>;
  return *all;
}

const Allocation *allocation_at(uintptr_t address) {
  auto after = allocations().upper_bound(address);
  if (after == allocations().begin()) return nullptr;
  const Allocation &found = std::prev(after)->second;
  return address - found.address < found.bytes ? &found : nullptr;
}

char *reach(CUdeviceptr address, size_t bytes) {
  const Allocation *found = allocation_at(address);
  if (!found) return (char *)(uintptr_t)address;
  size_t offset = address - found->address;
  if (found->bytes - offset < bytes) return nullptr;
  return found->kind == Kind::device ? found->backing + offset : (char *)(uintptr_t)address;
}

bool is_pageable(CUdeviceptr address, size_t bytes) {
  const Allocation *found = allocation_at(address);
  return !found || found->bytes - (address - found->address) < bytes;
}

bool is_device(CUdeviceptr address) {
  const Allocation *found = allocation_at(address);
  return found && (found->kind == Kind::device || found->kind == Kind::managed);
}

void open_memory(CUdevice device, bool open) {
  for (auto &[address, allocation] : allocations())
    if (allocation.kind == Kind::device && allocation.device == device &&
        mprotect((void *)allocation.pages, allocation.mapped, open ? PROT_READ | PROT_WRITE : PROT_NONE))
      abort();
}

// Pages of a file in memory, mapped twice: for the driver, and at the device's address, where nobody may look. The
// allocation ends with the last page but for alignment, and a page that is nobody's follows.
static bool map_twice(size_t bytes, Allocation *into) {
  size_t page = sysconf(_SC_PAGESIZE);
  size_t aligned = (bytes + 255) / 256 * 256;
  into->mapped = (aligned + page - 1) / page * page;
  int file = memfd_create("device memory", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, into->mapped)) return false;
  void *backing = mmap(nullptr, into->mapped, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  char *room = (char *)mmap(nullptr, into->mapped + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (backing == MAP_FAILED || room == MAP_FAILED) return false;
  void *pages = mmap(room, into->mapped, PROT_NONE, MAP_SHARED | MAP_FIXED, file, 0);
  close(file);
  if (pages == MAP_FAILED) return false;
  memset(backing, 0xa5, into->mapped); // whatever was there before
  size_t offset = into->mapped - aligned;
  into->pages = (uintptr_t)pages;
  into->address = into->pages + offset;
  into->backing = (char *)backing + offset;
  return true;
}

static bool map_once(size_t bytes, Allocation *into) {
  void *pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return false;
  into->mapped = bytes;
  into->pages = into->address = (uintptr_t)pages;
  return true;
}

static CUresult allocate(Kind kind, size_t bytes, CUcontext context, CUdevice device, uintptr_t *address) {
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  Allocation made{0, bytes, kind, device, context, nullptr, 0, 0};
  if (!(kind == Kind::device ? map_twice(bytes, &made) : map_once(bytes, &made))) return CUDA_ERROR_OUT_OF_MEMORY;
  allocations()[made.address] = made;
  *address = made.address;
  return CUDA_SUCCESS;
}

static CUresult release(uintptr_t address, bool (*may)(Kind), CUresult otherwise) {
  auto found = allocations().find(address);
  if (found == allocations().end() || !may(found->second.kind)) return otherwise;
  const Allocation &old = found->second;
  if (old.kind != Kind::registered) munmap((void *)old.pages, old.mapped);
  if (old.kind == Kind::device) munmap((void *)((uintptr_t)old.backing & ~(sysconf(_SC_PAGESIZE) - 1)), old.mapped);
  allocations().erase(found);
  return CUDA_SUCCESS;
}

static bool is_for_device(Kind kind) { return kind == Kind::device || kind == Kind::managed; }
static bool is_pinned(Kind kind) { return kind == Kind::pinned; }
static bool is_registered(Kind kind) { return kind == Kind::registered; }

void drop_memory_of(CUcontext context) {
  std::vector<uintptr_t> gone;
  for (auto &[address, allocation] : allocations())
    if (allocation.context == context) gone.push_back(address);
  for (uintptr_t address : gone) release(address, [](Kind) { return true; }, CUDA_ERROR_UNKNOWN);
}

// Whoever frees memory waits for all that may use it.
static CUresult wait_and_release(uintptr_t address, bool (*may)(Kind), CUresult otherwise) {
  CUcontext context;
  CUresult state = current(&context);
  if (state != CUDA_SUCCESS) return state;
  context->wait();
  return release(address, may, otherwise);
}

// FAKE_CUDA_MANAGED=host: managed memory says that it is the host's.
static unsigned type_of(const Allocation *found) {
  if (!found) return 0;
  if (found->kind == Kind::managed && getenv("FAKE_CUDA_MANAGED")) return CU_MEMORYTYPE_HOST;
  return is_for_device(found->kind) ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
}

static CUresult attribute_of(const Allocation *found, int attribute, void *value) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: *(CUcontext *)value = found ? found->context : nullptr; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE: *(unsigned *)value = type_of(found); return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: *(bool *)value = found && found->kind == Kind::managed; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      *(int *)value = found ? found->device : CU_DEVICE_INVALID;
      return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

extern "C" {

CUresult cuMemAlloc(CUdeviceptr *address, size_t bytes) {
  CALL("cuMemAlloc", "bytes", bytes);
  CUcontext context;
  CUresult state = current(&context);
  uintptr_t made;
  if (state == CUDA_SUCCESS) state = allocate(Kind::device, bytes, context, context->device, &made);
  if (state == CUDA_SUCCESS) *address = made;
  return state;
}

CUresult cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream) {
  CALL("cuMemAllocAsync", "bytes", bytes);
  CUresult state = resolve(&stream);
  uintptr_t made;
  if (state == CUDA_SUCCESS) state = allocate(Kind::device, bytes, nullptr, stream->context->device, &made);
  if (state == CUDA_SUCCESS) *address = made;
  return state;
}

CUresult cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned flags) {
  CALL("cuMemAllocManaged", "bytes", bytes, "flags", flags);
  CUcontext context;
  CUresult state = current(&context);
  uintptr_t made;
  if (state == CUDA_SUCCESS) state = allocate(Kind::managed, bytes, context, context->device, &made);
  if (state == CUDA_SUCCESS) *address = made;
  return state;
}

CUresult cuMemFree(CUdeviceptr address) {
  CALL("cuMemFree", "address", hex(address));
  return wait_and_release(address, is_for_device, CUDA_ERROR_INVALID_VALUE);
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  CALL("cuMemFreeAsync", "address", hex(address));
  CUresult state = resolve(&stream);
  if (state != CUDA_SUCCESS) return state;
  return put(stream, "free", [=] { return release(address, is_for_device, CUDA_ERROR_INVALID_VALUE); });
}

CUresult cuMemHostAlloc(void **address, size_t bytes, unsigned flags) {
  CALL("cuMemHostAlloc", "bytes", bytes, "flags", flags);
  CUcontext context;
  CUresult state = current(&context);
  uintptr_t made;
  if (state == CUDA_SUCCESS) state = allocate(Kind::pinned, bytes, context, context->device, &made);
  if (state == CUDA_SUCCESS) *address = (void *)made;
  return state;
}

CUresult cuMemFreeHost(void *address) {
  CALL("cuMemFreeHost", "address", address);
  return wait_and_release((uintptr_t)address, is_pinned, CUDA_ERROR_INVALID_VALUE);
}

CUresult cuMemHostRegister(void *address, size_t bytes, unsigned flags) {
  CALL("cuMemHostRegister", "address", address, "bytes", bytes, "flags", flags);
  CUcontext context;
  CUresult state = current(&context);
  if (state != CUDA_SUCCESS) return state;
  auto at = (uintptr_t)address;
  if (allocation_at(at)) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  allocations()[at] = Allocation{at, bytes, Kind::registered, context->device, context, nullptr, at, bytes};
  return CUDA_SUCCESS;
}

CUresult cuMemHostUnregister(void *address) {
  CALL("cuMemHostUnregister", "address", address);
  return wait_and_release((uintptr_t)address, is_registered, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

CUresult cuPointerGetAttribute(void *value, int attribute, CUdeviceptr address) {
  CALL("cuPointerGetAttribute", "address", hex(address));
  const Allocation *found = allocation_at(address);
  return found ? attribute_of(found, attribute, value) : CUDA_ERROR_INVALID_VALUE;
}

#if FAKE_CUDA_VERSION >= 7000
// FAKE_CUDA_UNKNOWN=error: plain memory is an error, as for some versions; else memory without type.
CUresult cuPointerGetAttributes(unsigned count, int *attributes, void **values, CUdeviceptr address) {
  CALL("cuPointerGetAttributes", "address", hex(address));
  const Allocation *found = allocation_at(address);
  if (!found && getenv("FAKE_CUDA_UNKNOWN")) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count; i++) {
    CUresult state = attribute_of(found, attributes[i], values[i]);
    if (state != CUDA_SUCCESS) return state;
  }
  return CUDA_SUCCESS;
}
#endif

const char *fake_cuda_kind(CUdeviceptr address) {
  auto lock = alone();
  const Allocation *found = allocation_at(address);
  if (!found) return "pageable";
  return found->kind == Kind::device ? "device" : found->kind == Kind::managed ? "managed" : "pinned";
}

void *fake_cuda_backing(CUdeviceptr address) {
  auto lock = alone();
  const Allocation *found = allocation_at(address);
  return found && found->kind == Kind::device ? found->backing + (address - found->address) : nullptr;
}

} // extern "C"
