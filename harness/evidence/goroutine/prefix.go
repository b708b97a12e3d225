package goroutine

import "bytes"

// The functions of this file cut a known prefix off a line. The forms have fixed shapes, written here as patterns in
// which 0 stands for a digit, a for a letter, and every other byte for itself.

// cutShape returns what follows the shape at the beginning of line.
func cutShape(line []byte, shape string) ([]byte, bool) {
	if len(line) < len(shape) {
		return line, false
	}
	for i := range len(shape) {
		c, ok := line[i], false
		switch shape[i] {
		case '0':
			ok = isDigit(c)
		case 'a':
			ok = 'a' <= c|0x20 && c|0x20 <= 'z'
		default:
			ok = c == shape[i]
		}
		if !ok {
			return line, false
		}
	}
	return line[len(shape):], true
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// cutFraction takes a fraction of a second off, if there is one.
func cutFraction(rest []byte) []byte {
	if len(rest) < 2 || rest[0] != '.' && rest[0] != ',' || !isDigit(rest[1]) {
		return rest
	}
	i := 1
	for i < len(rest) && isDigit(rest[i]) {
		i++
	}
	return rest[i:]
}

// cutZone takes an RFC 3339 zone off, with or without its colon.
func cutZone(rest []byte) ([]byte, bool) {
	if r, ok := bytes.CutPrefix(rest, []byte("Z")); ok {
		return r, true
	}
	for _, shape := range [...]string{"+00:00", "-00:00", "+0000", "-0000"} {
		if r, ok := cutShape(rest, shape); ok {
			return r, true
		}
	}
	return rest, false
}

// cutRFC takes an RFC 3339 time off.
func cutRFC(line []byte) ([]byte, bool) {
	rest, ok := cutShape(line, "0000-00-00T00:00:00")
	if !ok {
		return line, false
	}
	return cutZone(cutFraction(rest))
}

// Times without a zone: Go's log package and much else, and syslog and journalctl -o short, which have no year either.
var (
	dated  = [...]string{"0000/00/00 00:00:00", "0000-00-00 00:00:00"}
	syslog = [...]string{"aaa 00 00:00:00", "aaa  0 00:00:00"}
)

// cutStamp takes a time off that is in RFC 3339 or has one of these shapes.
func cutStamp(line []byte, shapes ...string) ([]byte, bool) {
	rest, ok := cutRFC(line)
	for _, shape := range shapes {
		if ok {
			break
		}
		if rest, ok = cutShape(line, shape); ok {
			rest = cutFraction(rest)
		}
	}
	return rest, ok
}

// cutTime takes off a time that is followed by a space, a tab or nothing, together with that space or tab.
func cutTime(line []byte) ([]byte, bool) {
	rest, ok := cutStamp(line, dated[:]...)
	switch {
	case ok && len(rest) == 0:
		return rest, true
	case ok && (rest[0] == ' ' || rest[0] == '\t'):
		return rest[1:], true
	}
	return line, false
}

// cutPod takes off what kubectl logs --prefix puts before a line: [pod/NAME/CONTAINER].
func cutPod(line []byte) (text []byte, container string, ok bool) {
	rest, ok := bytes.CutPrefix(line, []byte("[pod/"))
	if !ok {
		return line, "", false
	}
	of, text, ok := bytes.Cut(rest, []byte("] "))
	_, name, two := bytes.Cut(of, []byte("/"))
	if !ok || !two || bytes.ContainsAny(of, " []") {
		return line, "", false
	}
	return text, string(name), true
}

// cutCRI splits a line of the kubelet's container logs: time, stream, tag, text. The tag P marks a part of a line, F
// the last part or a whole line.
func cutCRI(line []byte) (text []byte, stream string, part, ok bool) {
	rest, ok := cutRFC(line)
	if !ok {
		return nil, "", false, false
	}
	for _, s := range [...]string{"stderr", "stdout"} {
		r, found := bytes.CutPrefix(rest, []byte(" "+s+" "))
		if !found {
			continue
		}
		tags, text, _ := bytes.Cut(r, []byte(" "))
		switch tag, _, _ := bytes.Cut(tags, []byte(":")); string(tag) {
		case "P", "F":
			return text, s, tag[0] == 'P', true
		}
	}
	return nil, "", false, false
}

// cutUnit takes off the prefix of journald or syslog: time, host, and `ident[pid]:` or `ident:`. Without a pid,
// `ident:` may as well be the first words of a text, as in `fatal error: `. So it counts as text if the words are the
// runtime's, or if the time has the form of containers' logs.
func cutUnit(line []byte) ([]byte, bool) {
	rest, ok := cutStamp(line, syslog[:]...)
	if !ok || len(rest) == 0 || rest[0] != ' ' {
		return line, false
	}
	stamp := line[:len(line)-len(rest)]
	host, after, ok := bytes.Cut(rest[1:], []byte(" "))
	if !ok {
		return line, false
	}
	ident, text, _ := bytes.Cut(after, []byte(" "))
	if len(ident) < 2 || ident[len(ident)-1] != ':' || bytes.HasSuffix(host, []byte(":")) {
		return line, false
	}
	pid := bytes.HasSuffix(ident, []byte("]:")) && bytes.IndexByte(ident, '[') > 0
	if !pid && (ofContainer(stamp) || bytes.HasPrefix(rest[1:], []byte("fatal error: ")) ||
		bytes.HasPrefix(rest[1:], []byte("runtime error: "))) {
		return line, false
	}
	return text, true
}

// ofContainer reports whether a time has the form that the kubelet and docker give to containers' lines: RFC 3339 in
// UTC, or more digits than the microseconds of journald and syslog.
func ofContainer(stamp []byte) bool {
	fraction, ok := cutShape(stamp, "0000-00-00T00:00:00")
	if !ok {
		return false
	}
	return stamp[len(stamp)-1] == 'Z' || len(fraction)-len(cutFraction(fraction)) > len(".000000")
}

// cutKlog takes a klog header off: severity, month and day, time, thread, file:line].
func cutKlog(line []byte) ([]byte, bool) {
	if len(line) == 0 || bytes.IndexByte([]byte("IWEF"), line[0]) < 0 {
		return line, false
	}
	rest, ok := cutShape(line[1:], "0000 00:00:00.000000 ")
	if !ok {
		return line, false
	}
	end := bytes.IndexByte(rest, ']')
	if end < 0 || bytes.IndexByte(rest[:end], ':') < 0 {
		return line, false
	}
	return bytes.TrimPrefix(rest[end+1:], []byte(" ")), true
}
