package nodeimage

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// mirrorTime is how long one mirror may take to show its release file: hosts
// list repositories that don't answer.
const mirrorTime = 10 * time.Second

// mirror returns the first archive that has suite among those that the host's own apt configuration names. Each is
// asked, in order, for the suite's release file.
func (s *Store) mirror(ctx context.Context, suite string) (string, error) {
	candidates, err := aptSources(s.aptDirs)
	if err != nil {
		return "", err
	}
	if len(candidates) == 0 {
		return "", fmt.Errorf(
			"finding a Debian mirror: no http(s) source in %s: add a Debian one, or give a node "+
				"image by reference",
			strings.Join(s.aptDirs, ", "),
		)
	}
	var tried []error
	for _, uri := range candidates {
		err := hasSuite(ctx, uri, suite)
		if err == nil {
			return uri, nil
		}
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		tried = append(tried, err)
	}
	return "", fmt.Errorf("finding a Debian mirror: no source in %s has suite %s: add a Debian one, or give a node "+
		"image by reference: %w",
		strings.Join(s.aptDirs, ", "), suite, errors.Join(tried...))
}

// hasSuite returns nil if an archive has the suite. It checks that the InRelease file is about that suite, because some
// mirrors answer anything with a page.
func hasSuite(ctx context.Context, uri, suite string) error {
	ctx, cancel := context.WithTimeout(ctx, mirrorTime)
	defer cancel()
	url := strings.TrimSuffix(uri, "/") + "/dists/" + suite + "/InRelease"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("asking %s: %w", url, err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("asking for a release file: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("asking %s: %s", url, resp.Status)
	}
	head, err := io.ReadAll(io.LimitReader(resp.Body, 4096))
	if err != nil {
		return fmt.Errorf("reading %s: %w", url, err)
	}
	for line := range strings.Lines(string(head)) {
		if key, value, ok := strings.Cut(line, ":"); ok && (key == "Codename" || key == "Suite") &&
			strings.TrimSpace(value) == suite {
			return nil
		}
	}
	return fmt.Errorf("reading %s: it isn't a release file of %s", url, suite)
}

// aptSources lists the archive URIs in the order of apt's own files: each
// folder's sources.list, then sources.list.d by name, both the one-line and the
// deb822 form. Only http and https ones count, each once.
func aptSources(dirs []string) ([]string, error) {
	var uris []string
	for _, dir := range dirs {
		files := []string{filepath.Join(dir, "sources.list")}
		for _, pattern := range []string{"*.list", "*.sources"} {
			found, err := filepath.Glob(filepath.Join(dir, "sources.list.d", pattern))
			if err != nil {
				return nil, fmt.Errorf("listing apt sources of %s: %w", dir, err)
			}
			files = append(files, found...)
		}
		slices.Sort(files[1:])
		for _, file := range files {
			data, err := os.ReadFile(file)
			if errors.Is(err, os.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("reading apt sources: %w", err)
			}
			parse := parseOneLine
			if strings.HasSuffix(file, ".sources") {
				parse = parseDeb822
			}
			for _, uri := range parse(string(data)) {
				uri = strings.TrimSuffix(uri, "/")
				if web := strings.HasPrefix(uri, "http://") || strings.HasPrefix(uri, "https://"); web &&
					!slices.Contains(uris, uri) {
					uris = append(uris, uri)
				}
			}
		}
	}
	return uris, nil
}

// parseOneLine returns the URIs of `deb [options] uri suite component...` lines.
func parseOneLine(text string) (uris []string) {
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), "deb")
		if !ok || rest == "" || (rest[0] != ' ' && rest[0] != '\t') { // deb-src is left out too
			continue
		}
		rest = strings.TrimSpace(rest)
		if strings.HasPrefix(rest, "[") {
			_, after, closed := strings.Cut(rest, "]")
			if !closed {
				continue
			}
			rest = after
		}
		if fields := strings.Fields(rest); len(fields) >= 2 {
			uris = append(uris, fields[0])
		}
	}
	return uris
}

// parseDeb822 returns the URIs of stanzas of `Key: value` with continuation lines, as in sources.list(5). It leaves out
// disabled stanzas and those without binaries.
func parseDeb822(text string) (uris []string) {
	stanza, key := map[string]string{}, ""
	flush := func() {
		on := !strings.EqualFold(strings.TrimSpace(stanza["enabled"]), "no")
		if on && slices.Contains(strings.Fields(stanza["types"]), "deb") {
			uris = append(uris, strings.Fields(stanza["uris"])...)
		}
		stanza, key = map[string]string{}, ""
	}
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		line := lines.Text()
		switch {
		case strings.HasPrefix(line, "#"):
		case strings.TrimSpace(line) == "":
			flush()
		case line[0] == ' ' || line[0] == '\t':
			stanza[key] += " " + strings.TrimSpace(line)
		default:
			name, value, _ := strings.Cut(line, ":")
			key = strings.ToLower(strings.TrimSpace(name))
			stanza[key] = strings.TrimSpace(value)
		}
	}
	flush()
	return uris
}
