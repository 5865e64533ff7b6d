// How a program starts on glibc 2.28 as on later releases: programs are linked with
// -Wl,--wrap=__libc_start_main. Since 2.34 the function runs the program's constructors by itself
// if it gets none to run (`init` is null), and the start files of the compiler give it none. Older
// releases run only what they get. All of them run `init`, and only that, if it is not null.
#include <cstddef>

extern "C" {

using Step = void(int, char**, char**);

// The version that every release has.
int start_main(int (*main)(int, char**, char**), int argc, char** argv, Step* init, void (*fini)(),
               void (*loader_fini)(), void* stack_end);
asm(".symver start_main, __libc_start_main@GLIBC_2.2.5");

// Of the linker: the program's constructors; and of the start files: what runs before them.
extern Step* __init_array_start[];
extern Step* __init_array_end[];
void _init();

static void run_constructors(int argc, char** argv, char** environment) {
  _init();
  const ptrdiff_t count = __init_array_end - __init_array_start;
  for (ptrdiff_t i = 0; i < count; ++i) __init_array_start[i](argc, argv, environment);
}

int __wrap___libc_start_main(int (*main)(int, char**, char**), int argc, char** argv, Step* init,
                             void (*fini)(), void (*loader_fini)(), void* stack_end) {
  return start_main(main, argc, argv, init != nullptr ? init : run_constructors, fini, loader_fini,
                    stack_end);
}

}  // extern "C"
