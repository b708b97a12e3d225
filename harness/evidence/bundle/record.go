package bundle

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"

	"github.com/google/renameio/v2"
	"github.com/kube-relapse/relapse/harness/event"
)

// Emit appends e to the timeline, on disk at once. It implements event.Sink. An event that couldn't be recorded makes
// Seal fail.
func (w *Writer) Emit(e event.Event) {
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	e.Time = e.Time.Round(0).UTC()
	line, kept, err := encodeEvent(e)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.sealed:
		return
	case err == nil:
		_, err = w.timeline.Write(line)
	}
	if err != nil {
		w.recordFailure(fmt.Errorf("recording event %q: %w", e.Message, err))
		return
	}
	w.events = append(w.events, kept)
}

// encodeEvent redacts e and returns it as a line and as it will be read back, so that live and sealed views agree.
func encodeEvent(e event.Event) ([]byte, event.Event, error) {
	b, err := json.Marshal(e)
	if err != nil {
		return nil, e, err
	}
	b = redactJSON(b)
	var kept event.Event
	if err := json.Unmarshal(b, &kept); err != nil {
		return nil, e, err
	}
	return append(b, '\n'), kept, nil
}

// SetWorld records what was resolved so far; it may be called again as more is known.
func (w *Writer) SetWorld(world World) error {
	world.Format = Format
	b, err := json.MarshalIndent(world, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding %s: %w", WorldFile, err)
	}
	b = append(redactJSON(b), '\n')
	var kept World
	if err := json.Unmarshal(b, &kept); err != nil {
		return fmt.Errorf("encoding %s: %w", WorldFile, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.putLocked(WorldFile, b); err != nil {
		return err
	}
	w.world = kept
	return nil
}

// PutPlan records the plan that the trial follows: a plan.Plan as JSON with this one trial in it.
func (w *Writer) PutPlan(plan []byte) error {
	if !json.Valid(plan) {
		return fmt.Errorf("writing %s: it is not JSON", PlanFile)
	}
	b := redactJSON(plan)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.putLocked(PlanFile, b); err != nil {
		return err
	}
	w.plan = b
	return nil
}

// putLocked replaces one of the bundle's own files atomically.
func (w *Writer) putLocked(name string, b []byte) error {
	if w.sealed {
		return fmt.Errorf("writing %s: %w", name, ErrSealed)
	}
	if err := renameio.WriteFile(filepath.Join(w.dir, name), b, 0o644); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}
