/* For programs of tests/attacks, which ask for the size of a block by Linux's name. */
#pragma once

#include <malloc/malloc.h>

#define malloc_usable_size malloc_size
