// strconv.AppendInt into the program's own buffer.
//
// Usage: append_int counter|random COUNT
package main

import (
	"math/bits"
	"os"
	"strconv"
)

// The numbers of random.h.
type randomNumbers struct{ state uint64 }

var first = [10]uint64{0, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000}
var count = [10]uint64{10, 90, 900, 9000, 90000, 900000, 9000000, 90000000, 900000000, 9000000000}

func (r *randomNumbers) next() uint64 {
	r.state += 0x9e3779b97f4a7c15
	z := r.state
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	z ^= z >> 31
	digits, left := bits.Mul64(z, 10)
	share, _ := bits.Mul64(left, count[digits])
	return first[digits] + share
}

func writeAll(buffer []byte) {
	if _, err := os.Stdout.Write(buffer); err != nil {
		os.Exit(1)
	}
}

func main() {
	if len(os.Args) != 3 || (os.Args[1] != "counter" && os.Args[1] != "random") {
		os.Exit(2)
	}
	random := os.Args[1] == "random"
	records, err := strconv.ParseUint(os.Args[2], 10, 64)
	if err != nil {
		os.Exit(2)
	}
	const size, longest = 64 * 1024, 32
	buffer := make([]byte, 0, size)
	numbers := randomNumbers{3}
	for i := uint64(0); i < records; i++ {
		number := i
		if random {
			number = numbers.next()
		}
		buffer = append(buffer, "Hello, "...)
		buffer = strconv.AppendInt(buffer, int64(number), 10)
		buffer = append(buffer, '\t')
		if len(buffer) > size-longest {
			writeAll(buffer)
			buffer = buffer[:0]
		}
	}
	writeAll(buffer)
}
