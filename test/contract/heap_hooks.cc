// A file of its own: inlined into users, GCC 12 takes malloc and free for a mismatch of new.
#include "test/support/heap_hooks.h"
