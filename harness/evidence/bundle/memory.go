package bundle

import (
	"io"
	"strings"
	"sync"
)

// memory keeps the results that were computed from artifacts. Checks run again and again while a bundle grows, and each
// run should cost only as much as the part that is new.
type memory struct {
	mu   sync.Mutex
	kept map[string]*kept
}

// kept is a result that was computed from the first bytes of an artifact's file; bytes is their number.
type kept struct {
	mu    sync.Mutex
	bytes int64
	value any
}

func (m *memory) entry(key string) *kept {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kept == nil {
		m.kept = map[string]*kept{}
	}
	if m.kept[key] == nil {
		m.kept[key] = &kept{}
	}
	return m.kept[key]
}

// forget drops all results.
func (m *memory) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept = nil
}

// remember implements View.Remember for the file of an artifact below dir. Only the file's first a.Size bytes count.
func (m *memory) remember(dir string, a Artifact, grows bool, as string,
	grow func(any, io.Reader) (any, error)) (any, error) {
	k := m.entry(a.Path + "\x00" + as)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.value != nil && k.bytes == a.Size && !a.Missing && a.Error == "" {
		return k.value, nil
	}
	before, from := k.value, k.bytes
	if strings.HasSuffix(a.Path, Packed) { // a compressed file can be read only from its beginning
		before, from = nil, 0
	}
	r, err := openArtifact(dir, a, from, grows)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	after, err := grow(before, r)
	if err != nil {
		return nil, err
	}
	k.bytes, k.value = a.Size, after
	return after, nil
}
