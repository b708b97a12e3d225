package survey

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"go/build"
	"go/parser"
	"go/scanner"
	"go/token"
	"hash"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// Sources finds the folder of a package, as a release of the subject has it. own reports whether the package is of the
// subject's repository.
type Sources func(ctx context.Context, version, pkg string) (dir string, own bool, err error)

// Fingerprint sets the fingerprints of a release, of packages and of what they import of the subject's repository. A
// release that has none of the packages is like no other. One whose source can't be had gets the reason; only the end of
// ctx is an error.
func Fingerprint(ctx context.Context, from Sources, r *Release, packages []string) error {
	syntax, imported, lacks, err := hashAll(ctx, from, r.Version, packages)
	near := ""
	if err == nil {
		imported = slices.DeleteFunc(
			imported,
			func(p string) bool { return slices.Contains(packages, p) },
		)
		near, _, _, err = hashAll(ctx, from, r.Version, imported)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		r.Print, r.Near, r.Lacks, r.Why = "", "", nil, err.Error()
		return nil
	}
	if len(lacks) == len(packages) {
		syntax = "none of " + r.Version
	}
	r.Print, r.Near, r.Lacks, r.Why = syntax, near, lacks, ""
	return nil
}

// hashAll returns a hash of the syntax of packages, what they import of the subject's repository, sorted, and those that
// the release doesn't have. That it lacks one is part of the hash, as that one may be the bug's.
func hashAll(
	ctx context.Context,
	from Sources,
	version string,
	packages []string,
) (sum string, imported, lacks []string, err error) {
	h := sha256.New()
	for _, pkg := range packages {
		dir, own, err := from(ctx, version, pkg)
		if err != nil {
			return "", nil, nil, err
		}
		if !own {
			lacks = append(lacks, pkg)
			continue
		}
		fmt.Fprintf(h, "package %s\n", pkg)
		more, err := hashPackage(h, dir)
		switch {
		case errors.Is(err, os.ErrNotExist):
			lacks = append(lacks, pkg)
		case err != nil:
			return "", nil, nil, fmt.Errorf("reading %s of %s: %w", pkg, version, err)
		}
		imported = append(imported, more...)
	}
	slices.Sort(imported)
	return hex.EncodeToString(h.Sum(nil)[:8]), slices.Compact(imported), lacks, nil
}

// hashPackage hashes what goes into a package's program on Linux: the tokens of its Go files without comments, positions
// and tests, and all other files that Go compiles. It returns what the package imports. A folder without such files is no
// package: the error is os.ErrNotExist.
func hashPackage(h hash.Hash, dir string) (imported []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	linux := build.Default
	linux.GOOS, linux.GOARCH, linux.CgoEnabled = "linux", runtime.GOARCH, false
	files := 0
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() || strings.HasSuffix(name, "_test.go") {
			continue
		}
		if in, err := linux.MatchFile(dir, name); err != nil || !in {
			if err != nil {
				return nil, err
			}
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		files++
		fmt.Fprintf(h, "file %s\n", name)
		if !strings.HasSuffix(name, ".go") {
			_, _ = h.Write(text)
			continue
		}
		if err := hashTokens(h, name, text); err != nil {
			return nil, err
		}
		paths, err := importsOf(name, text)
		if err != nil {
			return nil, err
		}
		imported = append(imported, paths...)
	}
	if files == 0 {
		return nil, fmt.Errorf("%s: %w: no Go files", dir, os.ErrNotExist)
	}
	return imported, nil
}

// hashTokens hashes a file's tokens. Of comments, only those that the compiler reads count. What a closing bracket on a line
// of its own needs before it, a comma or the end of a statement, does not.
func hashTokens(w io.Writer, name string, text []byte) error {
	file := token.NewFileSet().AddFile(name, -1, len(text))
	var errs scanner.ErrorList
	var s scanner.Scanner
	s.Init(file, text, errs.Add, scanner.ScanComments)
	held := token.ILLEGAL // a comma or semicolon that isn't hashed yet
	for {
		_, tok, literal := s.Scan()
		switch tok {
		case token.EOF:
			return errs.Err()
		case token.COMMENT:
			if !strings.HasPrefix(literal, "//go:") {
				continue
			}
		case token.COMMA, token.SEMICOLON:
			held = tok
			continue
		case token.RBRACE, token.RPAREN:
			held = token.ILLEGAL
		}
		if held != token.ILLEGAL {
			fmt.Fprintf(w, "%s\n", held)
			held = token.ILLEGAL
		}
		fmt.Fprintf(w, "%s %q\n", tok, literal)
	}
}

func importsOf(name string, text []byte) (out []string, err error) {
	tree, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	for _, i := range tree.Imports {
		path, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			return nil, err
		}
		out = append(out, path)
	}
	return out, nil
}
