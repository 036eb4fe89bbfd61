// volk comes as source: this is its one translation unit.
#define VOLK_IMPLEMENTATION
#include <volk.h>
