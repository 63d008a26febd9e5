// BSON in Go: the package bson of MongoDB's driver.
//
// Usage: bson WORK FILE [GETS] [--once]
//
//	bson --version
//
// The tasks and answers equal those in benchmarks/runners/src/bin/bson. The first pass is not timed; the median of
// the others is reported.
package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

type record struct {
	ID      int64         `bson:"id"`
	Name    string        `bson:"name"`
	Score   float64       `bson:"score"`
	Tags    []string      `bson:"tags"`
	Active  bool          `bson:"active"`
	Created bson.DateTime `bson:"created"`
}

type order struct {
	Order    int64 `bson:"order"`
	Customer struct {
		Name    string `bson:"name"`
		Address struct {
			Street string `bson:"street"`
			City   string `bson:"city"`
			Zip    string `bson:"zip"`
		} `bson:"address"`
	} `bson:"customer"`
	Items []struct {
		SKU      string   `bson:"sku"`
		Quantity int32    `bson:"quantity"`
		Price    float64  `bson:"price"`
		Options  []string `bson:"options"`
	} `bson:"items"`
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bson:", err)
		os.Exit(1)
	}
}

func documents(data []byte) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for left := data; len(left) > 0; {
			length := binary.LittleEndian.Uint32(left)
			if !yield(left[:length]) {
				return
			}
			left = left[length:]
		}
	}
}

// Decodes each document into a new T.
func each[T any](data []byte, look func(*T)) {
	for document := range documents(data) {
		decoded := new(T)
		must(bson.Unmarshal(document, decoded))
		if look != nil {
			look(decoded)
		}
	}
}

func main() {
	arguments, once := os.Args[1:], false
	if len(arguments) == 1 {
		about, _ := debug.ReadBuildInfo()
		for _, module := range about.Deps {
			fmt.Println(module.Path, module.Version, "on", runtime.Version())
		}
		return
	}
	if arguments[len(arguments)-1] == "--once" {
		arguments, once = arguments[:len(arguments)-1], true
	}
	data, err := os.ReadFile(arguments[1])
	must(err)

	answer := ""
	var pass func()
	switch arguments[0] {
	case "records":
		var count, ids, text, tags, active, created uint64
		var scores float64
		each(data, func(one *record) {
			count++
			ids += uint64(one.ID)
			text += uint64(len(one.Name))
			scores += one.Score
			tags += uint64(len(one.Tags))
			for _, tag := range one.Tags {
				text += uint64(len(tag))
			}
			if one.Active {
				active++
			}
			created += uint64(one.Created)
		})
		answer = fmt.Sprintf("count=%d ids=%d text=%d scores=%d tags=%d active=%d created=%d",
			count, ids, text, uint64(scores*64), tags, active, created)
		pass = func() { each[record](data, nil) }
	case "orders":
		var count, orders, text, quantity, options uint64
		var prices float64
		each(data, func(one *order) {
			orders += uint64(one.Order)
			address := one.Customer.Address
			text += uint64(len(one.Customer.Name) + len(address.Street) + len(address.City) + len(address.Zip))
			for _, item := range one.Items {
				count++
				quantity += uint64(item.Quantity)
				prices += item.Price
				text += uint64(len(item.SKU))
				options += uint64(len(item.Options))
				for _, option := range item.Options {
					text += uint64(len(option))
				}
			}
		})
		answer = fmt.Sprintf("count=%d orders=%d text=%d quantity=%d prices=%d options=%d",
			count, orders, text, quantity, uint64(prices*64), options)
		pass = func() { each[order](data, nil) }
	case "wide":
		gets, err := strconv.Atoi(arguments[2])
		must(err)
		var value int32
		pass = func() {
			for range gets {
				found, err := bson.Raw(data).LookupErr("field_0988")
				must(err)
				value = found.Int32()
			}
		}
		pass()
		answer = fmt.Sprintf("value=%d", value)
	case "encode":
		var all []*record
		each(data, func(one *record) { all = append(all, one) })
		var written bytes.Buffer
		for _, one := range all {
			document, err := bson.Marshal(one)
			must(err)
			written.Write(document)
		}
		if !bytes.Equal(written.Bytes(), data) {
			must(fmt.Errorf("what was encoded is not what was decoded"))
		}
		answer = fmt.Sprintf("count=%d bytes=%d", len(all), len(data))
		pass = func() {
			for _, one := range all {
				_, err := bson.Marshal(one)
				must(err)
			}
		}
	default:
		must(fmt.Errorf("no work %q", arguments[0]))
	}

	var times []time.Duration
	var spent time.Duration
	for !once && (len(times) < 3 || (len(times) < 15 && spent < 400*time.Millisecond)) {
		start := time.Now()
		pass()
		times = append(times, time.Since(start))
		spent += times[len(times)-1]
	}
	if len(times) > 0 {
		slices.Sort(times)
		answer += fmt.Sprintf(" ns=%d", times[len(times)/2].Nanoseconds())
	}
	fmt.Println(answer)
}
