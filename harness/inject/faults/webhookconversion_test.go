package faults_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/internal/clustertest"
)

const conversionSpec = `{"conversion":{"crd":"widgets.example.com","object":{"apiVersion":"example.com/v2","kind":"Widget","spec":{"size":1}}},
	"rules":[{"when":"request.objects[0].metadata.name == 'refused'","answer":{"result":{"status":"Failure","message":"no"}}},{"merge":{"spec":{"by":"$(arm)"}}}]}`

// definitionAPI serves one CustomResourceDefinition, and converts its objects as the definition says: those of v1 are
// stored, and those of v2 are converted.
type definitionAPI struct {
	t  *testing.T
	mu sync.Mutex
	is []byte // the definition; nil if there is none
}

func (d *definitionAPI) get() []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.is
}

func (d *definitionAPI) serve(w http.ResponseWriter, r *http.Request) bool {
	switch {
	case r.URL.Path == "/apis/apiextensions.k8s.io/v1":
		_ = json.NewEncoder(w).Encode(metav1.APIResourceList{APIResources: []metav1.APIResource{{Name: "customresourcedefinitions", Kind: "CustomResourceDefinition"}}})
	case r.URL.Path == "/apis/example.com/v2":
		_ = json.NewEncoder(w).Encode(metav1.APIResourceList{APIResources: []metav1.APIResource{{Name: "widgets", Kind: "Widget", Namespaced: true}}})
	case r.URL.Path == "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com":
		d.definition(w, r)
	case r.Method == http.MethodPost && r.URL.Path == "/apis/example.com/v2/namespaces/relapse-item/widgets" && r.URL.Query().Get("dryRun") == "All":
		body, _ := io.ReadAll(r.Body)
		if said, err := d.convert(body); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		} else {
			_, _ = w.Write([]byte(said))
		}
	default:
		return false
	}
	return true
}

func (d *definitionAPI) definition(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.is == nil {
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound, Message: "not found"})
		return
	}
	if body, _ := io.ReadAll(r.Body); r.Method == http.MethodPatch {
		var err error
		if r.Header.Get("Content-Type") == "application/json-patch+json" {
			var p jsonpatch.Patch
			if p, err = jsonpatch.DecodePatch(body); err == nil {
				d.is, err = p.Apply(d.is)
			}
		} else {
			d.is, err = jsonpatch.MergePatch(d.is, body)
		}
		if err != nil {
			d.t.Error(err)
		}
	}
	_, _ = w.Write(d.is)
}

// convert converts an object as the definition says, and returns the response of the webhook if there is one.
func (d *definitionAPI) convert(one []byte) (string, error) {
	var of struct {
		Spec struct {
			Conversion struct {
				Strategy string
				Webhook  struct {
					ClientConfig struct {
						URL      string
						CABundle []byte
					}
				}
			}
		}
	}
	if err := json.Unmarshal(d.get(), &of); err != nil {
		return "", err
	}
	if of.Spec.Conversion.Strategy != "Webhook" {
		return string(one), nil
	}
	to := of.Spec.Conversion.Webhook.ClientConfig
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(to.CABundle)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}, DisableKeepAlives: true}}
	review := fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"u","desiredAPIVersion":"example.com/v1","objects":[%s]}}`, one)
	resp, err := client.Post(to.URL, "application/json", strings.NewReader(review))
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	var said struct{ Response json.RawMessage }
	if err == nil {
		err = json.Unmarshal(raw, &said)
	}
	return string(said.Response), err
}

const definition = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.example.com"},"spec":{` +
	`"conversion":%s,"versions":[{"name":"v1","served":true,"storage":true},{"name":"v2","served":true,"storage":false}]}}`

func conversionWorld(t *testing.T, conversion string) (fault.Target, *definitionAPI) {
	t.Helper()
	target, _ := objectsWorld(t)
	api := &definitionAPI{t: t}
	if conversion != "" {
		api.is = fmt.Appendf(nil, definition, conversion)
	}
	target.Cluster.(*clustertest.Cluster).API().Intercept(api.serve)
	return target, api
}

// The API server asks the webhook from Inject to Recover, from whatever process that is, and then converts as before. What
// somebody else changed meanwhile stays.
func TestConversionWebhookTakesTheDefinitionsPlace(t *testing.T) {
	for name, was := range map[string]string{
		"none":    `{"strategy":"None"}`,
		"another": `{"strategy":"Webhook","webhook":{"clientConfig":{"service":{"name":"s","namespace":"n"}},"conversionReviewVersions":["v1"]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			target, api := conversionWorld(t, was)
			w, err := bundle.Create(filepath.Join(t.TempDir(), "001"))
			if err != nil {
				t.Fatal(err)
			}
			target.Writer = w
			f := newFault(t, "webhook", conversionSpec)
			for range 2 { // a run that goes on injects again
				if err := f.Inject(t.Context(), target); err != nil {
					t.Fatal(err)
				}
			}
			for object, want := range map[string]string{"refused": `"status":"Failure"`, "a": `"spec":{"by":"fixed"}`} {
				got, err := api.convert(fmt.Appendf(nil, `{"metadata":{"name":%q}}`, object))
				if err != nil || !strings.Contains(got, want) {
					t.Errorf("%s became %s, %v, want %s", object, got, err, want)
				}
			}
			if strings.Contains(string(api.get()), `"service"`) {
				t.Errorf("the definition has another webhook's service: %s", api.get())
			}
			api.mu.Lock()
			api.is = bytes.Replace(api.is, []byte(`"metadata":{`), []byte(`"metadata":{"labels":{"a":"b"},`), 1)
			api.mu.Unlock()
			recoverer := f
			if name == "another" {
				recoverer = newFault(t, "webhook", conversionSpec) // in another process
			}
			for range 2 {
				if err := recoverer.Recover(t.Context(), target); err != nil {
					t.Fatal(err)
				}
			}
			var now struct {
				Metadata struct{ Labels map[string]string }
				Spec     struct{ Conversion json.RawMessage }
			}
			if err := json.Unmarshal(api.get(), &now); err != nil || string(now.Spec.Conversion) != was || now.Metadata.Labels["a"] != "b" {
				t.Errorf("the definition is %s, %v", api.get(), err)
			}
			if name == "another" {
				return
			}
			if err := w.Seal(); err != nil {
				t.Fatal(err)
			}
			if got, want := objectsOf(t, w.Dir()), "item CONVERT widgets.example.com /a true 2, item CONVERT widgets.example.com /refused false 1"; got != want {
				t.Errorf("the record has %s, want %s", got, want)
			}
		})
	}
}

// objectsOf returns what a bundle's record of reviews says, sorted.
func objectsOf(t *testing.T, dir string) string {
	t.Helper()
	sealed, err := bundle.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, a := range sealed.Artifacts(bundle.Query{Kind: bundle.Reviews, Arm: "fixed"}) {
		rc, err := sealed.Open(a)
		if err != nil {
			t.Fatal(err)
		}
		defer rc.Close()
		for d := json.NewDecoder(rc); d.More(); {
			var r bundle.Review
			if err := d.Decode(&r); err != nil {
				t.Fatal(err)
			}
			said = append(said, fmt.Sprintf("%s %s %s %s %v %d", r.Webhook, r.Operation, r.Resource, r.Object, r.Allowed, r.Rule))
		}
	}
	slices.Sort(said)
	return strings.Join(said, ", ")
}

// A definition that isn't there is named, and so is a version that no API server would convert. Lifting the fault then has
// nothing to do.
func TestConversionWebhookThatCannotBe(t *testing.T) {
	for conversion, want := range map[string]string{
		"":                    "item: the webhook for objects-control-plane: there is no CustomResourceDefinition widgets.example.com",
		`{"strategy":"None"}`: "item: the webhook for objects-control-plane: an object of version v1 isn't converted (want one that is served and not stored: v2)",
	} {
		target, _ := conversionWorld(t, conversion)
		f := newFault(t, "webhook", strings.Replace(conversionSpec, "example.com/v2", "example.com/v1", 1))
		if err := f.Inject(t.Context(), target); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
		if err := f.Recover(t.Context(), target); err != nil {
			t.Error(err)
		}
	}
}

func TestConversionWebhookValidate(t *testing.T) {
	for spec, want := range map[string]string{
		conversionSpec: "",
		`{"conversion":{"crd":"widgets","object":{}},"rules":[{"never":true}]}`: `conversion: crd is "widgets" (want a name such as widgets.example.com)`,
		`{"conversion":{"crd":"widgets.example.com","object":{"apiVersion":"v1","kind":"Pod"}},"resources":["pods"],"timeoutSeconds":3,"rules":[{"auditAnnotations":1}]}`: strings.Join([]string{
			"resources has no meaning with conversion (want one of them)",
			"timeoutSeconds has no meaning with conversion (want one of them)",
			`conversion: object is of the apiVersion "v1" and kind "Pod" (want a version of example.com, and a kind)`,
			"rules[0]: auditAnnotations have no meaning in a conversion",
		}, "\n"),
	} {
		f, got := newFault(t, "webhook", spec), ""
		if err := f.(interface{ Validate() error }).Validate(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", spec, got, want)
		}
	}
	f := newFault(t, "webhook", conversionSpec)
	if got, want := f.(interface{ Describe() string }).Describe(), "conversion webhook of widgets.example.com, rules: 2"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := f.(interface{ Modelled() []string }).Modelled()[0], "the conversion webhook of widgets.example.com is the harness's own"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
