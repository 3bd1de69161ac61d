// Package adapters holds what an engine's author takes along: a C header and a
// Python module that write every dump format, and a whole example of a program
// under test for each. It has no Go code; its tests compile and run them and
// read the results back.
//
//	c/plumbline_dump.h         C99 or C++, POSIX, one header
//	c/example.c                a program for plumbline gate --exec
//	llamacpp/                  llama.cpp under test, from any GGUF: see its README
//	python/plumbline_dump.py   Python 3.8 or newer, standard library only
//	python/example.py          a program for plumbline gate --protocol --exec
//	python/plumbline_adapter/  what the adapters for llama.cpp and transformers share
//	transformers/              dumps models of Hugging Face transformers: see its README
//
// Both writers make a file under a temporary name beside the final one, sync it
// and link it to its name, so that a dump is whole or absent and never replaces
// another, whatever other threads and processes write. What the reader refuses
// of one file alone is refused here, and leaves nothing: EINVAL in C, a
// ValueError in Python. NaN and infinities are data.
package adapters
