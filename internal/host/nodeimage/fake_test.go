package nodeimage_test

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
)

// fakeEngine keeps images and containers in memory and understands the client
// commands that a store gives.
type fakeEngine struct {
	mu         sync.Mutex
	images     map[string]fakeImage // by reference
	registry   map[string]fakeImage // what a pull finds
	containers []fakeContainer
	pull       func(ctx context.Context, out io.Writer, ref string) error // instead of the registry
	commands   []string
}

type fakeImage struct {
	ID, Version string // Version "": no /kind/version in it
	Labels      map[string]string
}

type fakeContainer struct {
	id, name, image string
	labels          map[string]string
}

func newFake() *fakeEngine {
	return &fakeEngine{images: map[string]fakeImage{}, registry: map[string]fakeImage{}}
}

func (f *fakeEngine) Output(ctx context.Context, args ...string) ([]byte, error) {
	var out bytes.Buffer
	err := f.Stream(ctx, nil, &out, args...)
	return out.Bytes(), err
}

func (f *fakeEngine) Stream(ctx context.Context, in io.Reader, out io.Writer, args ...string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if out == nil {
		out = io.Discard
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.commands = append(f.commands, strings.Join(args, " "))
	last := args[len(args)-1]
	switch {
	case args[0] == "pull" && f.pull != nil:
		return f.pull(ctx, out, last)
	case args[0] == "pull":
		img, ok := f.registry[last]
		if !ok {
			return fmt.Errorf("manifest for %s is unknown", last)
		}
		f.images[last] = img
		return nil
	case args[0] == "save":
		return json.NewEncoder(out).Encode(map[string]fakeImage{last: f.images[last]})
	case args[0] == "load":
		return f.load(in, out)
	case args[0] == "tag":
		for _, img := range f.images {
			if img.ID == args[1] {
				f.images[last] = img
				return nil
			}
		}
		return fmt.Errorf("Error: No such image: %s", args[1])
	case args[0] == "create":
		return f.create(out, args[1:])
	case args[0] == "cp":
		return f.copyOut(out, args[1])
	case args[0] == "rm":
		f.containers = slices.DeleteFunc(f.containers, func(c fakeContainer) bool { return c.id == last || c.name == last })
		return nil
	case args[0] == "ps":
		return f.ps(out, args)
	case args[0] == "image":
		return f.image(out, args[1:])
	}
	return fmt.Errorf("the fake engine doesn't know %q", args)
}

// load reads what save wrote. As the engine does, it forgets a digest that an image was pulled by.
func (f *fakeEngine) load(in io.Reader, out io.Writer) error {
	var saved map[string]fakeImage
	if err := json.NewDecoder(in).Decode(&saved); err != nil {
		return err
	}
	for ref, img := range saved {
		if _, _, pinned := strings.Cut(ref, "@"); pinned {
			f.images[img.ID] = img
			_, err := fmt.Fprintln(out, "Loaded image ID: "+img.ID)
			return err
		}
		f.images[ref] = img
		_, err := fmt.Fprintln(out, "Loaded image: "+ref)
		return err
	}
	return errors.New("nothing was saved")
}

func (f *fakeEngine) create(out io.Writer, args []string) error {
	c := fakeContainer{labels: map[string]string{}}
	for len(args) > 0 && strings.HasPrefix(args[0], "--") {
		switch args[0] {
		case "--name":
			c.name = args[1]
		case "--label":
			k, v, _ := strings.Cut(args[1], "=")
			c.labels[k] = v
		}
		args = args[2:]
	}
	c.image = args[0]
	c.id = fmt.Sprintf("container%d", len(f.containers))
	f.containers = append(f.containers, c)
	_, err := fmt.Fprintln(out, c.id)
	return err
}

func (f *fakeEngine) copyOut(out io.Writer, from string) error {
	id, path, _ := strings.Cut(from, ":")
	for _, c := range f.containers {
		if version := f.images[c.image].Version; c.id == id && path == "/kind/version" && version != "" {
			t := tar.NewWriter(out)
			err := t.WriteHeader(&tar.Header{Name: "version", Size: int64(len(version)), Mode: 0o644})
			_, werr := t.Write([]byte(version))
			return errors.Join(err, werr, t.Close())
		}
	}
	return fmt.Errorf("could not find the file %s in container %s", path, id)
}

func (f *fakeEngine) ps(out io.Writer, args []string) error {
	var filters []string
	for i, a := range args {
		if a == "--filter" {
			filters = append(filters, strings.TrimPrefix(args[i+1], "label="))
		}
	}
	for _, c := range f.containers {
		matches := true
		for _, filter := range filters {
			k, v, withValue := strings.Cut(filter, "=")
			got, has := c.labels[k]
			matches = matches && has && (!withValue || got == v)
		}
		if matches {
			row, err := json.Marshal(map[string]string{"name": c.name, "key": c.labels["dev.relapse.build"]})
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "%s\n", row)
		}
	}
	return nil
}

func (f *fakeEngine) image(out io.Writer, args []string) error {
	last := args[len(args)-1]
	switch {
	case args[0] == "inspect" && args[1] == "--format":
		img, ok := f.images[last]
		if !ok {
			return fmt.Errorf("Error: No such image: %s", last)
		}
		_, err := fmt.Fprintln(out, img.ID)
		return err
	case args[0] == "inspect":
		var all []map[string]any
		for ref, img := range f.images {
			if slices.Contains(args[1:], img.ID) {
				all = append(all, map[string]any{"Id": img.ID, "RepoTags": []string{ref}, "Size": 7,
					"Config": map[string]any{"Labels": img.Labels}})
			}
		}
		return json.NewEncoder(out).Encode(all)
	case args[0] == "ls" && slices.Contains(args, "--quiet"):
		for _, img := range f.images {
			if img.Labels["dev.relapse.cache"] == "node-image" {
				fmt.Fprintln(out, img.ID)
			}
		}
		return nil
	case args[0] == "ls":
		return nil // no image is in the making
	case args[0] == "rm":
		if _, ok := f.images[last]; !ok {
			return fmt.Errorf("Error: No such image: %s", last)
		}
		delete(f.images, last)
		return nil
	}
	return fmt.Errorf("the fake engine doesn't know image %q", args)
}
