package cli

import (
	"bytes"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestThePageOfCommandsIsTheirHelp(t *testing.T) {
	const page = "../../docs/" + commandsPage
	var want bytes.Buffer
	if err := allCommands(&want, documented()); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(page, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.String(), string(got)); diff != "" {
		t.Errorf("%s differs from what the commands say (make docs writes it): -want +got\n%s", page, diff)
	}
}
