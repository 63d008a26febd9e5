// The other file of single_header_test.

#include SINGLE_HEADER

ms::output &out_of_another_file();
ms::output &out_of_another_file() { return ms::out; }
