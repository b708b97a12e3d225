package bundle

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"

	"github.com/google/renameio/v2"

	"github.com/kube-relapse/relapse/harness/event"
)

// Emit appends e to the timeline and writes it to disk at once. It implements event.Sink. If an event can't be
// recorded, Seal fails.
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

// encodeEvent redacts e. It returns the line to write, and the event that this line is read back as, so that live and
// sealed views agree.
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

// SetWorld records the facts that were resolved so far. It may be called again when more is known.
func (w *Writer) SetWorld(world World) error {
	world.Format = format
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
	return w.putLocked(PlanFile, b)
}

// putLocked replaces one of the bundle's own files atomically. The caller holds mu.
func (w *Writer) putLocked(name string, b []byte) error {
	if w.sealed {
		return fmt.Errorf("writing %s: %w", name, ErrSealed)
	}
	if err := renameio.WriteFile(filepath.Join(w.dir, name), b, 0o644); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}
