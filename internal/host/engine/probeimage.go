package engine

import (
	"archive/tar"
	"bytes"
	"encoding/binary"
	"fmt"
)

// The probe's program prints /proc/self/status and exits with 0. It is written
// out as machine code because the probe must run where there is no registry to
// pull an image from and no compiler, and on the daemon's architecture, which
// needn't be the client's. Any failure inside shows as output without CapBnd.

// probeAMD64: open(path), read(fd, stack, 8192), write(1, stack, n), exit(0).
var probeAMD64 = []byte{
	0x48, 0x8d, 0x3d, 0x35, 0, 0, 0, // lea rdi, [rip+path]
	0x31, 0xf6, // xor esi, esi (O_RDONLY)
	0xb8, 2, 0, 0, 0, 0x0f, 0x05, // open
	0x48, 0x81, 0xec, 0, 0x20, 0, 0, // sub rsp, 8192
	0x89, 0xc7, // mov edi, eax
	0x48, 0x89, 0xe6, // mov rsi, rsp
	0xba, 0, 0x20, 0, 0, // mov edx, 8192
	0x31, 0xc0, 0x0f, 0x05, // read
	0x89, 0xc2, // mov edx, eax
	0xbf, 1, 0, 0, 0, // mov edi, 1
	0xb8, 1, 0, 0, 0, 0x0f, 0x05, // write
	0x31, 0xff, // xor edi, edi
	0xb8, 60, 0, 0, 0, 0x0f, 0x05, // exit
}

// probeARM64 is the same with openat.
var probeARM64 = words(
	0x10000221, // adr x1, path (68 bytes on)
	0x92800c60, // mov x0, #-100 (AT_FDCWD)
	0xd2800002, // mov x2, #0 (O_RDONLY)
	0xd2800708, // mov x8, #56
	0xd4000001, // svc #0: openat
	0xd1400bff, // sub sp, sp, #8192
	0x910003e1, // mov x1, sp
	0xd2840002, // mov x2, #8192
	0xd28007e8, // mov x8, #63
	0xd4000001, // svc #0: read
	0xaa0003e2, // mov x2, x0
	0xd2800020, // mov x0, #1
	0xd2800808, // mov x8, #64
	0xd4000001, // svc #0: write
	0xd2800000, // mov x0, #0
	0xd2800ba8, // mov x8, #93
	0xd4000001, // svc #0: exit
)

func words(code ...uint32) (out []byte) {
	for _, w := range code {
		out = binary.LittleEndian.AppendUint32(out, w)
	}
	return out
}

// probeProgram returns a static ELF executable for an architecture, named as
// `uname -m` names it.
func probeProgram(arch string) ([]byte, error) {
	const base, headers = 0x400000, 64 + 56
	var machine uint16
	var code []byte
	switch arch {
	case "x86_64", "amd64":
		machine, code = 62, probeAMD64
	case "aarch64", "arm64":
		machine, code = 183, probeARM64
	default:
		return nil, fmt.Errorf(
			"no probe program for architecture %q: only x86_64 and aarch64 have one",
			arch,
		)
	}
	code = append(code[:len(code):len(code)], "/proc/self/status\x00"...)
	size := uint64(headers + len(code))
	var b bytes.Buffer
	le := func(v any) { _ = binary.Write(&b, binary.LittleEndian, v) } // a Buffer doesn't fail
	b.WriteString("\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00")
	le([]uint16{2, machine})                         // an executable
	le(uint32(1))                                    // ELF version
	le([]uint64{base + headers, 64, 0})              // entry, program headers, no sections
	le(uint32(0))                                    // flags
	le([]uint16{64, 56, 1, 64, 0, 0})                // sizes and counts of headers
	le([]uint32{1, 5})                               // one segment: load, read and execute
	le([]uint64{0, base, base, size, size, 1 << 16}) // the whole file, page size up to 64 KiB
	b.Write(code)
	return b.Bytes(), nil
}

// probeTar returns the probe's image in the form that `docker import` takes: an archive with one file, /probe.
func probeTar(program []byte) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(&tar.Header{Name: "probe", Mode: 0o755, Size: int64(len(program))}); err != nil {
		return nil, err
	}
	if _, err := w.Write(program); err != nil {
		return nil, err
	}
	err := w.Close()
	return b.Bytes(), err
}
