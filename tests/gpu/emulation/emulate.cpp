// Runs the kernels of zfp.cu on a host; see cuda.h. Compile with -I of the folder that zfp.cu is in.

#include "cuda.h"

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <ucontext.h>
#include <utility>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

thread_local uint3 threadIdx, blockIdx, blockDim, gridDim;

namespace emulation {

const size_t STACK = 256 << 10;

struct Fiber {
    ucontext_t context;
    std::vector<char> stack;
    unsigned thread;
    Meeting meeting;
    unsigned mask;
    uint64_t value;
    bool runs, ended;
    void *fake_stack;
};

// What a kernel does, its arguments given.
struct Kernel {
    virtual void run() const = 0;
};

struct Machine {
    std::vector<Fiber> fibers;
    ucontext_t scheduler;
    void *fake_stack;
    const void *scheduler_stack;
    size_t scheduler_size;
    Fiber *current;
    const Kernel *kernel;
    // What the lanes of the warp of the current fiber brought to the last collective, warp by warp.
    std::vector<uint64_t> values;
    unsigned order = 0;
    std::mutex busy;
};

Machine machine;

void leave_to_scheduler(bool for_good)
{
    Fiber *self = machine.current;
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(for_good ? nullptr : &self->fake_stack, machine.scheduler_stack,
                                   machine.scheduler_size);
#else
    (void)for_good;
#endif
    swapcontext(&self->context, &machine.scheduler);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(self->fake_stack, nullptr, nullptr);
#endif
}

void begin_fiber()
{
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(nullptr, &machine.scheduler_stack, &machine.scheduler_size);
#endif
    machine.kernel->run();
    machine.current->ended = true;
    leave_to_scheduler(true);
}

void resume(Fiber &fiber)
{
    machine.current = &fiber;
    threadIdx = {fiber.thread, 0, 0};
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(&machine.fake_stack, fiber.stack.data(), STACK);
#endif
    swapcontext(&machine.scheduler, &fiber.context);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(machine.fake_stack, nullptr, nullptr);
#endif
}

void meet(Meeting kind, unsigned mask, uint64_t value)
{
    Fiber &self = *machine.current;
    self.meeting = kind;
    self.mask = mask;
    self.value = value;
    self.runs = false;
    leave_to_scheduler(false);
}

uint64_t brought(unsigned lane) { return machine.values[machine.current->thread / 32 * 32 + lane]; }

[[noreturn]] void give_up(const Fiber &fiber, unsigned other, const char *what)
{
    fprintf(stderr, "emulation: block %u, thread %u waits with mask %08x for thread %u, which %s\n", blockIdx.x,
            fiber.thread, fiber.mask, other, what);
    abort();
}

// Lets the lanes go on that wait for each other.
bool hold_meetings(unsigned first_thread)
{
    bool held = false;
    for (unsigned lane = 0; lane < 32; lane++) {
        Fiber &fiber = machine.fibers[first_thread + lane];
        if (fiber.runs || fiber.ended || fiber.meeting == Meeting::Block)
            continue;
        if (!(fiber.mask >> lane & 1))
            give_up(fiber, fiber.thread, "its own mask does not name");
        for (unsigned i = 0; i < 32; i++) {
            const Fiber &other = machine.fibers[first_thread + i];
            if (!(fiber.mask >> i & 1))
                continue;
            if (other.ended)
                give_up(fiber, other.thread, "has ended");
            if (other.runs || other.meeting != fiber.meeting || other.mask != fiber.mask)
                give_up(fiber, other.thread, "waits for something else");
        }
        unsigned mask = fiber.mask;
        for (unsigned i = 0; i < 32; i++)
            if (mask >> i & 1) {
                Fiber &other = machine.fibers[first_thread + i];
                machine.values[first_thread + i] = other.value;
                other.runs = true;
            }
        held = true;
    }
    return held;
}

// 0: as they are numbered; 1: backwards; else shuffled.
unsigned turn(unsigned i, unsigned count, unsigned round)
{
    if (machine.order < 2)
        return machine.order == 0 ? i : count - 1 - i;
    // An odd factor reaches every lane.
    return (i * (2 * (machine.order + round) + 1) + machine.order) % count;
}

bool run_warp(unsigned first_thread, unsigned round)
{
    bool ran = false;
    for (unsigned i = 0; i < 32; i++) {
        Fiber &fiber = machine.fibers[first_thread + turn(i, 32, round)];
        if (fiber.runs && !fiber.ended) {
            resume(fiber);
            ran = true;
        }
    }
    return ran;
}

// Runs all threads until they have ended or wait for the whole block. Returns whether any waits.
bool run_to_barrier(unsigned threads)
{
    for (unsigned i = 0; i < threads / 32; i++) {
        unsigned warp = machine.order % 2 ? threads / 32 - 1 - i : i;
        unsigned round = 0;
        do
            while (run_warp(32 * warp, round++))
                ;
        while (hold_meetings(32 * warp));
    }
    bool waits = false;
    for (Fiber &fiber : machine.fibers)
        if (!fiber.ended && fiber.thread < threads)
            waits = true;
    for (Fiber &fiber : machine.fibers)
        fiber.runs = !fiber.ended;
    return waits;
}

// What the linker says of the section; weak, as there may be none.
extern "C" __attribute__((weak)) char __start_shared_memory[], __stop_shared_memory[];

void make_ready(Fiber &fiber, unsigned thread)
{
    fiber.thread = thread;
    fiber.runs = true;
    fiber.ended = false;
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.data();
    fiber.context.uc_stack.ss_size = STACK;
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, begin_fiber, 0);
}

void run_block(unsigned threads)
{
    memset(__start_shared_memory, 0x5a + (int)blockIdx.x % 97, (size_t)(__stop_shared_memory - __start_shared_memory));
    for (unsigned thread = 0; thread < threads; thread++)
        make_ready(machine.fibers[thread], thread);
    while (run_to_barrier(threads))
        ;
}

void launch(const Kernel &kernel, unsigned grid, unsigned threads)
{
    std::lock_guard<std::mutex> guard(machine.busy);
    if (threads == 0 || threads % 32 != 0) {
        fprintf(stderr, "emulation: %u threads are no whole warps\n", threads);
        abort();
    }
    machine.kernel = &kernel;
    machine.values.resize(threads);
    machine.fibers.resize(threads);
    for (Fiber &fiber : machine.fibers)
        fiber.stack.resize(STACK);
    blockDim = {threads, 1, 1};
    gridDim = {grid, 1, 1};
    for (unsigned block = 0; block < grid; block++) {
        blockIdx = {block, 0, 0};
        run_block(threads);
    }
}

// A kernel with its arguments, which `args` points to one by one.
template <class... A> struct Call : Kernel {
    void (*function)(A...);
    void **args;
    template <size_t... I> void run(std::index_sequence<I...>) const { function(*static_cast<A *>(args[I])...); }
    void run() const override { run(std::index_sequence_for<A...>()); }
};

template <class... A> void launch(void (*function)(A...), unsigned grid, unsigned threads, void **args)
{
    Call<A...> call;
    call.function = function;
    call.args = args;
    launch(call, grid, threads);
}

} // namespace emulation

#include "zfp.cu"

extern "C" void emulate_order(unsigned order) { emulation::machine.order = order; }

// As cuLaunchKernel, with all in one dimension. Not 0 where there is no such kernel.
extern "C" int emulate(const char *kernel, unsigned grid, unsigned threads, void **args)
{
#define KERNEL(name)                                                                                                  \
    if (strcmp(kernel, #name) == 0) {                                                                                 \
        emulation::launch(name, grid, threads, args);                                                                 \
        return 0;                                                                                                     \
    }
#define KERNELS(type)                                                                                                 \
    KERNEL(encode_##type##_1)                                                                                         \
    KERNEL(encode_##type##_2)                                                                                         \
    KERNEL(encode_##type##_3)                                                                                         \
    KERNEL(decode_##type##_1)                                                                                         \
    KERNEL(decode_##type##_2)                                                                                         \
    KERNEL(decode_##type##_3)                                                                                         \
    KERNEL(sample_##type##_1)                                                                                         \
    KERNEL(sample_##type##_2)                                                                                         \
    KERNEL(sample_##type##_3)                                                                                         \
    KERNEL(survey_##type)                                                                                             \
    KERNEL(count_##type)                                                                                              \
    KERNEL(gather_##type)                                                                                             \
    KERNEL(exponents_##type)
    KERNELS(f32)
    KERNELS(f64)
    return 1;
}
