/* Ways for a process to live and die: life WAY. Prints the same with the library as without. */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 3000 };

static void exchange(void) {
  exchange_floats(N);
  check("exchange");
}

static void finalize(void) { MPI_Finalize(); }

static void expect_exit(int status, int code, const char *what) {
  if (!WIFEXITED(status) || WEXITSTATUS(status) != code) fail("%s ended with status %d", what, status);
}

static void fork_and_exec(void) {
  int status;
  pid_t child = fork();
  if (child == 0) _exit(7);
  waitpid(child, &status, 0);
  expect_exit(status, 7, "a fork that leaves by _exit");
  child = fork();
  if (child == 0) {
    execlp("sh", "sh", "-c", "exit 5", (char *)NULL);
    _exit(1);
  }
  waitpid(child, &status, 0);
  expect_exit(status, 5, "a fork that becomes a shell");
  expect_exit(system("true"), 0, "system(\"true\")");
  FILE *pipe = popen("echo hello", "r");
  char line[20] = "";
  if (!fgets(line, sizeof line, pipe) || strcmp(line, "hello\n")) fail("popen read \"%s\"", line);
  expect_exit(pclose(pipe), 0, "popen");
  check("fork and exec");
}

int main(int argc, char **argv) {
  const char *way = argc > 1 ? argv[1] : "";
  if (strcmp(way, "without-mpi") == 0) return puts("done") < 0;
  if (strcmp(way, "atexit") == 0) atexit(finalize);
  check_init(&argc, &argv, strcmp(way, "init") == 0 ? MPI_THREAD_SINGLE : MPI_THREAD_FUNNELED);
  exchange();
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (strcmp(way, "fork") == 0) {
    fork_and_exec();
    exchange();
  }
  if (rank == 0) puts("done");
  fflush(stdout);
  MPI_Barrier(MPI_COMM_WORLD);
  if (strcmp(way, "abort") == 0) {
    if (rank == 0) MPI_Abort(MPI_COMM_WORLD, 9);
    pause();
  }
  if (strcmp(way, "_exit") == 0) _exit(0);
  if (strcmp(way, "exit") == 0) exit(0);
  if (strcmp(way, "atexit") != 0 && strcmp(way, "never") != 0) MPI_Finalize();
  return 0;
}
