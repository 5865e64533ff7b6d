#include "test/support/heap_hooks.h"
