/* local PLUGIN: a host that is not linked with MPI and loads it with RTLD_LOCAL, as Python does. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
  void *plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  if (!plugin) {
    printf("FAIL dlopen: %s\n", dlerror());
    return 1;
  }
  int (*plugin_main)(void);
  void *found = dlsym(plugin, "plugin_main");
  memcpy(&plugin_main, &found, sizeof plugin_main);
  return plugin_main();
}
