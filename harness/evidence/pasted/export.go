package pasted

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
)

// record is a record of an export: a text of one or more lines, and what the export says of it.
type record struct {
	at             time.Time
	text           string
	pod, container string
}

// records takes the lines out of an export of logs: JSON as Loki, Cloud Logging, CloudWatch and Elasticsearch give it,
// YAML as gcloud prints it, or CSV. The oldest comes first, whatever the order was.
func records(text []byte) ([]byte, bool) {
	trimmed := bytes.TrimSpace(text)
	if len(trimmed) == 0 {
		return nil, false
	}
	var all []record
	switch trimmed[0] {
	case '{', '[', '"':
		all = fromJSON(trimmed)
	case '-', 'i':
		all = fromYAML(trimmed)
	}
	if len(all) == 0 && trimmed[0] != '{' && trimmed[0] != '[' {
		all = fromCSV(trimmed)
	}
	if len(all) == 0 {
		all = fromChildren(trimmed)
	}
	if len(all) == 0 {
		all = fromTagged(trimmed)
	}
	if len(all) == 0 {
		all = fromVerbose(trimmed)
	}
	if len(all) == 0 {
		return nil, false
	}
	all = within(all)
	if newest(all) {
		slices.Reverse(all)
	}
	var out bytes.Buffer
	for _, r := range all {
		for _, l := range strings.Split(strings.TrimRight(r.text, "\r\n"), "\n") {
			r.write(&out, strings.TrimRight(l, "\r"))
		}
	}
	return out.Bytes(), true
}

// fenced takes the lines out of the exports that stand in fences of a text.
func fenced(text []byte) ([]byte, bool) {
	if !fence.Match(text) && !bytes.Contains(text, []byte("\n```")) && !bytes.Contains(text, []byte(" ```")) {
		return nil, false
	}
	var out, block bytes.Buffer
	inside, found := false, false
	end := func() {
		if lines, ok := records(block.Bytes()); ok {
			found = true
			out.Write(lines)
		} else {
			out.Write(block.Bytes())
		}
		block.Reset()
	}
	for line := range bytes.Lines(text) {
		switch {
		case fence.Match(line):
			end()
			inside = !inside
			out.Write(line)
		case inside:
			block.Write(line)
		default:
			out.Write(line)
		}
	}
	end()
	return out.Bytes(), found
}

// write writes a line with what is known of it, as kubectl logs writes it with --prefix and --timestamps. What the line
// says itself is not said twice.
func (r record) write(out *bytes.Buffer, line string) {
	text, said := goroutine.Plain([]byte(line), time.UTC)
	wrapped := len(text) < len(line)
	if r.container != "" && !(wrapped && said.From != "") {
		out.WriteString("[pod/" + r.pod + "/" + r.container + "] ")
	}
	if !r.at.IsZero() && !(wrapped && !said.Time.IsZero()) {
		out.WriteString(r.at.UTC().Format(time.RFC3339Nano) + " ")
	}
	out.WriteString(line)
	out.WriteByte('\n')
}

// newest reports whether the newest record comes first, by their times or, without any, by the stacks in them.
func newest(all []record) bool {
	up, down := 0, 0
	for i := 1; i < len(all); i++ {
		switch all[i].at.Compare(all[i-1].at) {
		case 1:
			up++
		case -1:
			down++
		}
	}
	if up+down > 0 {
		return down > up
	}
	var text []Line
	for _, r := range all {
		if !strings.Contains(strings.TrimRight(r.text, "\n"), "\n") {
			text = append(text, Line{Text: []byte(r.text)})
		}
	}
	return backwards(text)
}

// The names that exports give to a record's text and time, the surest first.
var (
	textFields = []string{"textPayload", "@message", "message", "MESSAGE", "log", "line", "Line", "body", "content", "msg", "_raw", "text", "log_s", "_msg", "LogMessage", "LogEntry"}
	timeFields = []string{"timestamp", "@timestamp", "time", "Time", "ts", "date", "Date", "_time", "eventTime", "receiveTimestamp", "tsNs", "TimeGenerated", "TimeGenerated [UTC]", "timeUnixNano", "__REALTIME_TIMESTAMP"}
	podFields  = []string{"pod", "pod_name", "k8s_pod_name", "PodName", "pod_s", "kubernetes.pod_name", "kubernetes.pod.name"}
	boxFields  = []string{"container", "container_name", "k8s_container_name", "kubernetes.container_name", "kubernetes.container.name", "ContainerName", "component_name", "Category", "category", "SYSLOG_IDENTIFIER"}
	fileFields = []string{"file", "filename", "filepath", "path", "source"}
)

// fromJSON returns the records of JSON, none if it isn't JSON or has none. Where each line is a value, as in logs that
// programs write as JSON, something has to show that these are records: see kept.
func fromJSON(text []byte) (all []record) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return nil
	}
	typed := bytes.Contains(text, []byte(`"stringValue"`))
	if typed {
		v = plainValue(v)
	}
	var next any
	switch err := d.Decode(&next); {
	case err == io.EOF:
		if s, ok := v.(string); ok {
			return []record{{text: s}}
		}
		if inList(v, record{}, &all); len(all) == 0 && !logsItself(v) {
			withStacks(v, &all)
		}
		return all
	case err != nil:
		return nil
	}
	if typed {
		next = plainValue(next)
	}
	values := []any{v, next}
	for {
		var one any
		err := d.Decode(&one)
		if err == io.EOF {
			if all = kept(values, spread(text)); len(all) == 0 {
				all = fromBatches(values)
			}
			return all
		}
		if err != nil {
			return nil
		}
		if typed {
			one = plainValue(one)
		}
		values = append(values, one)
	}
}

// withStacks adds the strings of several lines in a value that have a stack.
func withStacks(v any, all *[]record) {
	switch v := v.(type) {
	case string:
		if strings.Contains(v, "\n") && strings.Contains(v, "goroutine ") {
			*all = append(*all, record{text: v})
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			withStacks(v[k], all)
		}
	case []any:
		for _, x := range v {
			withStacks(x, all)
		}
	}
}

// inList adds the records in the lists of a value. from has what is known from outside of the list.
func inList(v any, from record, all *[]record) {
	switch v := v.(type) {
	case map[string]any:
		from = from.named(v)
		if rows := rowsOf(v); len(rows) > 0 {
			inList(rows, from, all)
			return
		}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			inList(v[k], from, all)
		}
	case []any:
		for _, x := range v {
			if r, ok := recordOf(x, from); ok {
				*all = append(*all, r)
			} else {
				inList(x, from, all)
			}
		}
	}
}

// named adds the pod and the container that an object names, itself or in its labels.
func (r record) named(fields map[string]any) record {
	for _, at := range []string{"", "stream", "metric", "labels", "resource", "kubernetes", "fields", "properties"} {
		in := fields
		if at != "" {
			in, _ = fields[at].(map[string]any)
		}
		for _, inner := range []string{"labels", "attributes"} {
			if of, ok := in[inner].(map[string]any); ok && at == "resource" {
				in = of
			}
		}
		in = withNames(in)
		if c := field(in, boxFields); c != "" && !strings.ContainsAny(c, " []/") {
			r.container, r.pod = c, strings.Map(plainRune, field(in, podFields))
		}
		if c, ok := managed[field(in, []string{"component_name"})]; ok {
			r.container = c
		}
	}
	file := field(fields, fileFields)
	if log, ok := fields["log"].(map[string]any); ok && file == "" { // of Elastic's collectors
		log, _ = log["file"].(map[string]any)
		file = field(log, fileFields)
	}
	if pod, c := ofFile(file); c != "" && r.container == "" {
		r.container, r.pod = c, strings.Map(plainRune, pod)
	}
	return r
}

// withNames returns fields with the names of the pod and the container as texts, where these are objects with a name.
func withNames(fields map[string]any) map[string]any {
	for _, f := range []string{"pod", "container"} {
		if of, ok := fields[f].(map[string]any); ok {
			fields = maps.Clone(fields)
			fields[f] = of["name"]
		}
	}
	return fields
}

// managed are the names that GKE gives to the components of its control planes, and their own.
var managed = map[string]string{
	"apiserver":          "kube-apiserver",
	"controller-manager": "kube-controller-manager",
	"scheduler":          "kube-scheduler",
}

func plainRune(c rune) rune {
	if c <= ' ' || strings.ContainsRune("[]/", c) {
		return '_'
	}
	return c
}

// recordOf reads an element of a list: an object with a text, a pair of a time and a text, or the list of named fields
// that CloudWatch gives for a query.
func recordOf(x any, from record) (record, bool) {
	switch x := x.(type) {
	case string:
		return from.with("", x)
	case map[string]any:
		from = from.named(x)
		for _, in := range []string{"", "jsonPayload", "_source", "fields", "attributes", "result", "properties"} {
			f := x
			if in != "" {
				f, _ = x[in].(map[string]any)
				from = from.named(f)
			}
			if slices.ContainsFunc(textFields, func(name string) bool { _, is := f[name].(string); return is }) {
				text, at := field(f, textFields), field(x, timeFields)
				if at == "" {
					at = field(f, timeFields)
				}
				return from.with(at, text)
			}
		}
	case []any:
		if len(x) >= 2 {
			at, isTime := x[0].(string)
			text, isText := x[1].(string)
			if isTime && isText && !momentOf(at).IsZero() {
				return from.with(at, text)
			}
		}
		fields := map[string]any{}
		for _, f := range x {
			if m, ok := f.(map[string]any); ok {
				name, _ := m["field"].(string)
				fields[name] = m["value"]
			}
		}
		if text := field(fields, textFields); text != "" {
			return from.named(fields).with(field(fields, timeFields), text)
		}
	}
	return record{}, false
}

func (r record) with(at, text string) (record, bool) {
	r.at, r.text = momentOf(at), text
	return r, strings.TrimSpace(text) != "" || at != ""
}

// field returns the first of some fields that is a text or a number.
func field(of map[string]any, names []string) string {
	for _, n := range names {
		switch v := of[n].(type) {
		case string:
			return v
		case json.Number:
			return v.String()
		}
	}
	return ""
}

// momentOf reads a time as exports write it: RFC 3339, a date and a time in UTC, or a number of seconds, milliseconds or
// smaller parts since 1970. It is zero for anything else.
func momentOf(s string) time.Time {
	for _, form := range []string{time.RFC3339Nano, "2006-01-02 15:04:05", "2006-01-02T15:04:05", "2006/01/02 15:04:05", "1/2/2006 3:04 PM",
		"1/2/2006 3:04:05 PM", "1/2/2006, 3:04:05 PM", "Jan 2, 2006 @ 15:04:05"} {
		if at, err := time.Parse(form, s); err == nil {
			return at
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 1e9 {
		return time.Time{}
	}
	for n < 1e18 {
		n *= 10
	}
	if n > 4e18 { // beyond 2096: no number of a time
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}
