package archive

import (
	"bytes"
	"encoding/base64"
	"io"
	"regexp"
	"unicode/utf8"
)

// encoded matches the beginning of a file in base64, in one line or in lines of one width.
var encoded = regexp.MustCompile(`^[A-Za-z0-9+/]{60,}(?:={0,2}%?\r?\n|$|=)(?:[A-Za-z0-9+/]+={0,2}(?:\r?\n|$))*%?\s*$`)

// leastEncoded is how long a file in base64 is at least, in bytes.
const leastEncoded = 120

// isEncoded reports whether a file that begins with head is another one in base64: people copy it so from a terminal. What
// it holds is text, or begins as archives do.
func isEncoded(head []byte) bool {
	if len(head) < leastEncoded || !encoded.Match(head) {
		return false
	}
	body := bytes.Join(bytes.Fields(head), nil)
	body = bytes.TrimRight(body, "=%")
	plain, err := base64.RawStdEncoding.AppendDecode(nil, body[:len(body)/4*4])
	if err != nil {
		return false
	}
	if bytes.HasPrefix(plain, []byte("PK\x03\x04")) || isTar(plain) {
		return true
	}
	for _, c := range compressions {
		if bytes.HasPrefix(plain, []byte(c.magic)) {
			return true
		}
	}
	for n := 0; n < utf8.UTFMax && len(plain) > 0 && !utf8.Valid(plain); n++ { // a rune that the head has cut
		plain = plain[:len(plain)-1]
	}
	return utf8.Valid(plain) && !bytes.ContainsFunc(plain, func(c rune) bool {
		return c < ' ' && c != '\t' && c != '\n' && c != '\r' && c != 0x1b
	})
}

// letters leaves out what isn't of base64: ends of lines, and what a shell puts after a text without one.
type letters struct{ io.Reader }

func (l letters) Read(p []byte) (int, error) {
	for {
		n, err := l.Reader.Read(p)
		kept := p[:0]
		for _, c := range p[:n] {
			if '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z' || c == '+' || c == '/' || c == '=' {
				kept = append(kept, c)
			}
		}
		if len(kept) > 0 || err != nil {
			return len(kept), err
		}
	}
}
