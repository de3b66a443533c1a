/* bcryptprimitives.dll for Wine 8, which has not got the one function that Rust's standard library wants of it. */
#include <stddef.h>

__declspec(dllimport) unsigned char __stdcall SystemFunction036(void *buffer, unsigned long length);

__declspec(dllexport) int __stdcall ProcessPrng(unsigned char *buffer, size_t length) {
    return SystemFunction036(buffer, (unsigned long)length);
}
