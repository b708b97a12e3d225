package cli

import (
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"io"
	"net/url"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/mod/semver"

	"github.com/kube-relapse/relapse/harness/version"
	"github.com/kube-relapse/relapse/internal/printing"
)

// newSBOMCmd returns the command that .ci/release calls for each program that it builds.
func newSBOMCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "sbom PROGRAM",
		Short: "Print the modules that a program was built from, as SPDX 2.3",
		Args:  exactly(1, "program"),
		RunE: func(cmd *cobra.Command, args []string) error {
			info, err := buildinfo.ReadFile(args[0])
			if err != nil {
				return usage(
					fmt.Errorf("reading what %s was built from: %w", args[0], err),
					"name a program that Go built",
				)
			}
			program, err := os.ReadFile(args[0])
			if err != nil {
				return err
			}
			return writeSBOM(cmd.OutOrStdout(), info, sha256.Sum256(program))
		},
	}
}

// spdx is a document of SPDX 2.3, as far as a Go program needs it.
type spdx struct {
	Version       string         `json:"spdxVersion"`
	License       string         `json:"dataLicense"`
	ID            string         `json:"SPDXID"`
	Name          string         `json:"name"`
	Namespace     string         `json:"documentNamespace"`
	Creation      spdxCreation   `json:"creationInfo"`
	Packages      []spdxPackage  `json:"packages"`
	Relationships []spdxRelation `json:"relationships"`
}

type spdxCreation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type spdxPackage struct {
	ID        string         `json:"SPDXID"`
	Name      string         `json:"name"`
	Version   string         `json:"versionInfo"`
	Location  string         `json:"downloadLocation"`
	Analyzed  bool           `json:"filesAnalyzed"`
	Concluded string         `json:"licenseConcluded"`
	Declared  string         `json:"licenseDeclared"`
	Copyright string         `json:"copyrightText"`
	Comment   string         `json:"comment,omitempty"`
	Sums      []spdxSum      `json:"checksums,omitempty"`
	Refs      []spdxExternal `json:"externalRefs"`
}

type spdxSum struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"checksumValue"`
}

type spdxExternal struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type spdxRelation struct {
	Element string `json:"spdxElementId"`
	Type    string `json:"relationshipType"`
	Related string `json:"relatedSpdxElement"`
}

// writeSBOM writes the document of a program. The same program gives the same bytes.
func writeSBOM(w io.Writer, info *debug.BuildInfo, sum [sha256.Size]byte) error {
	const document, root = "SPDXRef-DOCUMENT", "SPDXRef-program"
	program := module(root, info.Main.Path, cmp.Or(info.Main.Version, "(devel)"))
	program.Comment = "relapse version: " + version.Of(info)
	program.Sums = []spdxSum{{"SHA256", hex.EncodeToString(sum[:])}}
	program.Declared = "Apache-2.0"
	d := spdx{Version: "SPDX-2.3", License: "CC0-1.0", ID: document, Name: "relapse",
		Namespace:     "https://relapse.dev/spdx/" + hex.EncodeToString(sum[:]),
		Creation:      spdxCreation{Created: built(info), Creators: []string{"Tool: relapse"}},
		Packages:      []spdxPackage{program},
		Relationships: []spdxRelation{{document, "DESCRIBES", root}}}
	add := func(p spdxPackage) {
		d.Packages = append(d.Packages, p)
		d.Relationships = append(d.Relationships, spdxRelation{root, "DEPENDS_ON", p.ID})
	}
	add(module("SPDXRef-stdlib", "stdlib", strings.TrimPrefix(info.GoVersion, "go")))
	for i, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		p := module(fmt.Sprintf("SPDXRef-module-%d", i+1), m.Path, m.Version)
		p.Comment = "go.sum: " + cmp.Or(m.Sum, "none")
		add(p)
	}
	return printing.WriteJSON(w, d)
}

// module is a module by its purl, by which scanners look up what is known of it: a build without a version has none there.
func module(id, path, version string) spdxPackage {
	const nobody = "NOASSERTION"
	purl := "pkg:golang/" + strings.ToLower(path)
	if semver.IsValid("v" + strings.TrimPrefix(version, "v")) {
		purl += "@" + url.QueryEscape(version)
	}
	return spdxPackage{
		ID:        id,
		Name:      path,
		Version:   version,
		Location:  nobody,
		Concluded: nobody,
		Declared:  nobody,
		Copyright: nobody,
		Refs:      []spdxExternal{{"PACKAGE-MANAGER", "purl", purl}},
	}
}

// built returns when the commit was made that a program was built from. Where the program doesn't say, it is the
// beginning of 1970.
func built(info *debug.BuildInfo) string {
	for _, s := range info.Settings {
		if s.Key == "vcs.time" {
			return s.Value
		}
	}
	return time.Unix(0, 0).UTC().Format(time.RFC3339)
}
