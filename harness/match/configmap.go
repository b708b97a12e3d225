package match

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/evidence/archive"
)

// keeps matches what a log or a dump has, and a program's configuration hasn't.
var keeps = regexp.MustCompile(
	`(?m)goroutine (?:profile: total )?[0-9]|^(?:panic|fatal error): |^[IWEF][0-9]{4} [0-9]{2}:[0-9:.]+ |` +
		`^[0-9]{4}[-/][0-9]{2}[-/][0-9]{2}[T ][0-9:.]{8}|^\{"(?:log|level|ts|time)"|^(?:time|ts|level)=`,
)

// configMap reads the texts in a ConfigMap that have logs or dumps, and returns how many have. The name of a key stands for
// that of a file.
func (e *evidence) configMap(f archive.Entry, m manifest) (read int, err error) {
	of := path.Join(m.Metadata.Namespace, m.Metadata.Name)
	all := maps.Clone(m.Data)
	for key, raw := range m.BinaryData {
		if all == nil {
			all = map[string]string{}
		}
		all[key] = unpacked(raw)
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		text := all[key]
		if !keeps.MatchString(text) {
			continue
		}
		read++
		in := archive.Entry{Path: f.Path + "/" + key, Reader: strings.NewReader(text)}
		as := func(form, lacks string) {
			form = fmt.Sprintf("the key %s of ConfigMap %s: %s", key, of, form)
			e.inputs = append(e.inputs, Input{in.Path, form, lacks})
		}
		err = errors.Join(err, e.anyText(in, bufio.NewReaderSize(in, 256<<10), as))
	}
	return read, err
}

// maxUnpacked is how much of a packed file in a ConfigMap is read, in bytes. The ConfigMap itself has at most 1 MiB.
const maxUnpacked = 64 << 20

// unpacked returns what a file holds that kubectl has put into a ConfigMap in base64, because it is no UTF-8: it may be
// packed.
func unpacked(raw []byte) string {
	r, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return string(raw)
	}
	text, _ := io.ReadAll(io.LimitReader(r, maxUnpacked)) // as much as is there
	return string(text)
}
