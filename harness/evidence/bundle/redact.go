package bundle

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"regexp"
	"strings"
)

// redacted is the text that replaces a secret.
const redacted = "[REDACTED]"

// redactAll copies r to w without the secrets. Text that begins like JSON is read whole and redacted by its structure.
// Any other text, JSON lines included, is redacted line by line.
func redactAll(w io.Writer, r io.Reader) error {
	in := bufio.NewReaderSize(r, 64<<10)
	if structured(in) {
		b, err := io.ReadAll(in)
		if err != nil {
			return err
		}
		if out, ok := redactStructure(b, nil); ok {
			_, err = w.Write(out)
			return err
		}
		in = bufio.NewReader(bytes.NewReader(b)) // JSON lines, or not JSON after all
	}
	var red redactor
	out := bufio.NewWriterSize(w, 64<<10)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 0 {
			body := bytes.TrimSuffix(line, []byte("\n"))
			out.Write(red.line(body)) // a bufio.Writer keeps its error for Flush
			if len(body) < len(line) {
				out.WriteByte('\n')
			}
		}
		if errors.Is(err, io.EOF) {
			return out.Flush()
		}
		if err != nil {
			return err
		}
	}
}

// Redact returns text or JSON without its secrets.
func Redact(text []byte) ([]byte, error) {
	var out bytes.Buffer
	err := redactAll(&out, bytes.NewReader(text))
	return out.Bytes(), err
}

// structured reports whether the first byte that isn't white space opens a JSON object or list.
func structured(in *bufio.Reader) bool {
	head, _ := in.Peek(64) // a short read is judged by what is there; its error comes back with the next read
	head = bytes.TrimLeft(head, " \t\r\n")
	return len(head) > 0 && (head[0] == '{' || head[0] == '[')
}

// redactor removes secrets line by line. It remembers when it is inside a private key that spans lines.
type redactor struct {
	inKey int // the most lines of the key that may still come; 0 outside of a key
	inDoc int // indent + 1 of the data block of a Secret in YAML; 0 outside
	yaml  bool
}

// maxKeyLines is the most lines of a private key in PEM that are followed. An RSA key of 16384 bits has about 200
// lines.
const maxKeyLines = 400

// line returns b without its secrets; b itself when there are none.
func (r *redactor) line(b []byte) []byte {
	if len(b) > 1 && (b[0] == '{' || b[0] == '[') {
		if out, ok := redactStructure(b, r); ok {
			return out
		}
	}
	return r.text(b)
}

var (
	keyBegin  = regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----`)
	keyEnd    = regexp.MustCompile(`-----END [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----`)
	keyWhole  = regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*?-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----`)
	keyBody   = regexp.MustCompile(`(?:^|\s)(?:[A-Za-z0-9+/=]+|(?:Proc-Type|DEK-Info): .*|=[A-Za-z0-9+/=]{4})\s*$`)
	blockKey  = regexp.MustCompile(`^\s*(?:- )?"?(?:client-key-data|token|id-token|refresh-token)"?:\s*[|>][-+0-9]*\s*$`)
	jwt       = regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{6,}(?:\.[A-Za-z0-9_-]*)?`)
	authField = regexp.MustCompile(`(?i)(authorization[^A-Za-z0-9\n]{1,12}(?:string\{")?(?:bearer|basic|negotiate)\s+)[^\s"'\\\],;}]+`)
	bearer    = regexp.MustCompile(`(?i)(\bbearer(?:\s+|%20|=|: ?))([A-Za-z0-9._~+/=-]{8,})`)
	field     = regexp.MustCompile(`(?i)((?:^|[\s,{\[(])(?:- )?\\?"?(?:client-key-data|[a-z]*[-_]?token|bearertoken|password|passwd|client[-_]secret|tls\.key)\\?"?: *\\?["']?)([^\s"'\\,}\])]+)`)
	assigned  = regexp.MustCompile(`(?i)((?:\b|--)(?:[a-z]*[-_]?token|password|passwd|client[-_]secret|client-key-data)=\\?["']?)([^\s"'\\,&})\]]+)`)
	flagged   = regexp.MustCompile(`(--(?:token|password|discovery-token|tls-bootstrap-token|certificate-key) )(\S+)`)
)

// text returns b without its secrets. b is one line, or the value of a JSON string, which may have several lines.
func (r *redactor) text(b []byte) []byte {
	if out, inside := r.insideKey(b); inside {
		return out
	}
	if out, inside := r.secretYAML(b); inside {
		return out
	}
	if bytes.Contains(b, []byte("PRIVATE KEY")) {
		b = keyWhole.ReplaceAll(b, []byte(redacted))
		if at := keyBegin.FindIndex(b); at != nil {
			b = append(bytes.Clone(b[:at[0]]), redacted...)
			r.inKey = maxKeyLines
		}
	}
	if bytes.Contains(b, []byte("eyJ")) {
		b = jwt.ReplaceAll(b, []byte(redacted))
	}
	if mentions(b, "earer", "EARER", "uthorization", "UTHORIZATION") {
		b = authField.ReplaceAll(b, []byte("${1}"+redacted))
		b = bearer.ReplaceAllFunc(b, redactBearer)
	}
	if mentions(b, "oken", "OKEN", "assw", "ASSW", "-key", "ecret", "ls.key") {
		if blockKey.Match(b) {
			r.inKey = maxKeyLines
			return b
		}
		b = field.ReplaceAllFunc(b, func(m []byte) []byte { return redactField(field, m) })
		b = assigned.ReplaceAllFunc(b, func(m []byte) []byte { return redactField(assigned, m) })
		b = flagged.ReplaceAll(b, []byte("${1}"+redacted))
	}
	if mentions(b, "Secret") {
		b = redactEmbedded(b)
	}
	return redactBootstrap(b)
}

// insideKey redacts a line within a private key: it replaces the line's last field. For a line outside of a key it
// returns false. A line that can't belong to a key ends the key, so that a key without an end takes no evidence with
// it.
func (r *redactor) insideKey(b []byte) ([]byte, bool) {
	if r.inKey == 0 {
		return b, false
	}
	if keyEnd.Match(b) {
		r.inKey = 0
		return []byte(redacted), true
	}
	if len(bytes.TrimSpace(b)) == 0 {
		r.inKey--
		return b, true
	}
	at := keyBody.FindIndex(b)
	if at == nil {
		if !keyBegin.Match(b) { // a BEGIN line may be the first line of a block scalar
			r.inKey = 0
		}
		return b, false
	}
	r.inKey--
	return append(bytes.Clone(b[:at[0]]), " "+redacted...), true
}

func mentions(b []byte, any ...string) bool {
	for _, s := range any {
		if bytes.Contains(b, []byte(s)) {
			return true
		}
	}
	return false
}

// redactBearer replaces the token in m, a match of bearer. It keeps words such as "authentication": a token has a digit
// or is long.
func redactBearer(m []byte) []byte {
	parts := bearer.FindSubmatch(m)
	if len(parts[2]) < 24 && !bytes.ContainsAny(parts[2], "0123456789") {
		return m
	}
	return append(bytes.Clone(parts[1]), redacted...)
}

// redactField replaces the value in m, a match of re. It keeps values that say that there is no secret, and Go's
// pointers and types in dumps.
func redactField(re *regexp.Regexp, m []byte) []byte {
	parts := re.FindSubmatch(m)
	switch v := string(parts[2]); {
	case v == "null" || v == "true" || v == "false" || v == "{" || v == "[" || v == "nil" || v == "<nil>":
		return m
	case v[0] == '{' || v[0] == '[' || v[0] == '|' || v[0] == '>':
		return m
	case bytes.HasPrefix(parts[2], []byte("0x")):
		return m
	}
	return append(bytes.Clone(parts[1]), redacted...)
}

// redactBootstrap removes kubeadm's bootstrap tokens: six characters, a dot, sixteen characters, all of [a-z0-9].
func redactBootstrap(b []byte) []byte {
	for from := 0; ; {
		i := bytes.IndexByte(b[from:], '.')
		if i < 0 {
			return b
		}
		dot := from + i
		from = dot + 1
		if !isBootstrap(b, dot) {
			continue
		}
		out := append(bytes.Clone(b[:dot-6]), redacted...)
		from = len(out)
		b = append(out, b[dot+17:]...)
	}
}

// isBootstrap reports whether the six characters before a dot and the sixteen after it are a bootstrap token. Without a
// digit they are a name if they belong to a path or a domain, or stand before a call's parenthesis. Digits alone are a
// number.
func isBootstrap(b []byte, dot int) bool {
	begin, end := dot-6, dot+17
	if begin < 0 || end > len(b) || (begin > 0 && word(b[begin-1])) || (end < len(b) && word(b[end])) {
		return false
	}
	letters, digits := 0, 0
	for i := begin; i < end; i++ {
		switch c := b[i]; {
		case i == dot:
		case c >= 'a' && c <= 'z':
			letters++
		case c >= '0' && c <= '9':
			digits++
		default:
			return false
		}
	}
	name := digits == 0 && (begin > 0 && bytes.IndexByte([]byte("/.-*"), b[begin-1]) >= 0 ||
		end < len(b) && bytes.IndexByte([]byte("(.-/"), b[end]) >= 0)
	return letters > 0 && !name
}

func word(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// redactString returns a short text, such as an error, without its secrets. Bytes that are no text, for example in the
// output of a failed command, become U+FFFD: JSON would change them, and a bundle has to read back as it was written.
func redactString(s string) string {
	var out []byte
	var red redactor
	for i, line := range bytes.Split([]byte(s), []byte("\n")) {
		if i > 0 {
			out = append(out, '\n')
		}
		out = append(out, red.line(line)...)
	}
	return strings.ToValidUTF8(string(out), "\uFFFD")
}
