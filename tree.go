// Package relapse carries the scenarios and the sources of the fixtures, so that the program works without a checkout
// of its repository.
package relapse

import "embed"

//go:generate go run ./internal/embedded/pack

// Tree has the files that a run reads from a checkout, by their paths in it. Fixtures that are modules of their own are
// in fixtures/modules.zip, because Go embeds no other module's files.
//
//go:embed go.mod go.sum kind-config.yaml fixtures scenarios
var Tree embed.FS
