// Modules and launches: PTX text is read as far as names and parameters go; what a kernel does is done by the one of
// the same name in another shared object.
#include "fake.h"

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <regex>

struct CUfunc_st {
  std::string name;
  CUcontext context;
  std::vector<size_t> parameters; // bytes of each
};

struct CUmod_st {
  std::map<std::string, CUfunc_st> functions;
};

// Bytes of a parameter such as `.param .u64 .ptr .global name` or `.param .align 8 .b8 name[16]`.
static size_t size_of(const std::string &parameter) {
  static const std::regex type("\\.[busf](8|16|32|64)\\b"), array("\\[(\\d+)\\]");
  std::smatch found;
  if (!std::regex_search(parameter, found, type)) return 0;
  size_t bytes = std::stoul(found[1]) / 8;
  if (std::regex_search(parameter, found, array)) bytes *= std::stoul(found[1]);
  return bytes;
}

static std::vector<size_t> sizes_of(const std::string &parameters) {
  std::vector<size_t> sizes;
  size_t at = 0;
  while ((at = parameters.find(".param", at)) != std::string::npos) {
    size_t end = parameters.find(',', at);
    sizes.push_back(size_of(parameters.substr(at, end - at)));
    at++;
  }
  return sizes;
}

// FAKE_CUDA_PTX: the newest PTX version that the driver takes.
static CUresult check(const std::string &text, std::string *log) {
  std::smatch version, target;
  if (!std::regex_search(text, version, std::regex("(^|\\n)\\s*\\.version\\s+(\\d+)\\.(\\d+)"))) {
    *log = "no .version";
    return CUDA_ERROR_INVALID_PTX;
  }
  if (!std::regex_search(text, target, std::regex("\\.target\\s+sm_(\\d+)")) ||
      text.find(".address_size 64") == std::string::npos) {
    *log = "no .target, or not of 64 bits";
    return CUDA_ERROR_INVALID_PTX;
  }
  int newest_major = 8, newest_minor = 4, major = 9, minor = 0;
  if (const char *newest = getenv("FAKE_CUDA_PTX")) sscanf(newest, "%d.%d", &newest_major, &newest_minor);
  if (std::make_pair(std::stoi(version[2]), std::stoi(version[3])) > std::make_pair(newest_major, newest_minor)) {
    *log = "ptxas application ptx input, line 1; fatal   : Unsupported .version " + version[2].str() + "." +
           version[3].str();
    return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
  }
  if (const char *capability = getenv("FAKE_CUDA_CAPABILITY")) sscanf(capability, "%d.%d", &major, &minor);
  if (std::stoi(target[1]) > 10 * major + minor) {
    *log = "SM version specified by .target is higher than default SM version assumed";
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  }
  return CUDA_SUCCESS;
}

static CUresult load(CUmodule *module, const void *image, std::string *log) {
  CUcontext context;
  CUresult state = current(&context);
  if (state != CUDA_SUCCESS) return state;
  std::string text = (const char *)image;
  state = check(text, log);
  if (state != CUDA_SUCCESS) return state;
  auto *made = new CUmod_st;
  size_t at = 0;
  while ((at = text.find(".entry", at)) != std::string::npos) {
    size_t name = text.find_first_not_of(" \t\n", at + 6), open = text.find('(', at), close = text.find(')', at);
    if (close == std::string::npos) return CUDA_ERROR_INVALID_PTX;
    size_t end = text.find_first_of(" \t\n(", name);
    std::string of = text.substr(name, end - name);
    made->functions[of] = CUfunc_st{of, context, sizes_of(text.substr(open, close - open))};
    at = close;
  }
  if (made->functions.empty()) return CUDA_ERROR_INVALID_PTX;
  context->modules.insert(made);
  *module = made;
  return CUDA_SUCCESS;
}

using Emulate = int (*)(const char *kernel, unsigned grid, unsigned threads, void **args);

// FAKE_CUDA_KERNELS: the shared object with `emulate`.
static Emulate emulation() {
  static Emulate found = [] {
    const char *path = getenv("FAKE_CUDA_KERNELS");
    void *object = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
    if (path && !object) fprintf(stderr, "fake CUDA: %s\n", dlerror());
    return object ? (Emulate)dlsym(object, "emulate") : nullptr;
  }();
  return found;
}

extern "C" {

CUresult cuModuleLoadData(CUmodule *module, const void *image) {
  CALL("cuModuleLoadData");
  std::string log;
  return load(module, image, &log);
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned options, int *names, void **values) {
  CALL("cuModuleLoadDataEx", "options", options);
  std::string log;
  CUresult state = load(module, image, &log);
  char *buffer = nullptr;
  size_t room = 0;
  for (unsigned i = 0; i < options; i++) {
    if (names[i] == CU_JIT_ERROR_LOG_BUFFER) buffer = (char *)values[i];
    if (names[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) room = (size_t)values[i];
  }
  if (buffer && room) strncpy(buffer, log.c_str(), room);
  return state;
}

CUresult cuModuleUnload(CUmodule module) {
  CALL("cuModuleUnload");
  CUcontext context;
  CUresult state = current(&context);
  if (state != CUDA_SUCCESS) return state;
  context->wait();
  if (!context->modules.erase(module)) return CUDA_ERROR_INVALID_HANDLE;
  delete module;
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
  CALL("cuModuleGetFunction", "name", name);
  CUcontext context;
  CUresult state = current(&context);
  if (state != CUDA_SUCCESS) return state;
  if (!context->modules.count(module)) return CUDA_ERROR_INVALID_HANDLE;
  auto found = module->functions.find(name);
  if (found == module->functions.end()) return CUDA_ERROR_NOT_FOUND;
  *function = &found->second;
  return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                        unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void **args,
                        void **extra) {
  CALL("cuLaunchKernel", "kernel", function->name.c_str(), "grid", grid_x, "threads", block_x);
  CUresult state = resolve(&stream);
  if (state != CUDA_SUCCESS) return state;
  if (function->context != stream->context) return CUDA_ERROR_INVALID_HANDLE;
  if (!grid_x || grid_x > 0x7fffffff || !block_x || block_x > 1024) return CUDA_ERROR_INVALID_VALUE;
  if (grid_y != 1 || grid_z != 1 || block_y != 1 || block_z != 1 || shared || extra) return CUDA_ERROR_NOT_SUPPORTED;
  Emulate emulate = emulation();
  if (!emulate) {
    fprintf(stderr, "fake CUDA: FAKE_CUDA_KERNELS names no kernels\n");
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  // The arguments are read now, what they point to when the kernel runs.
  auto values = std::make_shared<std::vector<std::vector<char>>>();
  for (size_t i = 0; i < function->parameters.size(); i++) {
    auto *value = (const char *)args[i];
    values->emplace_back(value, value + function->parameters[i]);
  }
  std::string name = function->name;
  CUdevice device = stream->context->device;
  return put(stream, "kernel name=" + name, [=] {
    std::vector<void *> pointers;
    for (auto &value : *values) pointers.push_back(value.data());
    open_memory(device, true);
    int failed = emulate(name.c_str(), grid_x, block_x, pointers.data());
    open_memory(device, false);
    return failed ? CUDA_ERROR_LAUNCH_FAILED : CUDA_SUCCESS;
  });
}

} // extern "C"
