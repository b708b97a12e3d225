package pasted

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"
)

const (
	leastEncoded = 120      // bytes of a block in base64
	maxUnpacked  = 16 << 20 // bytes of what a block holds
)

// encoded matches blocks of base64: at least one long line, as `base64 -w0` writes it, or lines of one width with a
// shorter one at the end, as it does by itself, and as mails have it; quoted or indented.
var encoded = regexp.MustCompile(`(?m)^[> \t]*[A-Za-z0-9+/]{60,}={0,2}%?\r?$(?:\n[> \t]*[A-Za-z0-9+/]+={0,2}%?\r?$)*`)

// encodedText puts what blocks of base64 hold in their place.
func encodedText(text []byte) ([]byte, bool) {
	if !longWord(text) {
		return nil, false
	}
	found := false
	out := encoded.ReplaceAllFunc(text, func(block []byte) []byte {
		if len(block) < leastEncoded {
			return block
		}
		plain, ok := unencoded(block)
		found = found || ok
		return plain
	})
	return out, found
}

// unencoded returns the text that a block of base64 holds, packed or not; the block itself if it holds no text of
// several lines.
func unencoded(block []byte) ([]byte, bool) {
	body := bytes.Map(func(c rune) rune {
		if strings.ContainsRune("> \t\r\n%", c) {
			return -1
		}
		return c
	}, block)
	plain, err := base64.RawStdEncoding.AppendDecode(nil, bytes.TrimRight(body, "="))
	if err != nil {
		return block, false
	}
	if bytes.HasPrefix(plain, []byte("\x1f\x8b")) {
		r, err := gzip.NewReader(bytes.NewReader(plain))
		if err != nil {
			return block, false
		}
		if plain, err = io.ReadAll(io.LimitReader(r, maxUnpacked)); err != nil && len(plain) == 0 {
			return block, false
		}
	}
	if text, ok := wide(plain); ok {
		plain = text
	}
	if !utf8.Valid(plain) || bytes.IndexByte(plain, 0) >= 0 || !bytes.Contains(plain, newline) {
		return block, false
	}
	return plain, true
}

// longWord reports whether a line of a text is one long word of the letters of base64.
func longWord(text []byte) bool {
	for line := range bytes.Lines(text) {
		if len(line) < leastEncoded/2 {
			continue
		}
		word := bytes.TrimLeft(bytes.TrimRight(line, "=%\r\n"), "> \t")
		if bytes.IndexByte(word, ' ') < 0 && bytes.IndexByte(word, '.') < 0 && encoded.Match(line) {
			return true
		}
	}
	return false
}
