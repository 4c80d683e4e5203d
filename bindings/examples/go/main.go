// Counts in Go, by cgo: what a function does in its thread.
// CGO_CFLAGS=-I$PREFIX/include CGO_LDFLAGS=-L$PREFIX/lib go run .
package main

/*
#cgo LDFLAGS: -lquipu
#include <stdlib.h>
#include <quipu.h>
*/
import "C"

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"
)

// failure returns the calling thread's last failure, with its hint.
func failure() error {
	last := C.quipu_error{size: C.sizeof_quipu_error}
	C.quipu_last_error(&last)
	text := C.GoString(last.message)
	if last.hint != nil {
		text += "; " + C.GoString(last.hint)
	}
	return errors.New(text)
}

// measure counts an event in the thread that runs work, and refuses what is no exact count.
func measure(event string, work func()) (uint64, error) {
	// Counters are those of a thread, and so is the last error.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var set *C.quipu_set
	if C.quipu_set_create(nil, &set) != C.QUIPU_OK {
		return 0, failure()
	}
	defer C.quipu_set_close(set)
	text := C.CString(event)
	defer C.free(unsafe.Pointer(text))
	if C.quipu_set_add(set, text) != C.QUIPU_OK || C.quipu_set_open(set) != C.QUIPU_OK ||
		C.quipu_set_start(set) != C.QUIPU_OK {
		return 0, failure()
	}
	work()
	var value C.uint64_t
	if C.quipu_set_stop(set) != C.QUIPU_OK || C.quipu_set_values(set, &value, 1) != C.QUIPU_OK {
		return 0, failure()
	}
	return uint64(value), nil
}

// freshPages touches pages that the process never had: each faults once.
func freshPages(pages int) {
	size := os.Getpagesize()
	memory, err := syscall.Mmap(-1, 0, pages*size, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		panic(err)
	}
	for at := 0; at < len(memory); at += size {
		memory[at] = 1
	}
	_ = syscall.Munmap(memory)
}

func main() {
	for _, event := range []string{"page-faults", "instructions:u"} {
		count, err := measure(event, func() { freshPages(512) })
		if err != nil {
			fmt.Println(event+":", err)
			continue
		}
		fmt.Println(count, event)
	}
}
