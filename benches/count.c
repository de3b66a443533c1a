/* For a process to tell the valgrind around it where to begin and to end; see count.py. */
#include <valgrind/callgrind.h>

void begin(void) {
    CALLGRIND_ZERO_STATS;
}

void end(void) {
    CALLGRIND_DUMP_STATS;
}
