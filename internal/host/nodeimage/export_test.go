package nodeimage

import "context"

// AptSources and the keys are tested by themselves: what they feed needs root
// and an engine.
var (
	AptSources      = aptSources
	BaseKey         = baseKey
	NodeKey         = nodeKey
	ImportScriptFor = importScriptFor
	ImageNames      = imageNames
	WriteImages     = writeImages
)

// Pin makes ref the official image of minor.
func (s *Store) Pin(minor, ref string) { s.official = map[string]pin{minor: {ref, "a test"}} }

// Mirror looks for suite in the apt configuration below dirs.
func (s *Store) Mirror(ctx context.Context, suite string, dirs ...string) (string, error) {
	s.aptDirs = dirs
	return s.mirror(ctx, suite)
}

// Lock takes a key's lock as an assembly does.
func (s *Store) Lock(ctx context.Context, key string) (func(), error) { return s.lock(ctx, key) }

// Scratch makes a key's scratch folder as an assembly does.
func (s *Store) Scratch(key string) (string, error) { return s.scratch(key) }

// ID is the store's own label value.
func (s *Store) ID() string { return s.id }
