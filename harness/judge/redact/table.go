package redact

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// Table maps names to stand-ins, the same in all files of a run. Names are learnt first; Settle then gives each its
// stand-in. Different names have different ones, so that what was equal stays equal, and nothing else becomes so.
type Table struct {
	stays    map[string]bool // words of the plan, and those that every cluster has
	found    map[string]bool
	needed   map[string]bool // of found, those that stay because the plan has them
	standIns map[of]string
	count    map[string]int // of the stand-ins of each class
	literals []literal      // replaced wherever they stand, the longest first
	marks    []string       // parts of words that relapse made, which stay
}

// of is a text with its class: names, values as a whole, users, mail addresses and IP addresses each have their own.
type of struct{ class, text string }

// The classes of texts.
const (
	aName, aValue, aUser, aMail, anAddress = "name", "value", "user", "mail", "address"
)

// literal is a text that is replaced within words, too.
type literal struct {
	text *regexp.Regexp
	was  string
	is   string
}

// public are words that every cluster has, or every log.
var public = strings.Fields(
	`default kube-system kube-public kube-node-lease kubernetes kube-root-ca.crt localhost cluster
	cluster.local local svc system etcd kubelet kube-apiserver kube-controller-manager kube-scheduler kube-proxy coredns
	kube-dns kind containerd systemd relapse true false none null nil unknown docker.io registry.k8s.io kubernetes.io
	k8s.io linux amd64 arm64 token ca.crt steady baseline fault lifting recovery end latest admin root`,
)

// NewTable returns a table in which the words of texts stay.
func NewTable(texts ...string) *Table {
	t := &Table{stays: map[string]bool{}, found: map[string]bool{}, needed: map[string]bool{},
		standIns: map[of]string{}, count: map[string]int{}}
	for _, w := range public {
		t.stays[w] = true
	}
	for _, text := range texts {
		for _, w := range token.FindAllString(text, -1) {
			t.stays[w] = true
			for rest, more := w, true; more; { // of a resource with its group, such as jobs.batch, each half stays, too
				var part string
				part, rest, more = strings.Cut(rest, ".")
				t.stays[part] = true
				t.stays[rest] = more || t.stays[rest]
			}
		}
	}
	return t
}

// token is a word as names are written: letters, digits, and dashes and dots between them.
var token = regexp.MustCompile(`[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?`)

// Mark keeps the words that contain a text, which relapse made.
func (t *Table) Mark(text string) {
	if text != "" && !slices.Contains(t.marks, text) {
		t.marks = append(t.marks, text)
	}
}

// Name learns a name.
func (t *Table) Name(name string) {
	if token.FindString(name) != name { // several words: each is a name of its own
		for _, w := range token.FindAllString(name, -1) {
			if w != name {
				t.Name(w)
			}
		}
		return
	}
	switch {
	case len(name) < 3 || !strings.ContainsAny(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz") || plainNumber.MatchString(name):
	case t.stays[name]:
		if !slices.Contains(public, name) {
			t.needed[name] = true
		}
	case t.marked(name) || t.stays[numbered.ReplaceAllString(name, "")]: // relapse made it
	default:
		t.found[name] = true
	}
}

// plainNumber matches quantities, versions, hashes and durations, which are nobody's name.
var plainNumber = regexp.MustCompile(`^v?[0-9][0-9.]*(?:[KMGTP]i?|[mun]?s|h|m|Hz)?$|^[0-9a-f]{40,}$|^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// numbered matches the end of the names of objects that a load made: the plan has what is before it.
var numbered = regexp.MustCompile(`(?:-[0-9]+)+$`)

func (t *Table) marked(name string) bool {
	return slices.ContainsFunc(t.marks, func(m string) bool { return strings.Contains(name, m) })
}

// Literal learns a text that is replaced within words, too, whatever its case.
func (t *Table) Literal(text, as string) {
	if text == "" || slices.ContainsFunc(t.literals, func(l literal) bool { return l.was == text }) {
		return
	}
	t.count[as]++
	is := fmt.Sprintf("%s%d", as, t.count[as])
	t.literals = append(
		t.literals,
		literal{regexp.MustCompile(`(?i)` + regexp.QuoteMeta(text)), text, is},
	)
	slices.SortStableFunc(
		t.literals,
		func(a, b literal) int { return cmp.Compare(len(b.was), len(a.was)) },
	)
}

// Settle gives each name that was learnt its stand-in. A name that begins with a shorter one keeps its rest:
// payments-7f9c becomes name-1-7f9c if payments becomes name-1.
func (t *Table) Settle() {
	names := slices.SortedFunc(maps.Keys(t.found), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	})
	for _, name := range names {
		if is := t.begun(name); is != "" {
			t.standIns[of{aName, name}] = is
		} else {
			t.standIn(aName, name)
		}
	}
}

// standIn returns the stand-in of a text, and makes one if it is new.
func (t *Table) standIn(class, text string) string {
	if is, ok := t.standIns[of{class, text}]; ok {
		return is
	}
	for {
		t.count[class]++
		is := fmt.Sprintf("%s-%d", class, t.count[class])
		if !t.found[is] && !t.stays[is] {
			t.standIns[of{class, text}] = is
			return is
		}
	}
}

// begun returns what stands for a word that begins with a known name and a dash; "" if it doesn't.
func (t *Table) begun(word string) string {
	for at := len(word) - 1; at > 3; at-- {
		if word[at] != '-' {
			continue
		}
		if t.stays[word[:at]] {
			return ""
		}
		if is, ok := t.standIns[of{aName, word[:at]}]; ok {
			return is + word[at:]
		}
	}
	return ""
}

// Whole returns what stands for a value as a whole. It learns the value if it is new.
func (t *Table) Whole(value string) string {
	if len(value) < 3 || t.stays[value] || plainNumber.MatchString(value) {
		return value
	}
	return t.standIn(aValue, value)
}

var (
	home    = regexp.MustCompile(`(/home/|/Users/)([^/\s"':;,)\]}]+)`)
	mail    = regexp.MustCompile(`[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+\.[A-Za-z0-9.-]*[A-Za-z]`)
	address = regexp.MustCompile(`\b[0-9]{1,3}(?:\.[0-9]{1,3}){3}\b|(?:[0-9a-fA-F]{0,4}:){2,7}[0-9a-fA-F]{0,4}`)
	urlHost = regexp.MustCompile(`\b[a-z][a-z0-9+.-]*://(?:[^/@\s"']*@)?([A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+)`)
	inKlog  = regexp.MustCompile(`(?i)\b(?:pod|pods|node|nodes|nodename|namespace|podname|podnamespace|host|hostname|claim|pvc|service|object|user|address)=\\?"([^"\\]+)`)
)

// Plain replaces in a text what is replaced even in the names of functions: literals, and the names of users in paths.
func (t *Table) Plain(text string) string {
	for _, l := range t.literals {
		if l.text.MatchString(text) {
			text = l.text.ReplaceAllLiteralString(text, l.is)
		}
	}
	if strings.Contains(text, "/home/") || strings.Contains(text, "/Users/") {
		text = home.ReplaceAllStringFunc(text, func(m string) string {
			at := strings.LastIndexByte(m, '/') + 1
			return m[:at] + t.class(aUser, m[at:])
		})
	}
	return text
}

// Text replaces all names in a text, mail addresses and IP addresses.
func (t *Table) Text(text string) string {
	text = t.Plain(text)
	if strings.Contains(text, "@") {
		text = mail.ReplaceAllStringFunc(text, func(m string) string { return t.class(aMail, m) })
	}
	text = address.ReplaceAllStringFunc(text, t.ip)
	return token.ReplaceAllStringFunc(text, t.word)
}

// word returns what stands for a word: as a whole, by its beginning, or by its parts between dots.
func (t *Table) word(w string) string {
	if is, ok := t.standIns[of{aName, w}]; ok {
		return is
	}
	if t.stays[w] || t.marked(w) {
		return w
	}
	if is := t.begun(w); is != "" {
		return is
	}
	if !strings.Contains(w, ".") {
		return w
	}
	parts := strings.Split(w, ".")
	for i, p := range parts {
		if is, ok := t.standIns[of{aName, p}]; ok {
			parts[i] = is
		} else if is := t.begun(p); is != "" && !t.stays[p] {
			parts[i] = is
		}
	}
	return strings.Join(parts, ".")
}

// class returns the stand-in of a text that may have been replaced already.
func (t *Table) class(class, text string) string {
	if t.stays[text] || strings.HasPrefix(text, class+"-") {
		return text
	}
	return t.standIn(class, text)
}

// ip returns the stand-in of an IP address, from the networks for benchmarks and for documentation. Addresses that mean
// the same everywhere stay, as do texts that only look like an address.
func (t *Table) ip(text string) string {
	a, err := netip.ParseAddr(text)
	const shortest = len("fd00::1") // what looks like a shorter one is most often no address
	if err != nil || len(text) < shortest || a.IsLoopback() || a.IsUnspecified() || t.stays[text] || benchmarks.Contains(a) || documented.Contains(a) {
		return text
	}
	if is, ok := t.standIns[of{anAddress, text}]; ok {
		return is
	}
	t.count[anAddress]++
	n := t.count[anAddress]
	is := fmt.Sprintf("198.%d.%d.%d", 18+n>>16, n>>8&255, n&255)
	if a.Is6() {
		is = fmt.Sprintf("2001:db8::%x", n)
	}
	t.standIns[of{anAddress, text}] = is
	return is
}

var benchmarks, documented = netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("2001:db8::/32")

// Needed returns the names that were found and stay because the plan has them.
func (t *Table) Needed() []string { return slices.Sorted(maps.Keys(t.needed)) }

// Mapped returns how many names and values have a stand-in.
func (t *Table) Mapped() int { return len(t.standIns) + len(t.literals) }

// Names returns the table: what was found, and what stands for it. Whoever has it can translate back.
func (t *Table) Names() map[string]string {
	out := map[string]string{}
	for was, is := range t.standIns {
		out[was.text] = is
	}
	for _, l := range t.literals {
		out[l.was] = l.is
	}
	return out
}
