package pasted

import (
	"bytes"
	"path"
	"regexp"
	"slices"
	"strings"
)

// ofExports are fields that exports have, and lines of programs' own logs in JSON don't.
var ofExports = []string{"textPayload", "jsonPayload", "insertId", "@message", "_source", "_raw", "_msg", "labels", "kubernetes", "operationName"}

// ofWrappings are fields of the JSON that docker and journald write, which package goroutine takes off by itself.
var ofWrappings = []string{"log", "MESSAGE"}

// written matches a line as klog or the runtime writes it. A program that logs in JSON has no such line as its message.
var written = regexp.MustCompile(
	`^(?:[IWEF][0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]+ |goroutine [0-9]+ \[[^\]]+\]:|(?:panic|fatal error): )`,
)

// spread reports whether the values of a text take several lines each, as journalctl -o json-pretty prints them. Nothing
// that reads a log line by line takes that off.
func spread(text []byte) bool {
	return bytes.HasPrefix(text, []byte("{\n")) || bytes.HasPrefix(text, []byte("{\r\n"))
}

// logsItself reports whether a value is a line that a program has logged in JSON: what it says beside a stack belongs
// to it.
func logsItself(v any) bool {
	fields, _ := v.(map[string]any)
	_, says := fields["msg"].(string)
	return says && fields["ts"] != nil
}

// kept returns the records in values of JSON that follow each other, as collectors of logs keep them; none if these may
// be the lines of a program that logs in JSON. They are a collector's if each has a field that none but exports have, or
// if each has one line for its text, and klog or the runtime has written one of these. What docker and journald write is
// left as it is, unless each value is spread over several lines.
func kept(values []any, spread bool) (all []record) {
	export, lines, several := true, false, false
	for _, v := range values {
		fields, _ := v.(map[string]any)
		has := func(name string) bool { _, is := fields[name]; return is }
		isText := func(name string) bool { _, is := fields[name].(string); return is }
		r, ok := recordOf(v, record{})
		if _, line := v.(string); !ok && (line || slices.ContainsFunc(textFields, isText)) { // an empty line
			r, ok = record{}, true
		}
		if !ok || !spread && !slices.ContainsFunc(ofExports, has) && slices.ContainsFunc(ofWrappings, isText) {
			return nil
		}
		export = export && slices.ContainsFunc(ofExports, has)
		if line := strings.TrimRight(r.text, "\r\n"); strings.Contains(line, "\n") {
			several = true
		} else {
			lines = lines || written.MatchString(line)
		}
		all = append(all, r)
	}
	if !export && (several || !lines) {
		return nil
	}
	return all
}

// logFile matches the path that the kubelet gives the log of a container: NAMESPACE_POD_UID/CONTAINER/N.log, or
// POD_NAMESPACE_CONTAINER-ID.log.
var logFile = regexp.MustCompile(
	`(?:^|/)(?:[^/_]+_([^/_]+)_[^/_]+/([a-z0-9-]+)/[0-9]+\.log|([^/_]+)_[^/_]+_([a-z0-9-]+)-[0-9a-f]{64}\.log)$`,
)

// ofFile returns the pod and the container whose log has a path, "" for any other file.
func ofFile(file string) (pod, container string) {
	m := logFile.FindStringSubmatch(path.Clean(strings.ReplaceAll(file, "\\", "/")))
	if m == nil {
		return "", ""
	}
	return m[1] + m[3], m[2] + m[4]
}
