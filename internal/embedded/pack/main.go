// Command pack writes fixtures/modules.zip; go generate runs it in the repository's root.
package main

import (
	"fmt"
	"os"

	"github.com/kube-relapse/relapse/internal/embedded"
)

func main() {
	out, err := embedded.PackModules(".")
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	fmt.Println(out)
}
