/* What the library's own threads look like from outside. "bound": the process has one core, as launchers bind it;
 * "openmp": the main thread has one core and others have more, as OpenMP binds them. */
#include "check.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Large enough for several threads to share. */
enum { N = 200000, PATIENCE = 20 };

static cpu_set_t cores_of(int thread) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  sched_getaffinity(thread, sizeof cores, &cores);
  return cores;
}

static void bind_to_all_cores(void) {
  cpu_set_t cores;
  memset(&cores, 0xff, sizeof cores);
  sched_setaffinity(0, sizeof cores, &cores);
}

static void bind_to_one_core(void) {
  cpu_set_t cores = cores_of(0), one;
  int core = 0;
  while (!CPU_ISSET(core, &cores)) core++;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  sched_setaffinity(0, sizeof one, &one);
}

/* What /proc says of a thread; empty if it has gone. */
static const char *text_of(const char *thread, const char *file) {
  static char text[4096];
  char path[300];
  snprintf(path, sizeof path, "/proc/self/task/%s/%s", thread, file);
  FILE *in = fopen(path, "r");
  size_t length = in ? fread(text, 1, sizeof text - 1, in) : 0;
  if (in) fclose(in);
  text[length] = 0;
  return text;
}

static unsigned long blocked_by(const char *thread) {
  const char *line = strstr(text_of(thread, "status"), "SigBlk:");
  return line ? strtoul(line + 7, NULL, 16) : 0;
}

/* The helpers there are, and whether all may run on these cores. */
static int helpers(const cpu_set_t *cores, int *placed) {
  int count = 0;
  *placed = 1;
  DIR *tasks = opendir("/proc/self/task");
  for (struct dirent *task; (task = readdir(tasks));) {
    if (strncmp(text_of(task->d_name, "comm"), "transpress-zfp", 14) != 0) continue;
    cpu_set_t theirs = cores_of(atoi(task->d_name));
    *placed &= CPU_EQUAL(&theirs, cores);
    for (int signal = 1; signal < SIGRTMAX; signal++) {
      int is_own = strchr((char[]){SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT, 0}, signal) != NULL;
      int is_for_libc = signal >= 32 && signal < SIGRTMIN;
      int is_for_none = signal == SIGKILL || signal == SIGSTOP;
      if (is_own || is_for_libc || is_for_none) continue;
      if (!(blocked_by(task->d_name) >> (signal - 1) & 1)) fail("a helper takes signal %d", signal);
    }
    count++;
  }
  closedir(tasks);
  return count;
}

/* Exchanges until every rank has a helper on all of these cores: one that gets no processor now does not begin. */
static void with_helpers(const cpu_set_t *cores) {
  time_t end = time(NULL) + PATIENCE;
  int placed, ready, all_ready = 0;
  while (!all_ready) {
    exchange_floats(N);
    ready = helpers(cores, &placed) == 1 && placed;
    if (time(NULL) > end) {
      fail("%d helpers, %splaced", helpers(cores, &placed), placed ? "" : "not ");
      ready = 1;
    }
    MPI_Allreduce(&ready, &all_ready, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  }
  check("one helper, on all cores of the program");
}

static void without_calls(const cpu_set_t *cores) {
  time_t end = time(NULL) + PATIENCE;
  int placed;
  while (helpers(cores, &placed) && time(NULL) <= end) usleep(50000);
  if (helpers(cores, &placed)) fail("a helper is still there");
  check("no helper without calls");
}

static void *idle(void *unused) {
  for (;;) pause();
  return unused;
}

int main(int argc, char **argv) {
  int is_bound = argc > 1 && strcmp(argv[1], "bound") == 0;
  /* Whatever the launcher did. */
  if (is_bound) bind_to_one_core();
  else bind_to_all_cores();
  check_init(&argc, &argv, MPI_THREAD_SINGLE);
  cpu_set_t cores = cores_of(0);
  if (!is_bound) {
    pthread_t other;
    pthread_create(&other, NULL, idle, NULL);
    bind_to_one_core();
  }
  for (int time = 0; time < 2; time++) {
    with_helpers(&cores);
    without_calls(&cores);
  }
  return check_done();
}
