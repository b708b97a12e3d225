package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// runtimeName is the bounded runtime's name in the daemon's settings.
const runtimeName = "relapse-bounded"

// Keys of daemon.json, and the runtime that dockerd uses without them.
const (
	keyRuntimes  = "runtimes"
	keyDefault   = "default-runtime"
	stockRuntime = "runc"
)

// settings is the parsed content of a daemon.json, with values of any type.
type settings map[string]any

// parseSettings parses data, the content of a daemon.json. An empty file gives empty settings. An error names the file
// and the line.
func parseSettings(file string, data []byte) (settings, error) {
	s := settings{}
	if len(bytes.TrimSpace(data)) == 0 {
		return s, nil
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	err := dec.Decode(&s)
	if err == nil {
		if _, err = dec.Token(); errors.Is(err, io.EOF) {
			err = nil
		} else if err == nil {
			err = errors.New("more after the closing brace")
		}
	}
	at := dec.InputOffset()
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case err == nil && s == nil:
		err = errors.New("null where an object was expected")
	case errors.As(err, &syntax):
		at = syntax.Offset
	case errors.As(err, &kind):
		at = kind.Offset
	case errors.Is(err, io.ErrUnexpectedEOF):
		at, err = int64(len(data)), errors.New("unexpected end")
	}
	if err != nil {
		line := 1 + bytes.Count(data[:min(at, int64(len(data)))], []byte("\n"))
		return nil, fmt.Errorf("%s:%d: %w", file, line, err)
	}
	if v, set := s[keyRuntimes]; set {
		if _, ok := v.(map[string]any); !ok {
			return nil, fmt.Errorf(
				"%s: %q is a %T where an object was expected",
				file,
				keyRuntimes,
				v,
			)
		}
	}
	if v, set := s[keyDefault]; set {
		if _, ok := v.(string); !ok {
			return nil, fmt.Errorf(
				"%s: %q is a %T where a string was expected",
				file,
				keyDefault,
				v,
			)
		}
	}
	return s, nil
}

func (s settings) defaultRuntime() string {
	name, _ := s[keyDefault].(string)
	return name
}

// register adds the bounded runtime at path and makes it the default.
func (s settings) register(path string) {
	runtimes, _ := s[keyRuntimes].(map[string]any)
	if runtimes == nil {
		runtimes = map[string]any{}
		s[keyRuntimes] = runtimes
	}
	runtimes[runtimeName] = map[string]any{"path": path}
	s[keyDefault] = runtimeName
}

// registered reports whether the settings list the bounded runtime or have it as the default.
func (s settings) registered() bool {
	runtimes, _ := s[keyRuntimes].(map[string]any)
	_, listed := runtimes[runtimeName]
	return listed || s.defaultRuntime() == runtimeName
}

// unregister removes what register added, from settings that others have edited since. before has the settings from
// before register; their default runtime comes back.
func (s settings) unregister(before settings) {
	if runtimes, _ := s[keyRuntimes].(map[string]any); runtimes != nil {
		delete(runtimes, runtimeName)
		if _, had := before[keyRuntimes]; !had && len(runtimes) == 0 {
			delete(s, keyRuntimes)
		}
	}
	if s.defaultRuntime() != runtimeName {
		return
	}
	delete(s, keyDefault)
	if name, had := before[keyDefault]; had {
		s[keyDefault] = name
	}
}

// explicit returns a copy of s with both keys present. dockerd takes a missing key for an unchanged one, so a return to
// a default has to be spelled out once.
func (s settings) explicit() settings {
	full := settings{}
	for k, v := range s {
		full[k] = v
	}
	if full[keyRuntimes] == nil {
		full[keyRuntimes] = map[string]any{}
	}
	if full.defaultRuntime() == "" {
		full[keyDefault] = stockRuntime
	}
	return full
}

func (s settings) encode() ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(s)
	return out.Bytes(), err
}
