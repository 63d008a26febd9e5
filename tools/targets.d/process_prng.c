/* bcryptprimitives.dll for Wine 8, which lacks it: random numbers from the function that older programs use. */
#include <windows.h>

BOOLEAN NTAPI SystemFunction036(PVOID data, ULONG len);

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T len);

BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T len) { return SystemFunction036(data, (ULONG)len); }
