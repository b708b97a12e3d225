package webhook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// Conversion is the protocol of the conversion webhooks of custom resources: ConversionReview, version v1. What no rule
// says is converted as an API server does it without a webhook: apiVersion becomes the desired one.
type Conversion struct {
	Resource string // in the record: the plural name with the group
	Shows    string // the value of ShowsLabel of an object whose conversion only shows that the webhook is asked
}

// ShowsLabel is the label of an object whose conversion only shows that a webhook is asked. Its value is the fault's name.
const ShowsLabel = "relapse.dev/shows"

// The words of a conversion's answers, and of what is merged into an object.
var (
	conversionWords = []string{"arm", "n", "uid", "version"}
	mergeWords      = append([]string{"namespace", "name"}, conversionWords...)
)

// converted is what is read of an object that is to be converted.
type converted struct {
	Metadata struct {
		Namespace string            `json:"namespace"`
		Name      string            `json:"name"`
		Labels    map[string]string `json:"labels"`
	} `json:"metadata"`
}

func (c Conversion) read(body []byte) (question, error) {
	version, request, err := readReview("ConversionReview", body)
	if err != nil {
		return question{}, err
	}
	var of struct {
		UID     string            `json:"uid"`
		Desired string            `json:"desiredAPIVersion"`
		Objects []json.RawMessage `json:"objects"`
	}
	if err := json.Unmarshal(request, &of); err != nil || of.Desired == "" {
		return question{}, errors.New("it is no ConversionReview with a request that has a desiredAPIVersion")
	}
	q := question{request: request, words: map[string]any{"uid": of.UID, "version": of.Desired}, told: toldConversion,
		review: bundle.Review{UID: of.UID, Operation: bundle.ReviewConvert, Resource: c.Resource, Version: of.Desired,
			Objects: len(of.Objects)}}
	if len(of.Objects) == 1 {
		var one converted
		if err := json.Unmarshal(of.Objects[0], &one); err != nil {
			return question{}, fmt.Errorf("its object: %w", err)
		}
		q.review.Object = one.Metadata.Namespace + "/" + one.Metadata.Name
		q.shows = one.Metadata.Labels[ShowsLabel] == c.Shows
	}
	q.answer = func(r *compiled, response json.RawMessage, words map[string]any) ([]byte, error) {
		full, err := object(response, of.UID)
		if err != nil {
			return nil, err
		}
		if _, ok := full["result"]; !ok {
			full["result"] = json.RawMessage(`{"status":"Success"}`)
		}
		if _, ok := full["convertedObjects"]; !ok && succeeds(full["result"]) {
			if full["convertedObjects"], err = convert(of.Objects, of.Desired, r.Merge, words); err != nil {
				return nil, err
			}
		}
		return json.Marshal(map[string]any{"apiVersion": version, "kind": "ConversionReview", "response": full})
	}
	return q, nil
}

// convert returns objects with the desired apiVersion, and with a merge patch applied to each; nil for none.
func convert(objects []json.RawMessage, desired string, patch json.RawMessage, words map[string]any) (json.RawMessage, error) {
	out := make([]json.RawMessage, len(objects))
	for i, raw := range objects {
		var members map[string]json.RawMessage
		var of converted
		if err := errors.Join(json.Unmarshal(raw, &members), json.Unmarshal(raw, &of)); err != nil || members == nil {
			return nil, fmt.Errorf("objects[%d] is no object: %w", i, err)
		}
		members["apiVersion"], _ = json.Marshal(desired)
		one, err := json.Marshal(members)
		if err == nil && patch != nil {
			all := maps.Clone(words)
			all["namespace"], all["name"] = of.Metadata.Namespace, of.Metadata.Name
			var with json.RawMessage
			if with, err = kinds.Expand(patch, all); err == nil {
				one, err = jsonpatch.MergePatch(one, with)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("objects[%d]: %w", i, err)
		}
		out[i] = one
	}
	return json.Marshal(out)
}

func succeeds(result json.RawMessage) bool {
	var of metav1.Status
	return json.Unmarshal(result, &of) == nil && of.Status == metav1.StatusSuccess
}

// valid refuses an answer that is no ConversionResponse, and what is an admission's.
func (Conversion) valid(r Rule) error {
	var errs []error
	if r.AuditAnnotations != 0 {
		errs = append(errs, errors.New("auditAnnotations have no meaning in a conversion"))
	}
	note := func(field string, err error) {
		if err != nil {
			errs = append(errs, &kinds.FieldError{Field: field, Err: err})
		}
	}
	if r.Answer != nil {
		note("answer", validConversion(r.Answer))
	}
	if r.Merge != nil {
		_, err := object(r.Merge, "")
		note("merge", errors.Join(err, refers(r.Merge, mergeWords...)))
	}
	return errors.Join(errs...)
}

func validConversion(raw json.RawMessage) error {
	if _, err := object(raw, ""); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&struct {
		UID              string            `json:"uid"`
		ConvertedObjects []json.RawMessage `json:"convertedObjects"`
		Result           metav1.Status     `json:"result"`
	}{}); err != nil {
		return err
	}
	return refers(raw, conversionWords...)
}

func toldConversion(body []byte, into *bundle.Review) {
	var of struct {
		Response struct {
			Result json.RawMessage `json:"result"`
		} `json:"response"`
	}
	into.Allowed = json.Unmarshal(body, &of) == nil && succeeds(of.Response.Result)
}
