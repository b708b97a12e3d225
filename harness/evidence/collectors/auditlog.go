package collectors

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/capture"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// auditBytes is the most bytes that are read from the log at a time.
const auditBytes = 8 << 20

func init() {
	kinds.Register(kinds.Collector, kinds.Kind[capture.Collector]{
		Name: "auditLog",
		Doc: "The API server's audit log: of each event the time, the request, its object, its user, the code of the " +
			"answer, and the number of annotations.\n\n" +
			"The collector reads the log's file where the API server runs. Events may be large, so the events " +
			"themselves are not kept. A line that is no event is recorded with an error. The file is one of the " +
			"component's own files (`files`), and must not be rotated while it is read. If the file shrinks or " +
			"another file replaces it, the time from then on is a gap. A file that isn't there yet has no events.",
		Example: "name: audit\nkind: auditLog\nspec:\n  file: audit.log\n  interval: 2s\n",
		New: func() capture.Collector {
			return &AuditLog{
				File:     "audit.log",
				Interval: metav1.Duration{Duration: 2 * time.Second},
			}
		},
	})
}

// AuditLog collects what an API server audited.
type AuditLog struct {
	File     string          `json:"file,omitempty" jsonschema:"name of the file, without a folder, among the component's own files"`
	Interval metav1.Duration `json:"interval,omitzero" jsonschema:"time between two reads of the file; above 0"`
}

// Validate refuses a File that is a path, and an Interval of 0 or less.
func (c *AuditLog) Validate() error {
	var errs []error
	if c.File == "" || c.File != path.Base(c.File) {
		errs = append(errs, fmt.Errorf("file is %q (want the name of a file: audit.log)", c.File))
	}
	errs = append(errs, ValidateInterval(c.Interval))
	return errors.Join(errs...)
}

// OnlyOf names the one component that audits.
func (*AuditLog) OnlyOf() string { return "kube-apiserver" }

// Makes returns the kind of artifact that the collector records: audit events.
func (*AuditLog) Makes() []bundle.Kind { return []bundle.Kind{bundle.Audit} }

// auditScript prints the size and the inode of a file, both 0 if there is no file, and then its bytes from an offset
// on.
const auditScript = `if [ -e "$1" ]; then stat -L -c '%s %i' "$1"; tail -c +"$2" "$1" | head -c "$3"; else echo 0 0; fi`

// Stream reads the audit log until ctx ends.
func (c *AuditLog) Stream(ctx context.Context, t capture.Target, w *bundle.Writer) error {
	run, err := reader(t.Node)
	if err = errors.Join(c.Validate(), err); err != nil {
		w.Fail(t.Meta(bundle.Audit), err)
		return err
	}
	st, err := w.Stream(t.Meta(bundle.Audit), "jsonl")
	if err != nil {
		return err
	}
	file := path.Join(t.Node.Folder(t.Component.Name()), c.File)
	var offset int64 // of the first byte that was not read yet
	var rest []byte  // the beginning of a line whose end wasn't there yet
	var number int64 // the file's inode: another file in its place would begin anew
	followKept(ctx, c.Interval.Duration, st, func(ctx context.Context) error {
		for {
			out, err := run(ctx, "sh", "-c", auditScript, "sh", file, fmt.Sprint(offset+1), fmt.Sprint(auditBytes))
			if err != nil {
				return err
			}
			head, data, _ := bytes.Cut(out, []byte("\n"))
			var size, is int64
			if _, err := fmt.Sscan(string(head), &size, &is); err != nil || size < offset {
				return fmt.Errorf("%s has %q bytes, and %d were read of it", c.File, head, offset)
			}
			if number = cmp.Or(number, is); is != number {
				return fmt.Errorf(
					"%s is another file since %d bytes were read of it",
					c.File,
					offset,
				)
			}
			offset += int64(len(data))
			rest = append(rest, data...)
			for {
				line, after, whole := bytes.Cut(rest, []byte("\n"))
				if !whole {
					break
				}
				if err := st.JSON(auditEvent(line)); err != nil {
					return err
				}
				rest = after
			}
			rest = bytes.Clone(rest)
			if offset >= size || len(data) == 0 {
				return nil
			}
		}
	})
	return st.Close()
}

// auditEvent returns the parts of a line that are recorded.
func auditEvent(line []byte) bundle.AuditEvent {
	var e struct {
		Kind, AuditID, Stage, Verb, RequestURI string
		StageTimestamp                         metav1.MicroTime
		ResponseStatus                         struct{ Code int }
		User                                   struct{ Username string }
		ObjectRef                              struct{ Resource, APIGroup, Subresource, Namespace, Name string }
		Annotations                            map[string]string
	}
	err := json.Unmarshal(line, &e)
	if err == nil && (e.Kind != "Event" || e.AuditID == "" || e.StageTimestamp.IsZero()) {
		err = errors.New("it is no audit event")
	}
	if err != nil {
		return bundle.AuditEvent{Time: time.Now().UTC(), Bytes: len(line),
			Error: fmt.Sprintf("%v: %.100q", err, line)}
	}
	of := e.ObjectRef
	return bundle.AuditEvent{
		Time:  e.StageTimestamp.UTC(),
		ID:    e.AuditID,
		Stage: e.Stage,
		Verb:  e.Verb,
		Path:  e.RequestURI,
		User:  e.User.Username,
		Resource: strings.TrimSuffix(
			of.Resource+"."+of.APIGroup,
			".",
		),
		Subresource: of.Subresource,
		Namespace:   of.Namespace,
		Name:        of.Name,
		Code:        e.ResponseStatus.Code,
		Annotations: len(e.Annotations),
		Bytes:       len(line),
	}
}
