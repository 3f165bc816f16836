// Streams and events: what waits for what. Nothing is done before somebody waits for it.
#include "fake.h"

#include <cstring>
#include <pthread.h>

void carry_out(const Mark &work) {
  // Without recursion: chains may be long.
  std::vector<Mark> todo{work};
  while (!todo.empty()) {
    Mark next = todo.back();
    if (next->done) {
      todo.pop_back();
    } else if (!next->before.empty()) {
      Mark before = next->before.back();
      next->before.pop_back();
      if (before && !before->done) todo.push_back(before);
    } else {
      todo.pop_back();
      next->done = true;
      next->at = std::chrono::steady_clock::now();
      if (!next->action) continue;
      note("run " + next->name);
      CUresult result = next->action();
      next->action = nullptr;
      if (result != CUDA_SUCCESS) next->context->error = result;
    }
  }
}

static void carry_out(CUstream stream) {
  if (stream->last) carry_out(stream->last);
}

void CUctx_st::wait() {
  for (CUstream stream : streams) carry_out(stream);
}

static CUstream make(CUcontext context, bool blocking) {
  static unsigned number;
  auto *stream = new CUstream_st{context, blocking, ++number, nullptr};
  context->streams.insert(stream);
  return stream;
}

CUresult resolve(CUstream *stream) {
  CUcontext context;
  CUresult state = current(&context);
  if (state != CUDA_SUCCESS) return state;
  if (!*stream || *stream == CU_STREAM_LEGACY) {
    *stream = context->legacy;
  } else if (*stream == CU_STREAM_PER_THREAD) {
    CUstream &own = context->of_threads[pthread_self()];
    if (!own) own = make(context, true);
    *stream = own;
  } else if (!context->streams.count(*stream)) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  return CUDA_SUCCESS;
}

// The legacy stream waits for all blocking streams, and they for it.
CUresult put(CUstream stream, const std::string &name, std::function<CUresult()> action, Mark *mark) {
  auto work = std::make_shared<Work>();
  CUcontext context = stream->context;
  work->name = name;
  work->action = std::move(action);
  work->context = context;
  if (stream == context->legacy) {
    for (CUstream other : context->streams)
      if (other->blocking) work->before.push_back(other->last);
  } else {
    if (stream->blocking) work->before.push_back(context->legacy->last);
    work->before.push_back(stream->last);
  }
  stream->last = work;
  stream->asked = false;
  if (mark) *mark = work;
  return CUDA_SUCCESS;
}

void drop_streams_of(CUcontext context) {
  for (CUstream stream : context->streams) delete stream;
  context->streams.clear();
  context->of_threads.clear();
  context->legacy = nullptr;
  for (CUevent event : context->events) delete event;
  context->events.clear();
}

// What was asked about once is done when it is asked about again.
static CUresult query(const Mark &mark, bool *asked) {
  if (!mark || mark->done) return CUDA_SUCCESS;
  if (!*asked) {
    *asked = true;
    return CUDA_ERROR_NOT_READY;
  }
  carry_out(mark);
  return mark->context->error;
}

static CUresult of_current(CUevent event, CUcontext *context) {
  CUresult state = current(context);
  if (state != CUDA_SUCCESS) return state;
  return (*context)->events.count(event) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

// Puts a copy on a stream. Host memory that is not page-locked is read at once, and when it is written, the call
// returns only after it was.
static CUresult copy(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream, bool wait) {
  CUresult state = resolve(&stream);
  if (state != CUDA_SUCCESS) return state;
  if (bytes == 0) return CUDA_SUCCESS;
  if (!reach(to, bytes) || !reach(from, bytes)) return CUDA_ERROR_INVALID_VALUE;
  std::shared_ptr<std::vector<char>> staged;
  if (is_pageable(from, bytes)) {
    char *source = reach(from, bytes);
    staged = std::make_shared<std::vector<char>>(source, source + bytes);
  }
  Mark mark;
  put(
      stream, "copy" + words("to", hex(to), "from", hex(from), "bytes", bytes),
      [=] {
        char *target = reach(to, bytes), *source = staged ? staged->data() : reach(from, bytes);
        if (!target || !source) return CUDA_ERROR_INVALID_VALUE;
        memmove(target, source, bytes);
        return CUDA_SUCCESS;
      },
      &mark);
  if (!wait && !is_pageable(to, bytes)) return CUDA_SUCCESS;
  carry_out(mark);
  return mark->context->error;
}

template <typename T>
static CUresult set(CUdeviceptr to, T value, size_t count, CUstream stream) {
  CUresult state = resolve(&stream);
  if (state != CUDA_SUCCESS) return state;
  size_t bytes = count * sizeof value;
  if (!allocation_at(to) || !reach(to, bytes)) return CUDA_ERROR_INVALID_VALUE;
  return put(stream, "set" + words("to", hex(to), "bytes", bytes), [=] {
    auto *target = (T *)reach(to, bytes);
    if (!target) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) target[i] = value;
    return CUDA_SUCCESS;
  });
}

static CUdeviceptr of_host(const void *address) { return (CUdeviceptr)(uintptr_t)address; }

extern "C" {

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  CALL("cuMemcpy", "to", hex(to), "from", hex(from), "bytes", bytes);
  return copy(to, from, bytes, nullptr, !is_device(to) || !is_device(from));
}

CUresult cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t bytes) {
  CALL("cuMemcpyHtoD", "to", hex(to), "from", from, "bytes", bytes);
  return allocation_at(to) ? copy(to, of_host(from), bytes, nullptr, true) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, size_t bytes) {
  CALL("cuMemcpyDtoH", "to", to, "from", hex(from), "bytes", bytes);
  return allocation_at(from) ? copy(of_host(to), from, bytes, nullptr, true) : CUDA_ERROR_INVALID_VALUE;
}

// Within devices, even the function without "Async" returns before the copy is done.
CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  CALL("cuMemcpyDtoD", "to", hex(to), "from", hex(from), "bytes", bytes);
  return is_device(to) && is_device(from) ? copy(to, from, bytes, nullptr, false) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  CALL("cuMemcpyAsync", "to", hex(to), "from", hex(from), "bytes", bytes);
  return copy(to, from, bytes, stream, false);
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
  CALL("cuMemcpyHtoDAsync", "to", hex(to), "from", from, "bytes", bytes);
  return allocation_at(to) ? copy(to, of_host(from), bytes, stream, false) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
  CALL("cuMemcpyDtoHAsync", "to", to, "from", hex(from), "bytes", bytes);
  return allocation_at(from) ? copy(of_host(to), from, bytes, stream, false) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  CALL("cuMemcpyDtoDAsync", "to", hex(to), "from", hex(from), "bytes", bytes);
  return is_device(to) && is_device(from) ? copy(to, from, bytes, stream, false) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemsetD8(CUdeviceptr to, unsigned char value, size_t count) {
  CALL("cuMemsetD8", "to", hex(to), "count", count);
  return set(to, value, count, nullptr);
}

CUresult cuMemsetD32(CUdeviceptr to, unsigned value, size_t count) {
  CALL("cuMemsetD32", "to", hex(to), "count", count);
  return set(to, value, count, nullptr);
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
  CALL("cuMemsetD8Async", "to", hex(to), "count", count);
  return set(to, value, count, stream);
}

CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream) {
  CALL("cuMemsetD32Async", "to", hex(to), "count", count);
  return set(to, value, count, stream);
}

CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
  CALL("cuStreamCreate", "flags", flags);
  CUcontext context;
  CUresult state = current(&context);
  if (state == CUDA_SUCCESS) *stream = make(context, !(flags & CU_STREAM_NON_BLOCKING));
  return state;
}

CUresult cuStreamDestroy(CUstream stream) {
  CALL("cuStreamDestroy");
  CUresult state = resolve(&stream);
  if (state != CUDA_SUCCESS) return state;
  // Its work goes on; here it is done.
  carry_out(stream);
  stream->context->streams.erase(stream);
  delete stream;
  return CUDA_SUCCESS;
}

CUresult cuStreamQuery(CUstream stream) {
  CALL("cuStreamQuery");
  CUresult state = resolve(&stream);
  return state == CUDA_SUCCESS ? query(stream->last, &stream->asked) : state;
}

CUresult cuStreamSynchronize(CUstream stream) {
  CALL("cuStreamSynchronize");
  CUresult state = resolve(&stream);
  if (state != CUDA_SUCCESS) return state;
  carry_out(stream);
  return stream->context->error;
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  CALL("cuStreamWaitEvent", "flags", flags);
  CUresult state = resolve(&stream);
  if (state != CUDA_SUCCESS) return state;
  if (!stream->context->events.count(event)) return CUDA_ERROR_INVALID_HANDLE;
  Mark mark;
  put(stream, "wait", nullptr, &mark);
  mark->before.push_back(event->mark);
  return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent *event, unsigned flags) {
  CALL("cuEventCreate", "flags", flags);
  CUcontext context;
  CUresult state = current(&context);
  if (state != CUDA_SUCCESS) return state;
  *event = new CUevent_st{context, nullptr};
  context->events.insert(*event);
  return CUDA_SUCCESS;
}

CUresult cuEventDestroy(CUevent event) {
  CALL("cuEventDestroy");
  CUcontext context;
  CUresult state = of_current(event, &context);
  if (state != CUDA_SUCCESS) return state;
  context->events.erase(event);
  delete event;
  return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
  CALL("cuEventRecord");
  CUresult state = resolve(&stream);
  if (state != CUDA_SUCCESS) return state;
  if (!stream->context->events.count(event)) return CUDA_ERROR_INVALID_HANDLE;
  event->asked = false;
  return put(stream, "record", nullptr, &event->mark);
}

CUresult cuEventQuery(CUevent event) {
  CALL("cuEventQuery");
  CUcontext context;
  CUresult state = of_current(event, &context);
  return state == CUDA_SUCCESS ? query(event->mark, &event->asked) : state;
}

CUresult cuEventSynchronize(CUevent event) {
  CALL("cuEventSynchronize");
  CUcontext context;
  CUresult state = of_current(event, &context);
  if (state != CUDA_SUCCESS) return state;
  if (event->mark) carry_out(event->mark);
  return context->error;
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent from, CUevent to) {
  CALL("cuEventElapsedTime");
  CUcontext context;
  for (CUevent event : {from, to}) {
    CUresult state = of_current(event, &context);
    if (state != CUDA_SUCCESS) return state;
    if (!event->mark) return CUDA_ERROR_INVALID_HANDLE;
    if (!event->mark->done) return CUDA_ERROR_NOT_READY;
  }
  *milliseconds = std::chrono::duration<float, std::milli>(to->mark->at - from->mark->at).count();
  return context->error;
}

void *fake_cuda_reach(CUdeviceptr address) {
  auto lock = alone();
  CUcontext context;
  if (is_device(address) && current(&context) == CUDA_SUCCESS) {
    Mark mark;
    put(context->legacy, "reach", nullptr, &mark);
    carry_out(mark);
  }
  return fake_cuda_backing(address);
}

} // extern "C"
