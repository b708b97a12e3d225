// Command relapse reproduces a known Kubernetes incident on purpose, in the real component, to prove that a cure works.
package main

import (
	"os"

	"github.com/kube-relapse/relapse/harness/cli"
)

func main() { os.Exit(cli.Main()) }
