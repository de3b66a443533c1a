/* What NumPy from 2.1 on calls and Wine 8's ucrtbase.dll has not: the parts of complex numbers. A structure of 16 bytes is
   passed by its address, one of 8 in a register. All other functions of the library are handed on, see platforms.py. */
#include <stdint.h>

typedef union {
    uint64_t bits;
    float parts[2];
} pair;

double creal(const double *z) { return z[0]; }
double cimag(const double *z) { return z[1]; }
double creall(const double *z) { return z[0]; }
double cimagl(const double *z) { return z[1]; }
float crealf(uint64_t z) { return ((pair){z}).parts[0]; }
float cimagf(uint64_t z) { return ((pair){z}).parts[1]; }

/* Instead of a C library, which would have these names itself. */
int _fltused;
int __stdcall DllMainCRTStartup(void *module, uint32_t reason, void *reserved) { return 1; }
