package pasted_test

import (
	"bytes"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"html"
	"strings"
)

// forms are ways in which people paste a dump that keep all of it.
var forms = map[string]func(string) string{
	"as it is":                func(s string) string { return s },
	"tabs are eight spaces":   func(s string) string { return strings.ReplaceAll(s, "\t", "        ") },
	"tabs are two spaces":     func(s string) string { return strings.ReplaceAll(s, "\t", "  ") },
	"tabs are lost":           func(s string) string { return strings.ReplaceAll(s, "\t", "") },
	"indented":                before("    "),
	"indented by a tab":       before("\t"),
	"quoted":                  before("> "),
	"quoted twice":            before(">> "),
	"quoted, ends trimmed":    func(s string) string { return strings.ReplaceAll(before("> ")(s), "> \n", ">\n") },
	"quoted, tabs are lost":   func(s string) string { return before("> ")(strings.ReplaceAll(s, "\t", "    ")) },
	"a fence in a list":       func(s string) string { return "1. the dump:\n\n" + before("   ")("```\n"+s+"```\n") },
	"a fence":                 func(s string) string { return "What happened: it hangs.\n\n```console\n" + s + "```\n\nThanks!\n" },
	"empty lines doubled":     func(s string) string { return strings.ReplaceAll(s, "\n", "\n\n") },
	"empty lines lost":        func(s string) string { return strings.ReplaceAll(s, "\n\n", "\n") },
	"base64":                  inBase64,
	"base64 in a fence":       func(s string) string { return "The dump:\n\n```\n" + inBase64(s) + "```\n" },
	"base64, quoted":          func(s string) string { return before("> ")(inBase64(s)) },
	"arrows for tabs":         func(s string) string { return strings.ReplaceAll(s, "\t", "→   ") },
	"empty lines tripled":     func(s string) string { return strings.ReplaceAll(s, "\n", "\n\n\n") },
	"a backslash at each end": func(s string) string { return strings.ReplaceAll(s, "\n", "\\\n") },
	"a block of code's mark":  func(s string) string { return "[code]" + s + "[/code]\n" },
	"strings of a list": func(s string) string {
		return "\"stdout_lines\": [\n" + each(s, func(_ int, l string) string { return fmt.Sprintf("    %s,\n", asJSON(l)) }) + "]\n"
	},
	"a recording": func(s string) string {
		return "{\"version\": 2, \"width\": 200}\n" + each(s, func(i int, l string) string { return fmt.Sprintf("[%d.5, \"o\", %s]\n", i, asJSON(l+"\r\n")) })
	},
	"CR only":                 func(s string) string { return strings.ReplaceAll(s, "\n", "\r") },
	"CRLF":                    func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") },
	"grep -n":                 before("%d:"),
	"grep -Hn":                before("kubelet-1.txt:%d:"),
	"grep -H":                 before("kubelet.txt:"),
	"grep -n -A9":             func(s string) string { return each(s, func(i int, l string) string { return grepped(i, l) }) },
	"cat -n":                  before("%6d\t"),
	"cat -n, tabs are spaces": func(s string) string { return strings.ReplaceAll(before("%6d\t")(s), "\t", "    ") },
	"an editor's numbers":     before("%3d | "),
	"added in a diff":         before("+"),
	"removed in a diff":       before("-"),
	"colours": func(s string) string {
		return each(s, func(_ int, l string) string { return "\x1b[31m" + l + "\x1b[0m\n" })
	},
	"colours without escapes": func(s string) string { return each(s, func(_ int, l string) string { return "[31m" + l + "[0m\n" }) },
	"stern":                   before("kubelet-x kubelet "),
	"stern with times":        before("kubelet-x kubelet 2026-02-11T08:00:00.%09dZ "),
	"stern's colours": func(s string) string {
		return each(s, func(_ int, l string) string { return "\x1b[35mn1-x\x1b[0m › \x1b[36mbox\x1b[0m " + l + "\n" })
	},
	"docker compose":         before("kubelet-1  | "),
	"a time as people write": before("2/11/2026 8:%02d AM "),
	"Kibana's time":          before("Feb 11, 2026 @ 08:00:00.%03d "),
	"quoted CRI":             func(s string) string { return before("> ")(before("2026-02-11T08:00:00.%09dZ stderr F ")(s)) },
	"CRI, tabs are spaces": func(s string) string {
		return before("2026-02-11T08:00:00.%09dZ stderr F ")(strings.ReplaceAll(s, "\t", "    "))
	},
	"newest first": reversed,
	"newest first, with times": func(s string) string {
		return reversed(before("2026-02-11T08:00:00.%09dZ ")(s))
	},
	"one string of JSON": func(s string) string { b, _ := json.Marshal(s); return string(b) },
	"a field of JSON":    func(s string) string { return "  \"log\": " + strings.TrimSpace(jsonOf(s)) + ",\n" },
	"escapes":            func(s string) string { return strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(s) },
	"HTML": func(s string) string {
		return "<html><body><p>It hangs.</p><pre><code>" + html.EscapeString(s) + "</code></pre></body></html>\n"
	},
	"HTML with br": func(s string) string {
		return "<div>" + strings.NewReplacer("\n", "<br>", "\t", "&nbsp;&nbsp;").Replace(html.EscapeString(s)) + "</div>"
	},
	"entities":            func(s string) string { return before("&gt; ")(html.EscapeString(s)) },
	"UTF-16 without mark": func(s string) string { return wideText(s) },
	"Cloud Logging": func(s string) string {
		return jsonOf(rows(s, func(at, l string) any {
			return map[string]any{"textPayload": l, "timestamp": at, "resource": map[string]any{"labels": map[string]any{"container_name": "kubelet", "pod_name": "n1"}}}
		}))
	},
	"a mail, broken at spaces":        func(s string) string { return before("> ")(atSpaces(s, 76)) },
	"a mail, broken and quoted since": func(s string) string { return quotedFirst(s, 72) },
	"journalctl -o json-pretty":       func(s string) string { return journal(s, "", "\t", "\n") },
	"journalctl -o json-seq":          func(s string) string { return journal(s, "\x1e", "", "\n") },
	"journalctl -o json-sse":          func(s string) string { return journal(s, "data: ", "", "\n\n") },
	"journalctl -o verbose": func(s string) string {
		return each(s, func(i int, l string) string {
			return fmt.Sprintf("Wed 2026-02-11 08:00:00.%06d UTC [s=ab;i=%x;b=cd;m=1;t=2;x=3]\n    _PID=7\n    SYSLOG_IDENTIFIER=kubelet\n    MESSAGE=%s\n    PRIORITY=6\n", i, i, l)
		})
	},
	"OpenTelemetry": func(s string) string {
		logs := rows(s, func(_, l string) any {
			return map[string]any{"timeUnixNano": "1770796800000000000", "body": map[string]any{"stringValue": l}}
		})
		return jsonOf(map[string]any{"resourceLogs": []any{map[string]any{
			"resource":  map[string]any{"attributes": []any{map[string]any{"key": "k8s.container.name", "value": map[string]any{"stringValue": "kubelet"}}}},
			"scopeLogs": []any{map[string]any{"logRecords": logs}},
		}}})
	},
	"AKS's diagnostic logs": func(s string) string { return jsonOf(map[string]any{"records": azure(s)}) },
	"AKS's diagnostic logs, a line each": func(s string) string {
		var out strings.Builder
		for _, r := range azure(s) {
			out.WriteString(strings.TrimSpace(compact(r)) + "\n")
		}
		return out.String()
	},
	"CloudWatch's subscription": func(s string) string {
		var out strings.Builder
		for _, r := range rows(s, func(at, l string) any { return map[string]any{"id": at, "timestamp": 1770796800000, "message": l} }) {
			out.WriteString(compact(map[string]any{"messageType": "DATA_MESSAGE", "logStream": "x", "logEvents": []any{r}}))
		}
		return out.String()
	},
	"a feed of an issue tracker": func(s string) string {
		return "<?xml version=\"1.0\"?><rss><item><description>" + html.EscapeString("<div><pre>"+html.EscapeString(s)+"</pre></div>") + "</description></item></rss>\n"
	},
	"soft hyphens": func(s string) string { return strings.ReplaceAll(s, "/", "/\u00ad") },
	"CloudWatch": func(s string) string {
		return jsonOf(map[string]any{"events": rows(s, func(at, l string) any { return map[string]any{"message": l, "timestamp": at} })})
	},
	"CloudWatch's query": func(s string) string {
		return jsonOf(map[string]any{"results": rows(s, func(at, l string) any {
			return []any{map[string]any{"field": "@timestamp", "value": strings.NewReplacer("T", " ", "Z", ".000").Replace(at)}, map[string]any{"field": "@message", "value": l}}
		})})
	},
	"Loki": func(s string) string {
		n := 0
		return jsonOf(map[string]any{"status": "success", "data": map[string]any{"result": []any{map[string]any{"stream": map[string]any{"container": "kubelet"},
			"values": rows(s, func(_, l string) any { n++; return []any{fmt.Sprint(1770796800000000000 + n), l} })}}}})
	},
	"Elasticsearch": func(s string) string {
		return jsonOf(map[string]any{"hits": map[string]any{"hits": rows(s, func(at, l string) any {
			return map[string]any{"_source": map[string]any{"@timestamp": at, "message": l}}
		})}})
	},
	"Cloud Logging, a line each": func(s string) string {
		return lined(rows(s, func(at, l string) any { return map[string]any{"textPayload": l, "timestamp": at, "insertId": "x"} }))
	},
	"Fluent Bit, a line each": func(s string) string {
		return lined(rows(s, func(at, l string) any {
			return map[string]any{"log": l, "@timestamp": at, "kubernetes": map[string]any{"container_name": "kubelet", "pod_name": "n1"}}
		}))
	},
	"Cloud Logging as YAML": func(s string) string {
		out := ""
		for i, l := range strings.Split(strings.TrimSuffix(s, "\n"), "\n") {
			out += fmt.Sprintf("---\ninsertId: a%d\nresource:\n  labels:\n    container_name: kubelet\n    pod_name: n1\ntextPayload: %q\ntimestamp: '2026-02-11T08:00:00.%09dZ'\n", i, l, i)
		}
		return out
	},
	"lines of a child": func(s string) string {
		return each(s, func(i int, l string) string {
			return fmt.Sprintf("time=\"2026-02-11 08:00:%02d\" level=info msg=%q component=kubelet stream=stderr\n", i, l)
		})
	},
	"Log Analytics' CSV": func(s string) string {
		return "\"TimeGenerated [UTC]\",Category,log_s\n" + each(s, func(i int, l string) string {
			return fmt.Sprintf("\"2/11/2026, 8:00:%02d.000 AM\",kubelet,\"%s\"\n", i, l)
		})
	},
	"a table of HTML": func(s string) string {
		return "<html><table>" + each(html.EscapeString(s), func(i int, l string) string {
			return fmt.Sprintf("<tr><td class=\"n\">%d</td><td>%s</td></tr>\n", i+1, l)
		}) + "</table></html>\n"
	},
	"characters without width": func(s string) string { return strings.ReplaceAll(s, "/", "/\u200b") },
	"a chat's fences":          func(s string) string { return "look at this\n```" + strings.TrimSuffix(s, "\n") + "```\n1 reply\n" },
	"a narrow terminal": func(s string) string {
		return each(s, func(_ int, l string) string {
			out := ""
			for ; len(l) > 72; l = l[72:] {
				out += l[:72] + "\n"
			}
			return out + l + "\n"
		})
	},
	"fold -w 80":      func(s string) string { return folded(s, 80) },
	"no-break spaces": func(s string) string { return strings.NewReplacer("\t", "\u00a0\u00a0", " ", "\u00a0").Replace(s) },
	"logcli": func(s string) string {
		return lined(rows(s, func(at, l string) any {
			return map[string]any{"line": l, "timestamp": at, "labels": map[string]any{"container": "kubelet"}}
		}))
	},
	"Kibana's CSV": func(s string) string {
		out := `"@timestamp",message,host` + "\n"
		for i, l := range strings.Split(strings.TrimSuffix(s, "\n"), "\n") {
			out += fmt.Sprintf("\"Feb 11, 2026 @ 08:00:%02d.000\",\"%s\",n1\n", i, l)
		}
		return out
	},
	"one object of JSON with all": func(s string) string { return jsonOf(map[string]any{"level": "fatal", "stack": s}) },
	"one record of JSON with all": func(s string) string {
		return jsonOf([]any{map[string]any{"message": s, "timestamp": "2026-02-11T08:00:00Z"}})
	},
	"CSV": func(s string) string {
		var b bytes.Buffer
		w := csv.NewWriter(&b)
		w.Write([]string{"Time", "Line"})
		for _, r := range rows(s, func(at, l string) any { return []string{at, l} }) {
			w.Write(r.([]string))
		}
		w.Flush()
		return b.String()
	},
	"CSV without times": func(s string) string {
		var b bytes.Buffer
		w := csv.NewWriter(&b)
		w.Write([]string{"message", "host"})
		w.Write([]string{s, "n1"})
		w.Flush()
		return b.String()
	},
}

// atSpaces breaks lines at spaces so that each is as short as that allows.
func atSpaces(s string, width int) string {
	var out strings.Builder
	for line := range strings.Lines(strings.ReplaceAll(s, "\t", "    ")) {
		line = strings.TrimSuffix(line, "\n")
		for len(line) > width {
			at := strings.LastIndex(line[:width+1], " ")
			if strings.TrimSpace(line[:max(at, 0)]) == "" {
				lead := len(line) - len(strings.TrimLeft(line, " "))
				if at = strings.Index(line[lead:], " "); at < 0 {
					break
				}
				at += lead
			}
			out.WriteString(line[:at] + "\n")
			line = line[at+1:]
		}
		out.WriteString(line + "\n")
	}
	return out.String()
}

// quotedFirst breaks lines that were quoted before: what goes on has no mark.
func quotedFirst(s string, width int) string { return atSpaces(before("> ")(s), width) }

func journal(s, begin, indent, end string) string {
	return each(s, func(i int, l string) string {
		v := map[string]any{"__REALTIME_TIMESTAMP": fmt.Sprint(1770796800000000 + i), "SYSLOG_IDENTIFIER": "kubelet", "MESSAGE": l}
		b, _ := json.MarshalIndent(v, "", indent)
		if indent == "" {
			b = []byte(compact(v))
		}
		return begin + string(b) + end
	})
}

func compact(v any) string { b, _ := json.Marshal(v); return string(b) }

func azure(s string) []any {
	return rows(s, func(at, l string) any {
		return map[string]any{"time": at, "category": "kubelet", "operationName": "diagnosticLogs/Read", "properties": map[string]any{"log": l + "\n", "pod": "n1", "stream": "stderr"}}
	})
}

// inBase64 returns a text in base64, in lines of 76 letters.
func inBase64(s string) string {
	var b strings.Builder
	for all := base64.StdEncoding.EncodeToString([]byte(s)); all != ""; all = all[min(76, len(all)):] {
		b.WriteString(all[:min(76, len(all))] + "\n")
	}
	return b.String()
}

func asJSON(s string) string {
	b, _ := json.Marshal(s) // a text has no error
	return string(b)
}
