#include "bench/common/heap_hooks.h"
