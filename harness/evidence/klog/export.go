package klog

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"slices"
)

// ExportMark is what `journalctl -o export` begins with.
const ExportMark = "__CURSOR="

// exported are the fields that are passed on.
var exported = []string{
	"__REALTIME_TIMESTAMP",
	"_PID",
	"_SYSTEMD_UNIT",
	"SYSLOG_IDENTIFIER",
	"MESSAGE",
}

const (
	// maxValue is the most bytes of a field that are passed on, so that its record stays below MaxLine however much is
	// escaped.
	maxValue = MaxLine / 8
	// maxField is the most bytes of a field that gives its length: no journal has a larger one.
	maxField = 1 << 30
)

// FromExport turns `journalctl -o export` output into that of `journalctl -o json`: a line for each record, with the
// fields that tell who logged what and when. An incomplete record is passed on as far as it goes, and reading ends with
// an error. Reading also ends with an error at a field that is none, and at the end of r if values were so long that
// only their beginnings were read.
func FromExport(r io.Reader) io.Reader {
	return &export{in: lines{src: bufio.NewReaderSize(r, 64<<10)}}
}

type export struct {
	in  lines
	out bytes.Buffer
	cut int // how many values were cut
	err error
}

// Read returns the converted records.
func (e *export) Read(p []byte) (int, error) {
	for e.out.Len() == 0 {
		if e.err != nil {
			return 0, e.err
		}
		e.err = e.record()
	}
	return e.out.Read(p)
}

// record converts one record. The error says why no other one follows.
func (e *export) record() error {
	fields := map[string]string{}
	err := e.fields(fields)
	if len(fields) == 0 {
		return err
	}
	line, bad := json.Marshal(fields)
	if bad != nil {
		return bad
	}
	e.out.Write(append(line, '\n'))
	return err
}

// fields reads the fields of one record, up to the empty line after them.
func (e *export) fields(into map[string]string) error {
	for first := true; ; first = false {
		line, _, err := e.in.next()
		switch {
		case err == io.EOF && !first:
			return io.ErrUnexpectedEOF
		case err == io.EOF && e.cut > 0:
			return fmt.Errorf(
				"%d values were over %d bytes long: their rest was not read",
				e.cut,
				maxValue,
			)
		case err != nil:
			return err
		case len(line) == 0:
			return nil
		}
		name, value, ok := bytes.Cut(bytes.Clone(line), []byte("="))
		if !ok {
			if value, err = e.binary(name); err != nil {
				return err
			}
		}
		if !slices.Contains(exported, string(name)) {
			continue
		}
		if len(value) > maxValue {
			value = value[:maxValue]
			e.cut++
		}
		into[string(name)] = string(value)
	}
}

// binary reads the value of a field that isn't clean text: its length in eight bytes, then its bytes and a newline.
func (e *export) binary(name []byte) ([]byte, error) {
	var size [8]byte
	if _, err := io.ReadFull(e.in.src, size[:]); err != nil {
		return nil, cutShort(err)
	}
	n := binary.LittleEndian.Uint64(size[:])
	if n > maxField {
		return nil, fmt.Errorf(
			"journal line %d: %.40q is followed by neither = nor the length of a value",
			e.in.n,
			name,
		)
	}
	value := make([]byte, min(n, MaxLine))
	if _, err := io.ReadFull(e.in.src, value); err != nil {
		return nil, cutShort(err)
	}
	_, err := e.in.src.Discard(int(n) - len(value) + 1) // and the newline
	return value, cutShort(err)
}

// cutShort returns the error of reading in the middle of a field, where the end of the input is unexpected.
func cutShort(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
