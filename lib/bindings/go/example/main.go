// The example allocates in C from many goroutines, hands the blocks to others that free them, and asks Sluice what is live. With
// --json it writes the statistics.
package main

/*
#include <stdlib.h>
#include <string.h>

static void *filled(size_t size, int byte) {
  void *block = malloc(size);
  return block == NULL ? NULL : memset(block, byte, size);
}
*/
import "C"
import (
	"fmt"
	"os"
	"sync"
	"unsafe"

	sluice "sluice.example/malloc"
)

const (
	goroutines = 64
	each       = 1000
	size       = 1000
)

// blocks fills a channel with blocks of C, from many goroutines.
func blocks() chan unsafe.Pointer {
	made := make(chan unsafe.Pointer, goroutines*each)
	var group sync.WaitGroup
	for number := 0; number < goroutines; number++ {
		group.Add(1)
		go func(number int) {
			defer group.Done()
			for n := 0; n < each; n++ {
				made <- C.filled(size, C.int(number))
			}
		}(number)
	}
	group.Wait()
	close(made)
	return made
}

// release frees the blocks, on other threads than those that allocated them. It returns how many were written into by others.
func release(made chan unsafe.Pointer) int {
	var group sync.WaitGroup
	var mutex sync.Mutex
	changed := 0
	for number := 0; number < goroutines; number++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for block := range made {
				bytes := unsafe.Slice((*byte)(block), size)
				if bytes[0] != bytes[size-1] {
					mutex.Lock()
					changed++
					mutex.Unlock()
				}
				C.free(block)
			}
		}()
	}
	group.Wait()
	return changed
}

func main() {
	before := sluice.Read().LiveBytes
	made := blocks()
	with := sluice.Read().LiveBytes
	changed := release(made)
	after := sluice.Read().LiveBytes
	sluice.Idle()
	if changed > 0 || with < before+goroutines*each*size || after+goroutines*each*size > with {
		fmt.Fprintf(os.Stderr, "example: malloc is not Sluice's: live bytes %d, %d, %d; %d blocks changed\n", before, with, after, changed)
		os.Exit(1)
	}
	fmt.Printf("Sluice %s held %d MB of C's blocks, and %d threads\n", sluice.Version(), (with-before)/1000000, sluice.Read().Threads)
	if len(os.Args) > 1 && os.Args[1] == "--json" {
		if err := sluice.WriteStats(os.Stdout, true); err != nil {
			fmt.Fprintln(os.Stderr, "example:", err)
			os.Exit(1)
		}
	}
}
