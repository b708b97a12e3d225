package pasted_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"mime/quotedprintable"
	"regexp"
	"strings"
)

// around puts texts around each line.
func around(before, after string) func(string) string {
	return func(text string) string {
		return each(text, func(_ int, l string) string { return before + l + after + "\n" })
	}
}

// sheet writes rows as CSV.
func sheet(all [][]string) string {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	w.WriteAll(all)
	return b.String()
}

// celled makes a row of each line.
func celled(text string, cell func(line string) string) (out [][]string) {
	for i, l := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		out = append(out, []string{fmt.Sprintf("2026-02-11T08:00:%02dZ", i), cell(l)})
	}
	return out
}

func same(line string) string { return line }

func logged(line string) string {
	b, _ := json.Marshal(map[string]any{"log": line + "\n", "stream": "stderr"})
	return string(b)
}

func init() {
	for name, form := range map[string]func(string) string{
		"cat -A": func(s string) string { return around("", "$")(strings.ReplaceAll(s, "\t", "^I")) },
		"each line is code, in Markdown": func(s string) string {
			return each(s, func(_ int, l string) string {
				if l == "" {
					return "\n"
				}
				return "`" + l + "`\n"
			})
		},
		"in a box of a terminal": func(s string) string {
			return each(s, func(_ int, l string) string { return fmt.Sprintf("│%-130s│\n", l) })
		},
		"spaces at the ends, below times": func(s string) string { return before("2/11/2026 8:%02d AM ")(around("", "   ")(s)) },
		"a web page's numbers":            before("L%d: "),
		"Markdown's backslashes": func(s string) string {
			return regexp.MustCompile(`[\[\]*_]`).ReplaceAllString(s, `\$0`)
		},
		"quoted-printable": func(s string) string {
			var b bytes.Buffer
			w := quotedprintable.NewWriter(&b)
			w.Write([]byte(s))
			w.Close()
			return strings.ReplaceAll(b.String(), "\r\n", "\n")
		},
		"Python's bytes": func(s string) string {
			return "b'" + strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\t", `\t`, "'", `\'`).Replace(s) + "'\n"
		},
		"XML": func(s string) string {
			var b bytes.Buffer
			xml.EscapeText(&b, []byte(s))
			return `<?xml version="1.0"?><testsuite><testcase name="a"><failure type="x">` + b.String() + "</failure></testcase></testsuite>\n"
		},
		"CDATA": func(s string) string { return `<failure message="it hangs"><![CDATA[` + s + "]]></failure>\n" },
		"TSV": func(s string) string {
			return "Date\tLine\n" + each(s, func(i int, l string) string { return fmt.Sprintf("Feb 11, 2026 @ 08:00:%02d.000\t%s\n", i, l) })
		},
		"CSV without names": func(s string) string { return sheet(celled(s, same)) },
		"JSON in CSV":       func(s string) string { return "timestamp,message\n" + sheet(celled(s, logged)) },
		"fluentd's tags": func(s string) string {
			return each(s, func(i int, l string) string {
				return fmt.Sprintf("2026-02-11 08:00:00.%09d +0000 kube.var.log: %s\n", i, logged(l))
			})
		},
		"Fluent Bit's tags": func(s string) string {
			return each(s, func(i int, l string) string {
				return fmt.Sprintf("[%d] kube.var.log: [[1770796800.%09d, {}], %s]\n", i, i, logged(l))
			})
		},
		"Splunk, a line each": func(s string) string {
			return lined(rows(s, func(at, l string) any {
				return map[string]any{"preview": false, "result": map[string]any{"_time": at, "_raw": l}}
			}))
		},
		"an export in a fence": func(s string) string {
			return "It hangs:\n\n```json\n" + jsonOf(rows(s, func(at, l string) any { return map[string]any{"message": l, "timestamp": at} })) + "\n```\n\nThanks!\n"
		},
		"CRI in an export": func(s string) string {
			return jsonOf(rows(before("2026-02-11T08:00:00.%09dZ stderr F ")(s), func(at, l string) any {
				return map[string]any{"message": l, "timestamp": at}
			}))
		},
	} {
		if forms[name] != nil {
			panic("two forms are called " + name)
		}
		forms[name] = form
	}
}
