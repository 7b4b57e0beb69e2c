// Package sluice links the malloc Sluice to a Go program: its C code, and the C libraries that it uses, allocate from it.
// Go's own objects lie in Go's heap, which takes no memory from malloc.
//
// With the tag sluice_weak nothing is linked: the program runs with and without Sluice, by a preload or with the static library that
// -extldflags names. README.md says how.
package sluice

// #include <sluice/sluice.h>
import "C"
import (
	"errors"
	"os"
	"unsafe"
)

var errAbsent = errors.New("sluice: the process does not run on Sluice")

// Present tells whether the process runs on Sluice. It does unless the tag sluice_weak is set.
func Present() bool { return C.sluice_present() != 0 }

// Stats are totals of the process, in bytes of whole blocks. Counts are 0 unless SLUICE_STATS is set.
type Stats struct {
	Mallocs, Frees uint64 // blocks handed out and taken back (counted)
	LiveBytes      uint64 // of the blocks that the program holds now
	PeakLiveBytes  uint64 // highest LiveBytes (counted)
	CachedBytes    uint64 // free blocks held by thread caches
	RetainedBytes  uint64 // free pages that have not yet gone back to the system
	MappedBytes    uint64 // readable and writable address space held by the heap
	Threads        uint64 // that have a cache now
}

// Read returns the totals of the process now, or zeros where Sluice is absent. It walks over the heap's slabs, under its locks.
func Read() Stats {
	var from C.sluice_stats
	if !Present() {
		return Stats{}
	}
	C.sluice_stats_get(&from, C.size_t(unsafe.Sizeof(from)))
	return Stats{
		Mallocs: uint64(from.mallocs), Frees: uint64(from.frees),
		LiveBytes: uint64(from.live_bytes), PeakLiveBytes: uint64(from.peak_live_bytes),
		CachedBytes: uint64(from.cached_bytes), RetainedBytes: uint64(from.retained_bytes),
		MappedBytes: uint64(from.mapped_bytes), Threads: uint64(from.threads),
	}
}

// WriteStats writes the statistics to a file, as a table or as JSON. Go's programs end by the system call itself, so that nothing is
// written at exit.
func WriteStats(to *os.File, json bool) error {
	if !Present() {
		return errAbsent
	}
	format := C.int(0)
	if json {
		format = 1
	}
	if status, err := C.sluice_stats_print(C.int(to.Fd()), format); status != 0 {
		return err
	}
	return nil
}

// Idle gives back to the system what is free. For a loop that is about to wait for longer than some ten milliseconds.
func Idle() {
	if Present() {
		C.sluice_idle()
	}
}

// Version returns the version of the library that is loaded, "MAJOR.MINOR.PATCH", or nothing where Sluice is absent.
func Version() string {
	if !Present() {
		return ""
	}
	return C.GoString(C.sluice_version())
}
