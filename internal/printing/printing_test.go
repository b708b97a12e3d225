package printing_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/internal/printing"
)

func TestTable(t *testing.T) {
	cells := printing.Table{Header: []string{"incident", "95 %", "why"}}
	cells.Add("late", 3, "a|b of <nil>")
	cells.Add("é", true, "first line:\n\tthe  second")
	cells.Add("`code`", "", "two  blanks")
	bare := printing.Table{Indent: "    ", Empty: "-"}
	bare.Add("pods", "", "500")
	bare.Add("", "longer", "")
	indented := printing.Table{Indent: "  "}
	indented.Add("a", "b", "")
	indented.Add("", "", "")
	for _, tc := range []struct{ name, got, want string }{
		{"text", cells.Text(), `INCIDENT  95 %  WHY
late      3     a|b of <nil>
é         true  first line: the second
` + "`code`" + `          two  blanks
`},
		{"markdown", cells.Markdown(), `| incident | 95 % | why |
|---|---|---|
| late | 3 | a\|b of &lt;nil> |
| é | true | first line: the second |
| ` + "`code`" + ` |  | two  blanks |
`},
		{"no header, indented, a word for empty cells", bare.Text(), "    pods  -       500\n    -     longer  -\n"},
		{"no blanks at the ends of lines", indented.Text(), "  a  b\n\n"},
		{"nothing", printing.Table{}.Text(), ""},
		{"no rows", printing.Table{Header: []string{"check", "seen"}}.Text(), "CHECK  SEEN\n"},
		{"no rows, in Markdown", printing.Table{Header: []string{"check", "seen"}}.Markdown(), "| check | seen |\n|---|---|\n"},
	} {
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
	}
}

// A table that is too wide for a terminal has its widest columns broken into lines; no word of it is lost.
func TestTableFits(t *testing.T) {
	table := printing.Table{Header: []string{"scenario", "what it is", "verdict"}, Indent: "  ", Empty: "-"}
	table.Add("pleg-deadlock", "a slow runtime and a flood of containers lock the PLEG for good", "Validated")
	table.Add("short", "", "Broken")
	for _, c := range []struct {
		width int
		want  string
	}{
		{0, `  SCENARIO       WHAT IT IS                                                       VERDICT
  pleg-deadlock  a slow runtime and a flood of containers lock the PLEG for good  Validated
  short          -                                                                Broken
`},
		{60, `  SCENARIO       WHAT IT IS                     VERDICT
  pleg-deadlock  a slow runtime and a flood of  Validated
                 containers lock the PLEG for
                 good
  short          -                              Broken
`},
		{10, `  SCENARIO       WHAT IT IS       VERDICT
  pleg-deadlock  a slow runtime   Validated
                 and a flood of
                 containers lock
                 the PLEG for
                 good
  short          -                Broken
`},
	} {
		if diff := cmp.Diff(c.want, table.Fit(c.width)); diff != "" {
			t.Errorf("%d columns (-want +got):\n%s", c.width, diff)
		}
	}
}

func TestEscape(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{"a plain text, with **markup** and  blanks", "a plain text, with **markup** and  blanks"},
		{"<script>", "&lt;script>"},
		{"x | y\r\n  z", `x \| y z`},
	} {
		if got := printing.Escape(tc.in); got != tc.want {
			t.Errorf("%q: %q, want %q", tc.in, got, tc.want)
		}
	}
}

func TestWriteJSON(t *testing.T) {
	value := struct {
		Pattern string   `json:"pattern"`
		List    []string `json:"list"`
	}{"<a> & b", []string{"x"}}
	var indented, line bytes.Buffer
	if err := printing.WriteJSON(&indented, value); err != nil {
		t.Fatal(err)
	}
	if err := printing.WriteJSONLine(&line, value); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("{\n  \"pattern\": \"<a> & b\",\n  \"list\": [\n    \"x\"\n  ]\n}\n", indented.String()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(`{"pattern":"<a> & b","list":["x"]}`+"\n", line.String()); diff != "" {
		t.Error(diff)
	}
	if err := printing.WriteJSON(&indented, func() {}); err == nil || err.Error() != "json: unsupported type: func()" {
		t.Errorf("a value that has no JSON: %v", err)
	}
}

func TestChoice(t *testing.T) {
	var chosen printing.Format
	c := printing.NewChoice(&chosen, printing.Text, printing.JSON, printing.Markdown)
	if chosen != printing.Text || c.String() != "text" || c.Usage() != "one of text, json, markdown" {
		t.Errorf("the default is %q, shown as %q; it takes %s", chosen, c, c.Usage())
	}
	if err := c.Set("markdown"); err != nil || chosen != printing.Markdown {
		t.Errorf("after markdown was set: %q, %v", chosen, err)
	}
	for _, name := range []string{"yaml", "", "JSON"} { // yaml is a format, but not one of this command
		err := c.Set(name)
		if err == nil || err.Error() != "want one of text, json, markdown" || chosen != printing.Markdown {
			t.Errorf("%q: %v, and the format is %q", name, err, chosen)
		}
	}
	if diff := cmp.Diff([]string{"text", "json", "markdown"}, c.Names()); diff != "" {
		t.Error(diff)
	}
}
