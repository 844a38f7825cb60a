// Prio3Histogram of CIRCL, another's implementation: the least milliseconds of CPU time a report of several runs.
//
// prio3.py puts this file into a checkout of github.com/cloudflare/circl and runs it there with lengths and chunk
// lengths as arguments, in pairs. It prints JSON.
package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"syscall"

	"github.com/cloudflare/circl/vdaf/prio3/histogram"
)

const times = 5

func processorSeconds() float64 {
	var used syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	seconds := float64(used.Utime.Sec + used.Stime.Sec)
	return seconds + 1e-6*float64(used.Utime.Usec+used.Stime.Usec)
}

func milliseconds(reports int, work func(i int)) float64 {
	least := math.Inf(1)
	for range times {
		start := processorSeconds()
		for i := range reports {
			work(i)
		}
		least = min(least, 1000*(processorSeconds()-start)/float64(reports))
	}
	return math.Round(1e4*least) / 1e4
}

func number(text string) uint {
	found, err := strconv.ParseUint(text, 10, 32)
	check(err)
	return uint(found)
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func measured(length, chunk uint) map[string]float64 {
	vdaf, err := histogram.New(2, length, chunk, []byte("a benchmark's task"))
	check(err)
	params := vdaf.Params()
	var key histogram.VerifyKey
	var nonce histogram.Nonce
	rand := make([]byte, params.RandSize())
	var public histogram.PublicShare
	var shares []histogram.InputShare
	reports := int(max(4, 1<<16/length))
	found := map[string]float64{"shard": milliseconds(reports, func(int) {
		public, shares, err = vdaf.Shard(uint64(length/3), &nonce, rand)
		check(err)
	})}
	for role, name := range []string{"leader", "helper"} {
		found[name] = milliseconds(reports, func(int) {
			_, _, err := vdaf.PrepInit(&key, &nonce, uint8(role), public, shares[role])
			check(err)
		})
	}
	return found
}

func main() {
	runtime.GOMAXPROCS(1)
	found := map[string]map[string]float64{}
	for i := 1; i+1 < len(os.Args); i += 2 {
		found[os.Args[i]] = measured(number(os.Args[i]), number(os.Args[i+1]))
	}
	check(json.NewEncoder(os.Stdout).Encode(found))
}
