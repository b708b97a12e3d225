package webhook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	reviewv1 "k8s.io/api/admission/v1"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// Admission is the protocol of admission webhooks: AdmissionReview, version v1. What no rule says is allowed.
type Admission struct{ Mutating bool }

// admissionWords are the words of an admission's answers.
var admissionWords = []string{"arm", "n", "uid", "namespace", "name", "operation", "user"}

func (a Admission) read(body []byte) (question, error) {
	version, request, err := readReview("AdmissionReview", body)
	if err != nil {
		return question{}, err
	}
	var of struct {
		UID       string `json:"uid"`
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
		Operation string `json:"operation"`
		Resource  struct {
			Group    string `json:"group"`
			Resource string `json:"resource"`
		} `json:"resource"`
		UserInfo struct {
			Username string `json:"username"`
		} `json:"userInfo"`
	}
	if err := json.Unmarshal(request, &of); err != nil {
		return question{}, fmt.Errorf("it is no AdmissionReview: %w", err)
	}
	q := question{
		shows:   true,
		request: request,
		words: map[string]any{"uid": of.UID, "namespace": of.Namespace, "name": of.Name,
			"operation": of.Operation, "user": of.UserInfo.Username},
		review: bundle.Review{
			Mutating:  a.Mutating,
			UID:       of.UID,
			Operation: of.Operation,
			Object:    of.Namespace + "/" + of.Name,
			Resource:  of.Resource.Resource,
		},
		told: toldAdmission,
	}
	if of.Resource.Group != "" {
		q.review.Resource += "." + of.Resource.Group
	}
	q.answer = func(r *compiled, response json.RawMessage, _ map[string]any) ([]byte, error) {
		full, err := admissionResponse(response, of.UID, r.annotations)
		if err != nil {
			return nil, err
		}
		return json.Marshal(map[string]any{"apiVersion": version, "kind": "AdmissionReview", "response": full})
	}
	return q, nil
}

// readReview reads a review with a request that has a uid.
func readReview(kind string, body []byte) (version string, request json.RawMessage, err error) {
	var whole struct {
		APIVersion string          `json:"apiVersion"`
		Request    json.RawMessage `json:"request"`
	}
	if err := json.Unmarshal(body, &whole); err != nil {
		return "", nil, fmt.Errorf("it is no %s: %w", kind, err)
	}
	var of struct {
		UID string `json:"uid"`
	}
	if err := json.Unmarshal(whole.Request, &of); err != nil || of.UID == "" {
		return "", nil, fmt.Errorf("it is no %s with a request that has a uid", kind)
	}
	return whole.APIVersion, whole.Request, nil
}

// admissionResponse completes a response: it has the review's uid and a patch in the form in which an API server wants
// it, and more audit annotations, which are members of a JSON object. A nil one allows the request.
func admissionResponse(raw json.RawMessage, uid, annotations string) (json.RawMessage, error) {
	if raw == nil {
		raw = json.RawMessage(`{"allowed":true}`)
	}
	r, err := object(raw, uid)
	if err != nil {
		return nil, err
	}
	if patch := bytes.TrimSpace(r["patch"]); len(patch) > 0 && patch[0] == '[' {
		r["patch"], _ = json.Marshal([]byte(patch)) // in base64
		if _, ok := r["patchType"]; !ok {
			r["patchType"], _ = json.Marshal(reviewv1.PatchTypeJSONPatch)
		}
	}
	if annotations != "" {
		if r["auditAnnotations"], err = annotated(r["auditAnnotations"], annotations); err != nil {
			return nil, err
		}
	}
	return json.Marshal(r)
}

// annotated adds members to those of a JSON object, which may be nil.
func annotated(to json.RawMessage, more string) (json.RawMessage, error) {
	if to == nil {
		to = json.RawMessage("{}")
	}
	inner, closed := strings.CutSuffix(string(bytes.TrimSpace(to)), "}")
	inner, opened := strings.CutPrefix(inner, "{")
	if !closed || !opened {
		return nil, fmt.Errorf("auditAnnotations is %s (want a map)", to)
	}
	if inner = strings.TrimSpace(inner); inner != "" {
		inner += ","
	}
	return json.RawMessage("{" + inner + more + "}"), nil
}

// annotations returns n members of a JSON object.
func annotations(n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"k%05d":"v"`, i)
	}
	return b.String()
}

// valid refuses an answer that is no AdmissionResponse. What an API server makes of its values is not our concern.
func (Admission) valid(r Rule) error {
	var errs []error
	if r.AuditAnnotations < 0 || r.AuditAnnotations > maxAnnotations {
		errs = append(
			errs,
			fmt.Errorf(
				"auditAnnotations is %d (want 0 to %d)",
				r.AuditAnnotations,
				maxAnnotations,
			),
		)
	}
	if r.AuditAnnotations > 0 && (r.Code != 0 || r.Never || r.Close) {
		errs = append(
			errs,
			errors.New(
				"auditAnnotations have no meaning without a response (want them with answer, compute, "+
					"delay or alone)",
			),
		)
	}
	if r.Merge != nil {
		errs = append(
			errs,
			errors.New("merge has no meaning in an admission (want answer with a patch)"),
		)
	}
	if r.Answer != nil {
		if err := validAdmission(r.Answer); err != nil {
			errs = append(errs, &kinds.FieldError{Field: "answer", Err: err})
		}
	}
	return errors.Join(errs...)
}

// maxAnnotations keeps an answer below what an API server reads of it, 3 MiB.
const maxAnnotations = 50_000

func validAdmission(raw json.RawMessage) error {
	full, err := admissionResponse(raw, "", "")
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(full))
	d.DisallowUnknownFields()
	if err := d.Decode(&reviewv1.AdmissionResponse{}); err != nil {
		return err
	}
	var has map[string]any
	if err := json.Unmarshal(full, &has); err != nil {
		return err
	}
	if _, ok := has["allowed"]; !ok {
		return errors.New("it has no allowed (want allowed: true or false)")
	}
	return refers(raw, admissionWords...)
}

func toldAdmission(body []byte, into *bundle.Review) {
	var of struct {
		Response struct {
			Allowed          any                        `json:"allowed"`
			AuditAnnotations map[string]json.RawMessage `json:"auditAnnotations"`
		} `json:"response"`
	}
	if json.Unmarshal(body, &of) != nil {
		return
	}
	into.Allowed, _ = of.Response.Allowed.(bool)
	into.Annotations = len(of.Response.AuditAnnotations)
}
