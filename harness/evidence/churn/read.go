package churn

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
)

// Read yields the versions of a record in order. For a line that is no version, it yields the zero Version and an error
// that names the line, and goes on with the next line. After an error of r it ends. A version's object is valid until
// the iteration goes on.
func Read(r io.Reader) iter.Seq2[Version, error] {
	return func(yield func(Version, error) bool) {
		p := parser{words: map[string]string{}}
		in := bufio.NewReaderSize(r, 256<<10)
		var long []byte
		for n := 1; ; n++ {
			line, err := in.ReadSlice('\n')
			if errors.Is(err, bufio.ErrBufferFull) {
				long = append(long[:0], line...)
				for errors.Is(err, bufio.ErrBufferFull) {
					line, err = in.ReadSlice('\n')
					long = append(long, line...)
				}
				line = long
			}
			if line = bytes.TrimSpace(line); len(line) > 0 {
				v, bad := p.parse(line)
				if bad != nil {
					v, bad = Version{}, fmt.Errorf("version in line %d: %w", n, bad)
				}
				if !yield(v, bad) {
					return
				}
			}
			switch {
			case err == io.EOF:
				return
			case err != nil:
				yield(Version{}, fmt.Errorf("reading versions after line %d: %w", n, err))
				return
			}
		}
	}
}

// parser keeps what repeats from line to line: its buffer, and the words that all versions of an object have.
type parser struct {
	members []member
	words   map[string]string
}

func (p *parser) parse(line []byte) (v Version, err error) {
	if p.members, err = membersUntil(line, p.members[:0], "object"); err != nil {
		return v, err
	}
	for _, m := range p.members {
		switch string(m.key) {
		case "time", "from":
			at, into := &v.Time, m.value
			if m.is("from") {
				at = &v.From
			}
			if err := at.UnmarshalJSON(into); err != nil {
				return v, fmt.Errorf("%s is %s (want a time as in RFC 3339)", m.key, m.value)
			}
		case "object":
			if len(m.value) == 0 || m.value[0] != '{' {
				return v, fmt.Errorf("object is %.40s (want an object)", m.value)
			}
			v.Object = m.value
		case "type", "reason", "resource", "namespace", "name", "uid", "resourceVersion":
			word, ok := text(m.value)
			if !ok {
				return v, fmt.Errorf("%s is %.40s (want a string)", m.key, m.value)
			}
			p.set(&v, string(m.key), word)
		}
	}
	switch {
	case v.Time.IsZero():
		return v, errors.New("it has no time")
	case v.Resource == "":
		return v, errors.New("it names no resource")
	}
	switch v.Type {
	case Added, Modified, Deleted, Listed:
		if v.Object == nil || v.Name == "" {
			return v, fmt.Errorf("it is %s and has no object or no name", v.Type)
		}
	case Synced, Lost:
	default:
		return v, fmt.Errorf("its type is %q, which is unknown", v.Type)
	}
	return v, nil
}

func (p *parser) set(v *Version, key string, word []byte) {
	switch key {
	case "type":
		v.Type = p.word(word)
	case "reason":
		v.Reason = string(word)
	case "resource":
		v.Resource = p.word(word)
	case "namespace":
		v.Namespace = p.word(word)
	case "name":
		v.Name = p.word(word)
	case "uid":
		v.UID = p.word(word)
	case "resourceVersion":
		v.ResourceVersion = string(word)
	}
}

// word returns b as a string, and the same string each time.
func (p *parser) word(b []byte) string {
	if s, ok := p.words[string(b)]; ok {
		return s
	}
	s := string(b)
	p.words[s] = s
	return s
}
