// Prints the larger of two numbers per line with bufio.Scanner, splitting into words, and bufio.Writer.
package main

import (
	"bufio"
	"os"
	"strconv"
)

func main() {
	in := bufio.NewScanner(bufio.NewReaderSize(os.Stdin, 64*1024))
	in.Split(bufio.ScanWords)
	out := bufio.NewWriterSize(os.Stdout, 64*1024)
	number := func() uint64 {
		if !in.Scan() {
			os.Exit(1)
		}
		value, err := strconv.ParseUint(in.Text(), 10, 32)
		if err != nil {
			os.Exit(1)
		}
		return value
	}
	var digits []byte
	for lines := number(); lines > 0; lines-- {
		digits = strconv.AppendUint(digits[:0], max(number(), number()), 10)
		out.Write(append(digits, '\n'))
	}
	if out.Flush() != nil {
		os.Exit(1)
	}
}
