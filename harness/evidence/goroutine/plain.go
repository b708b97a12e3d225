package goroutine

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Prefix is what a log adds to the text of a line.
type Prefix struct {
	Time  time.Time // zero if the log has no time, and in the year 0 if it has no year
	Zoned bool      // the log tells the zone of the time
	From  string    // the program or the container that wrote the line; "" if the log names none
}

// Plain returns the text of a line and the prefix that the log put before it: the wrappings of CRI, docker and
// journald, the prefix of kubectl, and times. A time without a zone is taken to be in zone. A time that is a field in
// the line, as logrus and zap write it, stays in the text.
func Plain(line []byte, zone *time.Location) (text []byte, p Prefix) {
	if text, container, ok := cutPod(line); ok {
		text, p = Plain(text, zone)
		p.From = container
		return text, p
	}
	if fields := object(line); fields != nil {
		p.Time = jsonTime(fields)
		p.Zoned = !p.Time.IsZero()
		for _, f := range [...]string{"log", "MESSAGE"} {
			l := layer{kind: jsonLine, field: f, stream: dockerStream(fields)}
			if text, what := l.stripJSON(line); what != foreign {
				p.From = jsonText(fields, "SYSLOG_IDENTIFIER")
				return bytes.TrimRight(text, "\r\n"), p
			}
		}
		return line, p
	}
	if rest, ok := cutStamp(line, append(dated[:], syslog[:]...)...); ok {
		p.Time, p.Zoned = parseStamp(string(line[:len(line)-len(rest)]), zone)
	} else if m := timeField.FindSubmatch(line); m != nil {
		p.Time, p.Zoned = parseStamp(string(m[1]), zone)
		return line, p
	}
	if text, _, _, ok := cutCRI(line); ok {
		return text, p
	}
	if text, ok := cutUnit(line); ok {
		before := bytes.Fields(line[:len(line)-len(text)])
		ident, _, _ := bytes.Cut(before[len(before)-1], []byte("["))
		p.From = tagged(string(bytes.TrimSuffix(ident, []byte(":"))))
		return text, p
	}
	if text, ok := cutTime(line); ok {
		return text, p
	}
	return line, p
}

// tagged returns the program or the container that an ident names. Docker's driver for syslog puts its own name before
// the tag, which may be the name that the kubelet gives a container: k8s_CONTAINER_POD_NAMESPACE_UID_N.
func tagged(ident string) string {
	ident = ident[strings.LastIndexByte(ident, '/')+1:]
	if rest, ok := strings.CutPrefix(ident, "k8s_"); ok && strings.Count(rest, "_") >= 3 {
		ident, _, _ = strings.Cut(rest, "_")
	}
	return ident
}

// timeField is the time of a line in logfmt, as logrus and log/slog write it.
var timeField = regexp.MustCompile(`^(?:\S+=\S+ )?(?:time|ts)="?([0-9][^" ]+)`)

// stamps are the forms of a time, those with a zone first.
var stamps = [...]string{
	time.RFC3339,
	"2006-01-02T15:04:05Z0700",
	"2006/01/02 15:04:05",
	"2006-01-02 15:04:05",
	"Jan _2 15:04:05",
}

const zoned = 2 // stamps with a zone

// parseStamp returns the time that s is; zero if it is none, such as the 32nd of a month. time.Parse takes a fraction
// in each form.
func parseStamp(s string, zone *time.Location) (at time.Time, hasZone bool) {
	for i, form := range stamps {
		if at, err := time.ParseInLocation(form, s, zone); err == nil {
			return at, i < zoned
		}
	}
	return time.Time{}, false
}

// jsonTime returns when docker or journald took a line, or when the program wrote it; zero if the line doesn't tell.
// zap's ts is in seconds since 1970 or in RFC 3339, the ts of component-base in milliseconds.
func jsonTime(fields map[string]json.RawMessage) time.Time {
	if us, err := strconv.ParseInt(jsonText(fields, "__REALTIME_TIMESTAMP"), 10, 64); err == nil {
		return time.UnixMicro(us).UTC()
	}
	for _, f := range [...]string{"time", "ts"} {
		if at, has := parseStamp(jsonText(fields, f), time.UTC); has {
			return at
		}
	}
	const seconds = 1e11 // anything below is in seconds: as milliseconds, 1e11 is in 1973
	ts, err := strconv.ParseFloat(string(fields["ts"]), 64)
	switch {
	case err != nil || ts <= 0 || ts > 1e15:
		return time.Time{}
	case ts < seconds:
		ts *= 1000
	}
	return time.UnixMicro(int64(ts * 1000)).UTC()
}

func jsonText(fields map[string]json.RawMessage, name string) (s string) {
	_ = json.Unmarshal(fields[name], &s) // "" for what is no text
	return s
}
